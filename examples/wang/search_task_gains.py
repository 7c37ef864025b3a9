"""Search for the best gains of the task law on the star with 500 g, as a fair opponent of the predictive law.

Problem: find the gains with which the task law follows the star of `star.py` best, at 20 Hz with the estimator and the
limits of all other runs. First a grid over the two most important gains, then the others one by one around the best.
Symbols: K_P [1/s], damping in damping coefficients of the arm, the other fields of `TaskGains`. Source: [Wang, sec.
III-B, eq. 19]; the paper does not give its gains.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from examples.wang.bench_arm import ARM
from examples.wang.references import star
from examples.wang.star import draw
from soft_control.control_loop import Actuate
from soft_control.laws.task_space import TaskGains, TaskLaw
from soft_dynamics.commands.arguments import number

BEST = {'proportional': 1.6, 'damping': 2.0}
GRID = product((0.7, 1.2, 1.6, 2.0), (0.0, 0.5, 1.0, 2.0, 3.0))
OTHERS: list[dict[str, Any]] = [
    {'derivative': 0.3},
    {'integral': 0.3},
    {'orientation': 0.4},
    {'singular': 0.05},
    {'singular': 0.2},
    {'posture': 0.1},
    {'posture': 2.0},
    {'fastest': 5.0},
    {'lag_speedup': 1.5},
]


def candidates() -> Iterator[dict[str, Any]]:
    for proportional, damping in GRID:
        yield {'proportional': proportional, 'damping': damping}
    for other in OTHERS:
        yield BEST | other


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description='Search for the best gains of the task law.')
    parser.add_argument('--load', type=number(0.0, 5.0), default=0.5, help='[kg]')
    parser.add_argument('--most', type=number(1, 1e4, int), default=1000, help='number of candidates')
    parser.add_argument('--poses', type=number(2, 1e4, int), default=500, help='number of poses of the star')
    options = parser.parse_args(argv)

    poses, best = star(options.poses), (np.inf, {})
    for gains, _ in zip(candidates(), range(options.most), strict=False):
        own = {name: value for name, value in gains.items() if name != 'lag_speedup'}
        actuate = Actuate(lag_speedup=gains.get('lag_speedup', 1.0))
        try:
            _, off, _ = draw(TaskLaw(ARM, TaskGains(**own)), poses, options.load, actuate)
        except RuntimeError as error:
            print(f'{gains}: {error}')
            continue
        rms = float(np.sqrt(np.mean(off[:, 0] ** 2)))
        best = min(best, (rms, gains), key=lambda found: found[0])
        print(f'{gains}: RMS {rms:.1f} mm')
    print(f'best: {best[1]}, RMS {best[0]:.1f} mm')


if __name__ == '__main__':
    main()
