"""Accuracy of the estimators on the virtual honeycomb arm, which differs from their model: a table and figures.

python -m benchmarks.estimation [--seconds 10] [--seeds 3] [--write-docs]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

import soft_dynamics as sd
from benchmarks.estimation_rig import (
    EVERY_SEGMENT,
    PERIOD,
    TRACKED,
    Packet,
    Run,
    estimates,
    feed,
    model,
    record,
)
from benchmarks.page import replace_part
from soft_dynamics.array import Array
from soft_dynamics.geometry.se3 import pose_from_rpy
from soft_estimation.differentiate.pose_differentiator import PoseDifferentiator
from soft_estimation.inverse_kinematics.fiber_shape import frames_along
from soft_estimation.kalman.model_filter import ModelFilter
from soft_estimation.loads.tip_load import TipLoad, TipLoadOfStates

ROOT = Path(__file__).resolve().parent.parent
DOCS, FIGURES = ROOT / 'docs' / 'benchmarks' / 'estimation.md', ROOT / 'docs' / 'figures'
BEGIN, END = '<!-- benchmarks.estimation -->', '<!-- end -->'
SETTLED = 1.0  # [s] errors count from here
BLACKOUT = 3.0, 4.0  # [s]
OUTLIERS, OUTLIER = 0.05, 0.5  # [-], [m]
LOADS = (0.1, 0.2, 0.35, 0.5)  # [kg]
LOAD_KNOWN, LOAD_SECONDS = 2.0, 3.0  # [s]
FIRST_SEED = 300  # the default parameters were chosen with the seeds 100 to 102, 200 and 201
SENSORS = {
    'motion capture, 5 plates': ({'mocap'}, TRACKED),
    'Vive, 2 trackers': ({'vive'}, TRACKED),
    'Vive, 4 trackers': ({'vive'}, EVERY_SEGMENT),
    'fiber': ({'fiber'}, TRACKED),
    'F/T and pressure': ({'ft'}, TRACKED),
    'all, with 2 trackers': ({'mocap', 'vive', 'fiber', 'ft'}, TRACKED),
}
METHOD = """
The virtual rig runs in lock-step. Its 16 chambers move smoothly up to half of the largest pressure. Devices have their
own rates, delays and noise (`soft_hw_bridge.rig.config`), up to 125 samples per second each. The plant differs from the
model: it has more pieces, its springs are 10 % stiffer and its dampers 20 % weaker. Errors are RMS over all eight
coordinates of the current state, at 200 Hz, with the default parameters. These were tuned on the same rig with other
seeds. The filter always has the pressures, the differentiator never. The differentiator needs the pose of every
segment's end: it cannot use two trackers or a wrench. It takes one kind of sensor, and the fiber as the poses of
segment ends that the filter computes from it.
"""


class Error(NamedTuple):
    """RMS errors over coordinates and times."""

    q: float  # [rad]
    qd: float  # [rad/s]


def rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))


def error(run: Run, found: tuple[Array, Array]) -> Error:
    """Return the errors of a run, from SETTLED on."""
    late = run.t >= SETTLED
    return Error(rms((found[0] - run.q)[late]), rms((found[1] - run.qd)[late]))


def mean(errors: Sequence[Error]) -> Error:
    return Error(*(rms(np.array(column)) for column in zip(*errors, strict=True)))


def segment_ends(robot: sd.Robot) -> Callable[[Packet], Packet]:
    """Converts a packet of the fiber to poses at the ends of all segments."""
    mount = robot.description.mount
    X_WB = pose_from_rpy(mount.position, mount.rpy) @ robot.pose(robot.rest, 'base')
    ends = np.cumsum([segment.length for segment in robot.description.segments])

    def with_poses(packet: Packet) -> Packet:
        p_BF, R_BF, *_ = frames_along(*packet.values, ends)
        X_BF = np.tile(np.eye(4), (len(ends), 1, 1))
        X_BF[:, :3, :3], X_BF[:, :3, 3] = R_BF, p_BF
        names = [f'tracker{k}' for k in EVERY_SEGMENT]
        return packet._replace(kind='vive', values=dict(zip(names, X_WB @ X_BF, strict=True)))

    return with_poses


def of_sensors(robot: sd.Robot, runs: Sequence[Run], kinds: set[str]) -> tuple[Error, Error | None]:
    """Return errors of the filter, and of the differentiator if one kind of sensor gives all segment ends."""
    filtered = mean([error(run, estimates(run, ModelFilter(robot), kinds | {'pressure'})) for run in runs])
    seen = {sensor.frame for sensor in robot.description.sensors if {sensor.kind} == kinds}
    change = None
    if kinds == {'fiber'}:
        robot = model(EVERY_SEGMENT)
        change = segment_ends(robot)
    elif not seen.issuperset(segment.name for segment in robot.description.segments):
        return filtered, None
    found = [error(run, estimates(run, PoseDifferentiator(robot), kinds, change)) for run in runs]
    return filtered, mean(found)


def blackout(robot: sd.Robot, run: Run, span: tuple[float, float] = BLACKOUT) -> Array:
    """Return the largest coordinate error at each time, with a second without motion capture."""
    begin, end = span

    def lost(packet: Packet) -> Packet | None:
        return None if packet.kind == 'mocap' and begin <= packet.t < end else packet

    q, _ = estimates(run, ModelFilter(robot), {'mocap', 'pressure'}, lost)
    return np.asarray(np.abs(q - run.q).max(1))


def with_outliers(robot: sd.Robot, run: Run, seed: int, *, lost: bool = False) -> tuple[Array, Array]:
    """Return the errors if one pose in twenty is half a metre off or, for comparison, missing."""
    rng = np.random.default_rng(seed)

    def spoilt(packet: Packet) -> Packet:
        if packet.kind != 'mocap':
            return packet
        poses = {name: X.copy() for name, X in packet.values.items()}
        for name, X in list(poses.items()):
            if rng.uniform() < OUTLIERS:
                direction = rng.normal(size=3)
                X[:3, 3] += OUTLIER * direction / np.linalg.norm(direction)
                if lost:
                    del poses[name]
        return packet._replace(values=poses)

    return estimates(run, ModelFilter(robot), {'mocap', 'pressure'}, spoilt)


def tip_load(robot: sd.Robot, run: Run, with_ft: bool) -> Array:
    """Return the estimated mass [kg] at the times of the run."""
    estimator, load, mass = ModelFilter(robot), TipLoadOfStates(TipLoad(robot)), []
    packets, pressure, wrench = iter(run.packets), np.zeros(16), None
    packet: Packet | None = next(packets)
    for now in run.t.tolist():
        while packet is not None and packet.arrival <= now + 1e-9:
            if packet.kind in ('mocap', 'pressure'):
                feed(estimator, packet)
            if packet.kind == 'pressure':
                pressure = packet.values
            if packet.kind == 'ft' and with_ft:
                wrench = packet.values
            packet = next(packets, None)
        if estimator.located:
            state = estimator.estimate(now)
            load.feed(now, state.q, state.qd, pressure, wrench)
        mass.append(load.mass)
    return np.array(mass)


class Study(NamedTuple):
    """All results of the page."""

    errors: dict[str, tuple[Error, Error | None]]
    clean: Error
    spoilt: Error
    lost: Error
    t: Array
    blackout: Array  # at these times, over all runs
    usual: Array  # the same without a blackout
    masses: dict[float, list[tuple[Array, Array]]]  # by load and run: with and without the F/T sensor


def study(seconds: float, seeds: int, say: Callable[[str], None]) -> Study:
    robot = model()
    say(f'{seeds} runs of {seconds:g} s')
    runs = [record(seconds, FIRST_SEED + seed) for seed in range(seeds)]
    errors = {}
    for name, (kinds, tracked) in SENSORS.items():
        say(name)
        if tracked == TRACKED:
            errors[name] = of_sensors(robot, runs, kinds)
        else:
            others = [record(seconds, FIRST_SEED + seed, tracked=tracked) for seed in range(seeds)]
            errors[name] = of_sensors(model(tracked), others, kinds)
    say('blackout, outliers, loads')
    spoilt, lost = (
        mean([error(run, with_outliers(robot, run, k, lost=is_lost)) for k, run in enumerate(runs)])
        for is_lost in (False, True)
    )
    masses = {}
    for load in LOADS:
        loaded = [record(LOAD_SECONDS, FIRST_SEED + seed, load) for seed in range(seeds)]
        masses[load] = [(tip_load(robot, run, True), tip_load(robot, run, False)) for run in loaded]
    clean = errors[next(iter(SENSORS))][0]
    worst, usual = (np.max([blackout(robot, run, s) for run in runs], axis=0) for s in (BLACKOUT, (0.0, 0.0)))
    return Study(errors, clean, spoilt, lost, runs[0].t, worst, usual, masses)


def rows(found: Study) -> list[list[str]]:
    """Return the table: sensors, errors of the filter, errors of the differentiator."""
    out = []
    for name, errors in found.errors.items():
        texts = [[f'{1e3 * e.q:.2f}', f'{e.qd:.3f}'] if e else ['-', '-'] for e in errors]
        out.append([name, *texts[0], *texts[1]])
    return out


HEADER = ('sensors', 'filter: q [mrad]', 'qd [rad/s]', 'differentiator: q [mrad]', 'qd [rad/s]')


def figures_of(found: Study) -> dict[str, float]:
    """Return the numbers in the text of the page."""
    t, worst = found.t, 1e3 * found.blackout
    begin, end = BLACKOUT
    late = slice(round(LOAD_KNOWN / PERIOD), None)
    with_ft, without = (
        max(
            np.abs(mass[k][late] / load - 1.0).max()
            for load, of_load in found.masses.items()
            for mass in of_load
        )
        for k in (0, 1)
    )
    return {
        'within': worst[(t >= begin) & (t < end)].max(),
        'after': worst[t >= end + 0.1].max(),
        'usual': 1e3 * found.usual[t >= end + 0.1].max(),
        'more': (worst - 1e3 * found.usual)[t >= end + 0.1].max(),
        'with F/T': 100.0 * with_ft,
        'without': 100.0 * without,
    }


def page(found: Study, seconds: float) -> str:
    """Return the part of docs/benchmarks/estimation.md."""
    table = [HEADER, ['---'] * len(HEADER), *rows(found)]
    lines = '\n'.join(f'| {" | ".join(row)} |' for row in table)
    number, loads = figures_of(found), ', '.join(f'{1e3 * load:.0f}' for load in LOADS)
    known, without = f'{LOAD_KNOWN:g} to {LOAD_SECONDS:g} s', f'{number["without"]:.0f} %'
    clean, spoilt, lost = (
        f'{1e3 * e.q:.2f} mrad and {e.qd:.4f} rad/s' for e in (found.clean, found.spoilt, found.lost)
    )
    return f"""Written by `python3 tools/run.py python -m benchmarks.estimation --write-docs` ({seconds:g} s per run).
{METHOD}
{lines}

**One second without motion capture.** The largest error of a coordinate in any run is {number['within']:.0f} mrad
during the gap. From 100 ms after the gap it is {number['after']:.1f} mrad, against {number['usual']:.1f} mrad in the
same runs without a gap, and never exceeds the latter by more than {number['more']:.1f} mrad.

![Error before, during and after a second without motion capture](../figures/estimation_blackout.png)

**Outliers.** 5 % of the poses are half a metre off, independently for each plate. RMS errors: {clean} without
outliers, {spoilt} with them, {lost} if these poses are missing instead. So an outlier costs no more than
a missing sample.

**Tip loads** of {loads} g, in motion, from motion capture, pressures and the F/T sensor,
{len(found.masses[LOADS[0]])} runs each: at most {number['with F/T']:.1f} % error at any time from {known} after the
start. Without the F/T sensor a mass cannot be distinguished from wrong springs: up to {without} error.

![Estimated tip loads over time](../figures/estimation_loads.png)"""


def plot(found: Study) -> None:
    import matplotlib.pyplot as plt

    plt.style.use(FIGURES / 'style.mplstyle')
    figure, axes = plt.subplots(figsize=(7.0, 2.6))
    axes.axvspan(*BLACKOUT, color='0.92')
    axes.plot(found.t, 1e3 * found.usual, color='0.6', label='the same runs without it')
    axes.plot(found.t, 1e3 * found.blackout, label='largest of all runs')
    axes.legend(loc='upper left')
    axes.set(
        xlabel='t [s]',
        ylabel='largest error of q [mrad]',
        title='No motion capture for a second',
        xlim=(1.0, 6.0),
        ylim=(0.0, None),
    )
    figure.savefig(FIGURES / 'estimation_blackout.png')
    figure, axes = plt.subplots(figsize=(7.0, 2.8))
    for load, ((with_ft, without), *_) in found.masses.items():
        t = PERIOD * np.arange(len(with_ft))
        (line,) = axes.plot(t, 1e3 * with_ft, label=f'{1e3 * load:.0f} g')
        axes.plot(t, 1e3 * without, ':', color=line.get_color())
        axes.axhspan(900.0 * load, 1100.0 * load, color=line.get_color(), alpha=0.15, linewidth=0.0)
    axes.set(
        xlabel='t [s]',
        ylabel='mass at the tip [g]',
        title='Loads, with (full) and without (dotted) F/T sensor; bands: 10 %',
        ylim=(0.0, 750.0),
    )
    axes.set_ylim(0.0, 750.0)
    axes.legend()
    figure.savefig(FIGURES / 'estimation_loads.png')


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog='python -m benchmarks.estimation', description=__doc__)
    parser.add_argument(
        '--seconds',
        type=float,
        default=10.0,
        help='duration of each run [s], at least 5; default %(default)g',
    )
    parser.add_argument('--seeds', type=int, default=3, help='number of runs, default %(default)d')
    parser.add_argument(
        '--write-docs', action='store_true', help=f'also write docs/benchmarks/{DOCS.name} and its figures'
    )
    options = parser.parse_args(arguments)
    if not (options.seconds >= 5.0 and options.seeds >= 1):
        parser.error(f'must be at least 5 s and one seed, got {options.seconds:g} s and {options.seeds}')
    found = study(
        options.seconds, options.seeds, lambda text: print(f'estimation: {text}', file=sys.stderr, flush=True)
    )
    part = page(found, options.seconds)
    print(part)
    if options.write_docs:
        plot(found)
        replace_part(DOCS, BEGIN, END, part)
    return 0


if __name__ == '__main__':
    sys.exit(main())
