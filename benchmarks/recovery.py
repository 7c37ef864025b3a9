"""Identify robots whose parameters are known: python -m benchmarks.recovery [CASE ...] [--seed 1] [--write-docs]

--spread 5 runs the cases with 5 seeds and prints the largest deviation of each.

Each case records noisy bags of a robot with known parameters, reads them as `identify` does, changes the parameters in
the robot file, and identifies them. Cases without `rig` are motions of the model itself, without model error. `rig_*`
are recorded from the nodes of the virtual rig, whose plant is a finely divided MuJoCo arm, so the deviation includes
the model error; they need ROS: tools/run.py --own-domain python -m benchmarks.recovery
"""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.page import replace_part
from soft_dynamics.array import Array
from soft_dynamics.description.robot_description import Description, load_description
from soft_dynamics.robot import Robot
from soft_dynamics.simulation.simulate import Trajectory
from soft_estimation.identification import METHODS, Identification, Options, identify, problem_of
from soft_estimation.identification.budget import Checkpoint
from soft_estimation.identification.problem import Problem, follow_evenly
from soft_estimation.identification.unknowns import apply, select
from soft_estimation.recordings.recording import Recording, read_recording
from tools.made_bag import Rig, write_bag

DOCS = Path(__file__).resolve().parent.parent / 'docs' / 'benchmarks' / 'identification.md'
BEGIN, END = '<!-- benchmarks.recovery -->', '<!-- end of benchmarks.recovery -->'
SHARED = ('*.stiffness', '*.damping')
HEAD = ('| case | unknown | truth | found | std | deviation |', '|---|---|---|---|---|---|')
SPREAD_HEAD = ('| case | largest of all | of | largest of each seed [%] |', '|---|---|---|---|')
FINE = 1e-3  # [s] between samples of the motions


class Case(NamedTuple):
    """A robot, its recordings, and how to identify it; step [s] of the simulations."""

    truth: Description
    recordings: list[Recording]
    method: str
    keys: Sequence[str] = ()
    options: Options = Options()
    step: float = 1e-2


Made = Callable[[Path, int], Case]  # folder of the bags, seed


def seconds(duration: float) -> Array:
    return FINE * np.arange(round(duration / FINE) + 1, dtype=np.float64)


def moved(robot: Robot, t: Array, pressure: Array, q0: Any = None) -> Trajectory:
    start = robot.rest if q0 is None else q0
    return robot.simulate(start, np.zeros(robot.nq), pressure, t, step=2e-3)


def steps(t: Array, levels: Array, hold: float, lag: float) -> Array:
    """Return pressures that follow levels (count, m), each held for a time [s], with a lag [s]."""
    return np.asarray(follow_evenly(levels[np.minimum(t // hold, len(levels) - 1).astype(int)], FINE, lag))


def recorded(
    path: Path, rig: Rig, rates: dict[str, float], bandwidth: float, rate: float = 100.0
) -> Recording:
    """Write a bag with some streams of a rig at their rates [Hz], and read it as `identify` does with these options."""
    return read_recording(write_bag(path, rig, rates, rates), rig.robot, rate, bandwidth=bandwidth)


def step_response(method: str) -> Made:
    """Godage's actuator, steps to 80, 119 and 160 kPa and back, measured by its fiber; noise 1 mrad."""

    def case(folder: Path, seed: int) -> Case:
        robot, t = Robot(load_description('bending_actuator')), seconds(2.0)
        recordings, rates = [], {'fiber': 100.0, 'pressure': 500.0}
        for k, level in enumerate((80e3, 119e3, 160e3)):
            p = follow_evenly(np.where((t > 0.12) & (t < 1.2), level, 0.0)[:, None], FINE, 0.02)
            rig = Rig(robot, moved(robot, t, p), noise=1e-3, seed=10 * seed + k)
            recordings.append(recorded(folder / f'step{k}', rig, rates, 10.0, 250.0))
        return Case(robot.description, recordings, method, SHARED)

    return case


def random_steps(method: str) -> Made:
    """Jensen's arm under three random steps of 2 s, measured by its trackers; noise 1 mrad."""

    def case(folder: Path, seed: int) -> Case:
        robot, rng, t = Robot(load_description('pneumatic_arm')), np.random.default_rng(seed), seconds(6.0)
        p = steps(t, rng.uniform(0.0, 150e3, (3, 12)), 2.0, 0.05)
        rig = Rig(robot, moved(robot, t, p), noise=1e-3, seed=seed)
        recording = recorded(folder / 'steps', rig, {'poses': 100.0, 'pressure': 100.0}, 20.0)
        return Case(robot.description, [recording], method, options=Options(starts=2))

    return case


def mehl(folder: Path, seed: int) -> Case:
    """Mehl's actuator, four runs with valves open or shut every 0.5 s; noise 20 um and 20 mN.

    The recorded pressures are those in the lines; the chambers follow with the lag of the valve.
    """
    robot, rng, t = Robot(load_description('floating_actuator')), np.random.default_rng(seed), seconds(4.0)
    recordings, rates = [], {'poses': 200.0, 'pressure': 1000.0, 'wrench': 1000.0}
    for k in range(4):
        line = steps(t, np.where(rng.random((8, 3)) > 0.5, 75e3, 0.0), 0.5, 0.01)
        p = follow_evenly(line, FINE, robot.description.actuation.valve_lag)
        motion = dataclasses.replace(moved(robot, t, p), inputs=line)
        rig = Rig(robot, motion, noise=2e-5, wrench_noise=0.02, seed=10 * seed + k)
        recordings.append(recorded(folder / f'run{k}', rig, rates, 30.0, 500.0))
    return Case(robot.description, recordings, 'mehl', step=5e-3)


def wang(folder: Path, seed: int) -> Case:
    """Wang's arm: six free swings from random poses, and one slow inflation; noise 1 mrad."""
    robot, rng, t = Robot(load_description('honeycomb_arm')), np.random.default_rng(seed), seconds(4.0)
    recordings, rates = [], {'poses': 100.0, 'pressure': 100.0}
    for k, q0 in enumerate(0.3 * rng.standard_normal((6, 8))):
        rig = Rig(robot, moved(robot, t, np.zeros((t.size, 16)), q0), noise=1e-3, seed=10 * seed + k)
        recordings.append(recorded(folder / f'swing{k}', rig, rates, 20.0))
    slow, m = seconds(20.0)[:, None], np.arange(16)
    p = 60e3 * (1 + np.sin(2 * np.pi * slow / 20 * (1 + m % 5) + m)) * np.minimum(slow / 4, 1)
    rig = Rig(robot, moved(robot, slow[:, 0], p), noise=1e-3, seed=10 * seed + 9)
    recordings.append(recorded(folder / 'inflation', rig, rates, 3.0, 50.0))
    return Case(robot.description, recordings, 'wang')


def on_rig(robot: str, method: str, keys: Sequence[str] = (), starts: int = 1) -> Made:
    """A shipped robot on the virtual rig: bridges and `bag_recorder` run as on a real one."""

    def case(folder: Path, seed: int) -> Case:
        from benchmarks.recovery_rig import RIGS

        truth = load_description(robot)
        if method == 'mehl':  # the pressure sensors of the rig are in the chambers, behind the valves
            truth = dataclasses.replace(truth, actuation=dataclasses.replace(truth.actuation, valve_lag=1e-3))
        return Case(truth, RIGS[robot](folder, seed), method, keys, Options(starts=starts), step=5e-3)

    return case


CASES: dict[str, Made] = {
    'least_squares': random_steps('least_squares'),
    'jensen': step_response('jensen'),
    'jensen_arm': random_steps('jensen'),
    'godage': step_response('godage'),
    'mehl': mehl,
    'wang': wang,
    'rig_least_squares': on_rig('pneumatic_arm', 'least_squares', starts=2),
    'rig_jensen': on_rig('bending_actuator', 'jensen', SHARED),
    'rig_godage': on_rig('bending_actuator', 'godage', SHARED),
    'rig_mehl': on_rig('floating_actuator', 'mehl'),
    'rig_wang': on_rig('honeycomb_arm', 'wang'),
}


def spoiled(robot: Description) -> Description:
    """Return a wrong start: springs x 1.5, dampers x 0.6; Mehl's chambers 1 mm off, with twice the lag."""
    wrong = apply(robot, select(robot, SHARED), np.log([1.5, 0.6]))
    if robot.name != 'floating_actuator':
        return wrong
    keys = ('*.position[0]', '*.position[1]', 'valve_lag', '*.area', '*.mass')
    return apply(wrong, select(wrong, keys), np.array([0.5, -0.5, *np.log([2.0, 0.8, 1.3])]))


def rows(name: str, truth: Description, found: Identification) -> list[str]:
    true = select(truth, [parameter.key for parameter in found.parameters])
    lines = []
    for parameter, value, std, right in zip(
        found.parameters, found.values, found.uncertainty.std, true, strict=True
    ):
        off = f'{100 * (value / right.shown - 1):+.2f} %' if right.shown else f'{value:+.2g}'
        lines.append(f'| {name} | `{parameter.key}` | {right.shown:.5g} | {value:.5g} | {std:.2g} | {off} |')
    return lines


def made(name: str, seed: int) -> tuple[Case, Problem]:
    """A case and the start of its method."""
    with tempfile.TemporaryDirectory() as folder:
        case = CASES[name](Path(folder), seed)
    return case, problem_of(spoiled(case.truth), case.recordings, case.method, case.keys, step=case.step)


def spread(name: str, count: int) -> str:
    """Return the largest deviation of a case for each seed, and the unknown with the largest of all."""
    worst = []
    for seed in range(1, count + 1):
        case, problem = made(name, seed)
        x = METHODS[case.method].search(problem, case.options, lambda *_: None, Checkpoint(None, ''))
        true = select(case.truth, [p.key for p in problem.parameters])
        off = [abs(p.value(v) / t.shown - 1.0) for p, v, t in zip(problem.parameters, x, true, strict=True)]
        worst.append((max(off), problem.parameters[int(np.argmax(off))].key))
    each = ', '.join(f'{100 * off:.2f}' for off, _ in worst)
    return f'| {name} | {100 * max(worst)[0]:.2f} % | `{max(worst)[1]}` | {each} |'


def on_page() -> dict[str, list[str]]:
    """The rows of the table in the docs, by case."""
    part = DOCS.read_text(encoding='utf-8').partition(BEGIN)[2].partition(END)[0]
    found: dict[str, list[str]] = {}
    for line in part.splitlines():
        name = line.strip('| ').partition(' ')[0]
        if name in CASES:
            found.setdefault(name, []).append(line)
    return found


def main(args: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('cases', nargs='*', choices=[*CASES, []], default=list(CASES), metavar='CASE')
    parser.add_argument('--seed', type=int, default=1, help='seed of inputs and noise; default 1')
    parser.add_argument(
        '--spread', type=int, default=0, metavar='N', help='print the largest deviations over N seeds'
    )
    parser.add_argument('--write-docs', action='store_true', help=f'also write docs/benchmarks/{DOCS.name}')
    options = parser.parse_args(args)
    if options.spread:
        print('\n'.join(SPREAD_HEAD))
        for name in options.cases:
            print(spread(name, options.spread), flush=True)
        return
    print('\n'.join(HEAD))
    for name in options.cases:
        case, problem = made(name, options.seed)
        lines = rows(name, case.truth, identify(problem, case.method, case.options))
        print('\n'.join(lines), flush=True)
        if options.write_docs:
            table = on_page() | {name: lines}
            replace_part(DOCS, BEGIN, END, '\n'.join([*HEAD, *(r for c in CASES for r in table.get(c, []))]))


if __name__ == '__main__':
    main()
