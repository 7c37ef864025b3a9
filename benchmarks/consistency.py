"""Are the errors of the filter as large as it says? Normalised squares of many runs of robots that are its model.

python -m benchmarks.consistency [--runs 200] [--write-docs]

Truth is drawn from the filter's own process, poses from its own noise: what the filter says of its errors (NEES) and of
its innovations (NIS) must then be true on the average. Bands of 95 % are those of chi^2.    [Bar-Shalom 2001, sec. 5.4]
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation
from scipy.stats import chi2

import soft_dynamics as sd
from benchmarks.page import replace_part
from soft_dynamics.arguments import Array
from soft_estimation.model_filter import FilterConfig, ModelFilter
from soft_estimation.poses import pose_from_rpy
from soft_estimation.process import Belief, ProcessNoise

DOCS = Path(__file__).resolve().parent.parent / 'docs' / 'estimation.md'
BEGIN, END = '<!-- benchmarks.consistency -->', '<!-- end consistency -->'
ROBOTS = ('honeycomb_arm', 'pneumatic_arm')
PERIOD, STEPS = 0.01, 50  # [s], samples of a run, after which the errors are judged
ROTATION, POSITION = 3e-3, 1e-3  # [rad], [m] noise of a pose
PRESSURE = 0.1  # of the largest, at most
CONFIG = FilterConfig(
    process=ProcessNoise(force=0.002, drift=0.02, memory=0.5),
    mocap_rotation_noise=ROTATION,
    mocap_position_noise=POSITION,
    vive_rotation_noise=ROTATION,
    vive_position_noise=POSITION,
    place_misfit=0.0,
    twist_misfit=0.0,
    start_spread=0.1,
    start_rate_spread=0.3,
    gate_probability=1.0 - 1e-12,  # the gate would cut the tail that is counted
)


class Ratio(NamedTuple):
    """A mean normalised square and the band in which it is with some probability if all is right."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, squares: float, dof: int, probability: float) -> Ratio:
        low, high = chi2.ppf([0.5 - 0.5 * probability, 0.5 + 0.5 * probability], dof) / dof
        return cls(float(squares / dof), float(low), float(high))

    @property
    def is_in_band(self) -> bool:
        return self.low < self.value < self.high

    def __str__(self) -> str:
        return f'{self.value:.3f} ({self.low:.3f} to {self.high:.3f})'


class Consistency(NamedTuple):
    """Of the errors of q, qd and w together, of q alone, and of the innovations."""

    state: Ratio
    q: Ratio
    innovations: Ratio


def poses(robot: sd.Robot, q: Array, rng: np.random.Generator) -> dict[str, Array]:
    """X_WS of all tracked bodies, with noise in the world's axes."""
    mount = pose_from_rpy(robot.description.mount.position, robot.description.mount.rpy)
    out = {}
    for sensor in robot.description.sensors:
        if sensor.kind in ('mocap', 'vive'):
            X = mount @ robot.pose(q, sensor.frame) @ pose_from_rpy(sensor.position, sensor.rpy)
            X[:3, :3] = Rotation.from_rotvec(rng.normal(0.0, ROTATION, 3)).as_matrix() @ X[:3, :3]
            X[:3, 3] += rng.normal(0.0, POSITION, 3)
            out[sensor.name] = X
    return out


class Squares(NamedTuple):
    """Normalised squares of one run: of the errors of x and of q at its end, of all innovations; numbers in these."""

    state: float
    q: float
    innovations: float
    dof: int


def run(robot: sd.Robot, rng: np.random.Generator) -> Squares:
    f, n = ModelFilter(robot, CONFIG), robot.nq
    start = f.process.start(0.0, CONFIG.start_spread, CONFIG.start_rate_spread)
    x = rng.multivariate_normal(start.x, start.P)
    largest = PRESSURE * robot.description.actuation.pressure_max
    phase = rng.uniform(0.0, 2.0 * math.pi, len(robot.chamber_names))
    pressure = np.zeros(len(phase))
    for k in range(STEPS):
        t = k * PERIOD
        if k:
            moved = f.process.predict(Belief(t - PERIOD, x, np.zeros_like(start.P)), t, pressure)
            x = rng.multivariate_normal(moved.x, moved.P, method='cholesky')
        f.feed_poses(t, poses(robot, x[:n], rng))
        pressure = 0.5 * largest * (1.0 + np.sin(6.0 * t + phase))
        f.feed_pressure(t, pressure)
    belief, counts = f.belief(), f.innovations.values()
    if sum(count.rejected for count in counts):
        raise RuntimeError('a sample was refused: the statistics are of what was let in')
    off = x - belief.x
    return Squares(
        float(off @ np.linalg.solve(belief.P, off)),
        float(off[:n] @ np.linalg.solve(belief.P[:n, :n], off[:n])),
        sum(count.nis for count in counts),
        sum(count.dof for count in counts),
    )


def consistency(name: str, runs: int, seed: int, probability: float = 0.95) -> Consistency:
    """Over so many runs of a shipped robot, with bands of this probability."""
    robot, rng = sd.load(name), np.random.default_rng(seed)
    state, q, innovations, dof = np.sum([run(robot, rng) for _ in range(runs)], axis=0)
    size = ModelFilter(robot, CONFIG).process.size
    return Consistency(
        Ratio.of(state, size * runs, probability),
        Ratio.of(q, robot.nq * runs, probability),
        Ratio.of(innovations, int(dof), probability),
    )


def page(found: dict[str, Consistency], runs: int) -> str:
    """What goes into docs/estimation.md."""
    lines = [
        f'Made by `python3 tools/run.py python -m benchmarks.consistency --runs {runs} --write-docs`.',
        '',
    ]
    lines += ['| robot | NEES of x | NEES of q | NIS |', '| --- | --- | --- | --- |']
    lines += [f'| `{name}` | {c.state} | {c.q} | {c.innovations} |' for name, c in found.items()]
    return '\n'.join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog='python -m benchmarks.consistency', description=__doc__)
    parser.add_argument('--runs', type=int, default=200, help='of each robot, default %(default)d')
    parser.add_argument('--write-docs', action='store_true', help=f'also into docs/{DOCS.name}')
    options = parser.parse_args(arguments)
    if options.runs < 1:
        parser.error(f'at least one run, got {options.runs}')
    found = {name: consistency(name, options.runs, seed=1) for name in ROBOTS}
    part = page(found, options.runs)
    print(part)
    if options.write_docs:
        replace_part(DOCS, BEGIN, END, part)
    return 0


if __name__ == '__main__':
    sys.exit(main())
