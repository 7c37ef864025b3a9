"""Many motions at once: RK4 steps per second of one core, and the gain of a second core.

`Robot.simulate` of a batch against `mujoco.rollout`.
"""

from __future__ import annotations

import os
import time
from typing import Any

import mujoco
import mujoco.rollout
import numba
import numpy as np

from benchmarks.calls import SEGMENTS, puj
from benchmarks.chains import State, mujoco_model
from benchmarks.measure import Case, Settings, load, take_turns
from benchmarks.table import Figure, Row, Target
from soft_dynamics.array import Array
from soft_dynamics.robot import Robot

MOTIONS, STEPS, STEP = 256, 20, 1e-3  # [s]


def ours(robot: Robot, q: Array, qd: Array) -> tuple[Array, Array]:
    """Return coordinates and rates of the free motion from each state after the steps."""
    run = robot.simulate(q, qd, None, (0.0, STEPS * STEP), 'rk4', step=STEP)
    return run.q[:, -1], run.qd[:, -1]


def theirs(state: State, threads: int) -> Any:
    """Return a function that runs the same motions in MuJoCo."""
    model = mujoco_model(SEGMENTS, STEP)
    data = [mujoco.MjData(model) for _ in range(threads)]
    start = np.concatenate([np.zeros((MOTIONS, 1)), state.q, state.qd], axis=1)
    pool = mujoco.rollout.Rollout(nthread=threads if threads > 1 else 0)
    return lambda: pool.rollout(model, data, start, nstep=STEPS)[0][:, -1, 1:]


def start() -> tuple[Robot, State]:
    return puj().robot, State(*(array[:MOTIONS] for array in puj().state))


def steps(settings: Settings) -> list[Row]:
    robot, state = start()
    units = MOTIONS * STEPS
    cases = [Case(ours, (robot, state.q, state.qd), units), Case(theirs(state, 1), (), units)]
    mine, peer = 1.0 / take_turns(cases, settings.repetitions)
    return [
        Row(
            'rollouts.steps',
            'RK4 rollouts, 16 joints, steps per second of CPU',
            Figure.of(mine, '1/s'),
            Figure.of(peer, '1/s'),
            'MuJoCo rollout',
            Figure.of(mine / peer, 'x'),
            Target(1.2, at_least=True),
        )
    ]


def cores(settings: Settings) -> list[Row]:
    """Compare one thread with two in wall time; the best repetition was disturbed least."""
    if len(os.sched_getaffinity(0)) < 2:
        settings.say('rollouts.cores: skipped, this process may use one core only')
        return []
    robot, state = start()

    def threaded(count: int) -> Any:
        def run() -> None:
            numba.set_num_threads(count)
            ours(robot, state.q, state.qd)
            numba.set_num_threads(1)

        return run

    calls = [threaded(1), threaded(2), theirs(state, 1), theirs(state, 2)]
    cases = [Case(call, (), MOTIONS * STEPS) for call in calls]
    rates = 1.0 / take_turns(cases, settings.repetitions, time.perf_counter).min(axis=1)
    rows = []
    for who, one, two, target in (
        ('RK4 rollouts', *rates[:2], Target(1.8, at_least=True)),
        ('the same in MuJoCo', *rates[2:], None),
    ):
        ratio, pair = Figure(two / one, 'x'), (Figure(two, '1/s'), Figure(one, '1/s'))
        what = f'{who}, two cores, best wall time at load {load():.1f}'
        rows.append(Row('rollouts.cores', what, *pair, 'one core', ratio, target))
    return rows
