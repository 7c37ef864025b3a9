"""Check that the errors of the filter match its covariances: normalised squares over many runs.

python -m benchmarks.consistency [--runs 200] [--write-docs]

The true motion is drawn from the filter's process model, and poses from its noise model. Then the mean normalised
squares of errors (NEES) and innovations (NIS) must be 1. The 95 % bands are those of chi^2. [Bar-Shalom 2001, sec. 5.4]
The same robots and the virtual rig also run with the default parameters, which include a misfit.
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
from benchmarks.estimation_rig import PERIOD as STATE_PERIOD
from benchmarks.estimation_rig import feed, model, record
from benchmarks.page import replace_part
from soft_dynamics.array import Array
from soft_dynamics.geometry.se3 import pose_from_rpy
from soft_estimation.kalman.model_filter import FilterConfig, ModelFilter
from soft_estimation.kalman.process_model import Belief, ProcessNoise

DOCS = Path(__file__).resolve().parent.parent / 'docs' / 'benchmarks' / 'estimation.md'
BEGIN, END = '<!-- benchmarks.consistency -->', '<!-- end consistency -->'
ROBOTS = ('honeycomb_arm', 'pneumatic_arm')
PERIOD, STEPS = 0.01, 50  # [s], samples of a run; errors are evaluated at its end
ROTATION, POSITION = 3e-3, 1e-3  # [rad], [m] noise of a pose
PRESSURE = 0.1  # largest pressure, relative to pressure_max
SPREAD, RATE_SPREAD = 0.1, 0.3  # [rad or m], [rad/s or m/s] spread of the true states at the start
RIG_SEEDS, RIG_SECONDS, SETTLED = (300, 301, 302), 5.0, 1.0  # as in benchmarks.estimation; [s], [s]
DEFAULT = FilterConfig()
CONFIG = FilterConfig(
    process=ProcessNoise(force=0.002, drift=0.02, memory=0.5),
    mocap_rotation_noise=ROTATION,
    mocap_position_noise=POSITION,
    vive_rotation_noise=ROTATION,
    vive_position_noise=POSITION,
    place_misfit=0.0,
    twist_misfit=0.0,
    start_spread=SPREAD,
    start_rate_spread=RATE_SPREAD,
    gate_probability=1.0 - 1e-12,  # the gate would cut the tail of the statistics
)


class Ratio(NamedTuple):
    """A mean normalised square and its band for a consistent filter."""

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
    """Normalised squares of the errors of (q, qd, w), of the errors of q, and of the innovations."""

    state: Ratio
    q: Ratio
    innovations: Ratio


def poses(robot: sd.Robot, q: Array, config: FilterConfig, rng: np.random.Generator) -> dict[str, Array]:
    """Return X_WS of all tracked bodies with noise in world axes."""
    mount = pose_from_rpy(robot.description.mount.position, robot.description.mount.rpy)
    out = {}
    for sensor in robot.description.sensors:
        if sensor.kind in ('mocap', 'vive'):
            X = mount @ robot.pose(q, sensor.frame) @ pose_from_rpy(sensor.position, sensor.rpy)
            rotation, position = config.pose_noise.of_kind[sensor.kind]
            X[:3, :3] = Rotation.from_rotvec(rng.normal(0.0, rotation, 3)).as_matrix() @ X[:3, :3]
            X[:3, 3] += rng.normal(0.0, position, 3)
            out[sensor.name] = X
    return out


class Squares(NamedTuple):
    """Normalised squares of one run: errors of x and q at its end, and all innovations with their number."""

    state: float
    q: float
    innovations: float
    dof: int


def squares(off: Array, P: Array) -> float:
    """Return the normalised square of an error; its components come first in P."""
    return float(off @ np.linalg.solve(P[: len(off), : len(off)], off))


def run(robot: sd.Robot, config: FilterConfig, rng: np.random.Generator) -> Squares:
    f, n = ModelFilter(robot, config), robot.nq
    start = f.process.start(0.0, SPREAD, RATE_SPREAD)
    x = rng.multivariate_normal(start.x, start.P)
    largest = PRESSURE * robot.description.actuation.pressure_max
    phase = rng.uniform(0.0, 2.0 * math.pi, len(robot.chamber_names))
    pressure = np.zeros(len(phase))
    for k in range(STEPS):
        t = k * PERIOD
        if k:
            moved = f.process.predict(Belief(t - PERIOD, x, np.zeros_like(start.P)), t, pressure)
            x = rng.multivariate_normal(moved.x, moved.P, method='cholesky')
        f.feed_poses(t, poses(robot, x[:n], config, rng))
        pressure = 0.5 * largest * (1.0 + np.sin(6.0 * t + phase))
        f.feed_pressure(t, pressure)
    belief, counts = f.belief(), f.innovations.values()
    if config is CONFIG and sum(count.rejected for count in counts):
        raise RuntimeError('a sample was refused, which distorts the statistics')
    return Squares(
        squares(x - belief.x, belief.P),
        squares((x - belief.x)[:n], belief.P),
        sum(count.nis for count in counts),
        sum(count.dof for count in counts),
    )


def consistency(
    name: str, runs: int, seed: int, probability: float = 0.95, config: FilterConfig = CONFIG
) -> Consistency:
    """Return the statistics over runs of a shipped robot, with bands of this probability."""
    robot, rng = sd.load(name), np.random.default_rng(seed)
    state, q, innovations, dof = np.sum([run(robot, config, rng) for _ in range(runs)], axis=0)
    size = ModelFilter(robot, config).process.size
    return Consistency(
        Ratio.of(state, size * runs, probability),
        Ratio.of(q, robot.nq * runs, probability),
        Ratio.of(innovations, int(dof), probability),
    )


def on_rig(seed: int, seconds: float = RIG_SECONDS) -> tuple[float, float, float]:
    """Return mean NEES of (q, qd), NEES of q, and NIS with default parameters, motion capture and pressures.

    There are no bands, because errors of one run are not independent. The forces w of the plant are not known.
    """
    robot, true = model(), record(seconds, seed)
    f, n, found = ModelFilter(robot), robot.nq, []
    for packet in true.packets:
        if packet.kind not in ('mocap', 'pressure'):
            continue
        feed(f, packet)
        step = packet.t / STATE_PERIOD
        if packet.kind == 'mocap' and packet.t >= SETTLED and abs(step - round(step)) < 1e-6:
            belief, k = f.belief(), round(step)
            off = np.concatenate([true.q[k], true.qd[k]]) - belief.x[: 2 * n]
            found.append((squares(off, belief.P) / (2 * n), squares(off[:n], belief.P) / n))
    counts = f.innovations.values()
    state, q = np.mean(found, axis=0)
    return float(state), float(q), sum(c.nis for c in counts) / sum(c.dof for c in counts)


def page(
    found: dict[str, Consistency], default: dict[str, Consistency], rig: Sequence[float], runs: int
) -> str:
    """Return the part of docs/benchmarks/estimation.md."""
    header = ('truth', 'parameters', 'NEES of x', 'NEES of q', 'NIS')
    rows = [header, ('---',) * len(header)]
    for parameters, of_robots in (('true', found), ('default', default)):
        rows += [
            (f'`{n}`', parameters, str(c.state), str(c.q), str(c.innovations)) for n, c in of_robots.items()
        ]
    rows.append(('virtual rig', 'default', *(f'{value:.2f}' for value in rig)))
    lines = [
        f'Written by `python3 tools/run.py python -m benchmarks.consistency --runs {runs} --write-docs`.',
        '',
    ]
    return '\n'.join([*lines, *(f'| {" | ".join(row)} |' for row in rows)])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog='python -m benchmarks.consistency', description=__doc__)
    parser.add_argument('--runs', type=int, default=200, help='runs of each robot, default %(default)d')
    parser.add_argument('--write-docs', action='store_true', help=f'also write docs/benchmarks/{DOCS.name}')
    options = parser.parse_args(arguments)
    if options.runs < 1:
        parser.error(f'--runs: must be >= 1, got {options.runs}')
    found = {name: consistency(name, options.runs, seed=1) for name in ROBOTS}
    default = {name: consistency(name, options.runs, seed=1, config=DEFAULT) for name in ROBOTS}
    rig = np.mean([on_rig(seed) for seed in RIG_SEEDS], axis=0).tolist()
    part = page(found, default, rig, options.runs)
    print(part)
    if options.write_docs:
        replace_part(DOCS, BEGIN, END, part)
    return 0


if __name__ == '__main__':
    sys.exit(main())
