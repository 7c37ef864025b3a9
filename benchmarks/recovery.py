"""Known truth, found again: python -m benchmarks.recovery [CASE ...]

Each case makes recordings with a robot file whose numbers are known, spoils the file, and lets a method find them.
All but `rig` simulate the model itself with noise, so that there is no model error; `rig` is the finely divided MuJoCo
plant of the virtual rig, where the same numbers mean something slightly else: the deviation is the model's error.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from soft_dynamics.arguments import Array
from soft_dynamics.description import Description, load_description
from soft_dynamics.robot import Robot
from soft_estimation.configuration import Tracking
from soft_estimation.identification import Identification, Options, identify, problem_of
from soft_estimation.identification.parameters import apply, select
from soft_estimation.identification.problem import follow_evenly
from soft_estimation.recording import Recording
from soft_estimation.smoothing import smoothing_spline

SHARED = ('*.stiffness', '*.damping')
Case = Callable[[], tuple[Description, list[Recording], str, Sequence[str], Options]]


def made(
    robot: Robot,
    t: Array,
    q: Array,
    pressure: Array,
    noise: float,
    bandwidth: float,
    seed: int = 0,
    **more: Any,
) -> Recording:
    """A recording of motion q with white noise on it."""
    q = q + noise * np.random.default_rng(seed).standard_normal(q.shape)
    smooth = smoothing_spline(t, q, bandwidth)
    return Recording(robot.name, t, q, smooth(t, 1), smooth(t, 2), pressure, **more)


def moved(robot: Robot, t: Array, pressure: Array, q0: Any = None) -> Array:
    start = robot.rest if q0 is None else q0
    return robot.simulate(start, np.zeros(robot.nq), pressure, t, step=2e-3).q


def step_response(method: str, trials: int) -> Case:
    """Godage's actuator stepped to 119 kPa and back; noise 1 mrad."""

    def case() -> tuple[Description, list[Recording], str, Sequence[str], Options]:
        robot = Robot(load_description('bending_actuator'))
        t = np.arange(0.0, 2.0, 0.01)
        p = follow_evenly(np.where((t > 0.12) & (t < 1.2), 119e3, 0.0)[:, None], 0.01, 0.02)
        recording = made(robot, t, moved(robot, t, p), p, 1e-3, 8.0)
        return robot.description, [recording], method, SHARED, Options(trials=trials)

    return case


def random_steps() -> tuple[Description, list[Recording], str, Sequence[str], Options]:
    """Jensen's arm under three random steps of 2 s; noise 1 mrad."""
    robot, rng = Robot(load_description('pneumatic_arm')), np.random.default_rng(1)
    t = np.arange(0.0, 6.0, 0.02)
    p = follow_evenly(rng.uniform(0.0, 150e3, (3, 12))[(t // 2).astype(int)], 0.02, 0.05)
    return (
        robot.description,
        [made(robot, t, moved(robot, t, p), p, 1e-3, 8.0)],
        'least_squares',
        (),
        Options(starts=2),
    )


def mehl() -> tuple[Description, list[Recording], str, Sequence[str], Options]:
    """Mehl's actuator, four runs with valves open or shut every 0.5 s; noise 20 um and 20 mN."""
    robot, rng, dt = Robot(load_description('floating_actuator')), np.random.default_rng(1), 0.005
    t, recordings = np.arange(0.0, 4.0, dt), []
    for seed in range(4):
        line = follow_evenly(75e3 * (rng.random((8, 3)) > 0.5)[(t // 0.5).astype(int)], dt, 0.01)
        p = follow_evenly(line, dt, robot.description.actuation.valve_lag)
        motion = robot.simulate(robot.rest, np.zeros(robot.nq), p, t, step=2e-3)
        qdd = robot.forward_dynamics(
            motion.q, motion.qd, np.einsum('kij,kj->ki', robot.actuation(motion.q), p)
        )
        wrench = robot.base_wrench(motion.q, motion.qd, qdd) + 0.02 * rng.standard_normal((t.size, 6))
        recordings.append(made(robot, t, motion.q, line, 2e-5, 40.0, seed=seed, wrench_B=wrench))
    return robot.description, recordings, 'mehl', (), Options(trials=800)


def wang() -> tuple[Description, list[Recording], str, Sequence[str], Options]:
    """Wang's arm: three free swings from random poses, and one slow inflation; noise 0.1 mrad."""
    robot, rng = Robot(load_description('honeycomb_arm')), np.random.default_rng(1)
    t, slow = np.arange(0.0, 4.0, 0.01), np.arange(0.0, 20.0, 0.02)
    none, m = np.zeros((t.size, 16)), np.arange(16)
    swings = [
        made(robot, t, moved(robot, t, none, q0), none, 1e-4, 8.0)
        for q0 in 0.15 * rng.standard_normal((3, 8))
    ]
    p = (
        60e3
        * (1 + np.sin(2 * np.pi * slow[:, None] / 20 * (1 + m % 5) + m))
        * np.minimum(slow / 4, 1)[:, None]
    )
    swings.append(made(robot, slow, moved(robot, slow, p), p, 1e-4, 3.0))
    return robot.description, swings, 'wang', (), Options()


def rig() -> tuple[Description, list[Recording], str, Sequence[str], Options]:
    """Jensen's arm as the virtual rig's plant; coordinates from the true poses of its trackers; noise 1 mrad."""
    from soft_hw_bridge.rig.plant import Plant

    robot, rng, dt = Robot(load_description('pneumatic_arm')), np.random.default_rng(1), 0.02
    plant, tracking, near = Plant(robot.description), Tracking(robot), robot.rest
    frames = {name: plant.frame_names.index(sensor.frame) for name, sensor in tracking.sensors.items()}
    steps, q, p = rng.uniform(0.0, 100e3, (3, 12)), [], []
    for command in np.repeat(steps, 100, axis=0):
        X = plant.poses()
        near = tracking.configuration({name: X[k] for name, k in frames.items()}, near=near).q
        q.append(near)
        p.append(plant.pressure.copy())
        plant.advance(dt, command)
    t = dt * np.arange(len(q))
    return (
        robot.description,
        [made(robot, t, np.array(q), np.array(p), 1e-3, 8.0)],
        'least_squares',
        (),
        Options(starts=2),
    )


CASES: dict[str, Case] = {
    'least_squares': random_steps,
    'jensen': step_response('jensen', 400),
    'godage': step_response('godage', 400),
    'mehl': mehl,
    'wang': wang,
    'rig': rig,
}


def spoiled(robot: Description) -> Description:
    """Springs half as stiff again, dampers at 0.6 of what they are."""
    return apply(robot, select(robot, SHARED), np.log([1.5, 0.6]))


def rows(name: str, truth: Description, found: Identification) -> list[str]:
    true = select(truth, [parameter.key for parameter in found.parameters])
    lines = []
    for parameter, value, std, right in zip(
        found.parameters, found.values, found.uncertainty.std, true, strict=True
    ):
        off = f'{100 * (value / right.shown - 1):+.2f} %' if right.shown else f'{value:+.2g}'
        lines.append(f'| {name} | `{parameter.key}` | {right.shown:.5g} | {value:.5g} | {std:.2g} | {off} |')
    return lines


def main(args: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('cases', nargs='*', choices=[*CASES, []], default=list(CASES), metavar='CASE')
    print('| case | unknown | truth | found | std | deviation |\n|---|---|---|---|---|---|')
    for name in parser.parse_args(args).cases:
        truth, recordings, method, keys, options = CASES[name]()
        problem = problem_of(spoiled(truth), recordings, method, keys, step=1e-2 if name != 'mehl' else 5e-3)
        print('\n'.join(rows(name, truth, identify(problem, method, options))), flush=True)


if __name__ == '__main__':
    main()
