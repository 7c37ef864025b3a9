"""From rest to three random poses with unmodelled loads at the tip, at 20 Hz, on the plant of the virtual rig.

Problem: the tip moves to three poses that the arm reached under random pressures, with unmodelled loads of 0, 100, 200
and 500 g. Find the final error under the task law and the predictive law. Symbols: e distance [mm] and angle [deg]
between the tip of the plant and the target, mean over the last second. Source: [Wang, sec. IV-C.2, Fig. 15], which
shows curves without numbers.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

from examples.wang.bench_arm import ARM, BenchArm
from examples.wang.pictures import panels
from examples.wang.references import random_targets
from soft_control.laws.predictive import PredictiveGains, PredictiveLaw
from soft_control.laws.task_space import TaskGains, TaskLaw
from soft_control.references import PosePath
from soft_dynamics.commands.arguments import file_to_write, number
from soft_dynamics.geometry.se3 import pose_error

RATE = 20.0  # [Hz] as in the paper
LOADS = (0.0, 0.1, 0.2, 0.5)  # [kg]
SPEED, ANGULAR_SPEED = 0.2, 1.0  # [m/s], [rad/s] towards the target
TARGET = (5.0, 2.0)  # [mm], [deg]
LAWS: dict[str, Any] = {
    'task': lambda: TaskLaw(ARM, TaskGains()),
    'predictive': lambda: PredictiveLaw(ARM, PredictiveGains()),
}


def reach(law: Any, X_WR: np.ndarray, load: float, seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """Return time since the start [s], and distance [mm] and angle [deg] of the tip from the target (samples, 2)."""
    arm = BenchArm(law, RATE, load)
    start = arm.t
    arm.loop.follow(start, PosePath(start, arm.loop.present(start).X_WT, [X_WR], SPEED, ANGULAR_SPEED))
    log = arm.run(seconds)
    e = np.array([pose_error(X_WR, X_WT) for X_WT in log.X])
    off = np.stack([1e3 * np.linalg.norm(e[:, 3:], axis=1), np.degrees(np.linalg.norm(e[:, :3], axis=1))], 1)
    return np.array(log.t) - start, off


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description='Point to point with unmodelled loads.')
    parser.add_argument('--seconds', type=number(0.5, 1e3), default=15.0, help='time to reach a target [s]')
    parser.add_argument('--targets', type=number(1, 100, int), default=3)
    parser.add_argument('--loads', type=number(0.0, 5.0), nargs='+', default=LOADS, help='tip loads [kg]')
    parser.add_argument('--laws', nargs='+', default=list(LAWS), choices=LAWS)
    parser.add_argument('--figure', type=file_to_write, help='PNG of the result')
    options = parser.parse_args(argv)

    print(f'paper: {RATE:.0f} Hz, curves only (Fig. 15); wanted here: {TARGET[0]:g} mm and {TARGET[1]:g} deg')
    targets = random_targets(options.targets)
    with panels(options.figure, (2, options.targets), (7.2, 4.2)) as axes:
        for law in options.laws:
            worst = np.zeros(2)
            for k, X_WR in enumerate(targets):
                for load in options.loads:
                    t, off = reach(LAWS[law](), X_WR, load, options.seconds)
                    final = off[t > options.seconds - 1.0].mean(0)
                    worst = np.maximum(worst, final)
                    print(
                        f'{law:12s}target {k + 1}, {1e3 * load:3.0f} g: {final[0]:.2f} mm, {final[1]:.2f} deg'
                    )
                    if axes[0] is not None and law == options.laws[-1]:
                        for row, unit in enumerate(('mm', 'deg')):
                            axis = axes[row * options.targets + k]
                            axis.semilogy(t, off[:, row], lw=0.9, label=f'{1e3 * load:.0f} g')
                            axis.set(xlabel='t [s]', ylabel=f'error [{unit}]', title=f'target {k + 1}, {law}')
            print(f'{law:12s}worst: {worst[1]:.2f} deg and {worst[0]:.2f} mm')
        if axes[0] is not None:
            axes[0].figure.legend(*axes[0].get_legend_handles_labels(), loc='outside lower center', ncols=4)


if __name__ == '__main__':
    main()
