"""One call of the pressure allocation and one cycle of each control law, for the honeycomb arm."""

from __future__ import annotations

from itertools import count

import numpy as np

from benchmarks.measure import Case, Settings, take_turns
from benchmarks.table import Figure, Row, Target
from soft_control.allocation.pressure_allocation import Allocation
from soft_control.control_loop import ControlLoop, Law
from soft_control.laws.configuration_space import ConfigurationGains, ConfigurationLaw
from soft_control.laws.predictive import PredictiveGains, PredictiveLaw
from soft_control.laws.task_space import TaskGains, TaskLaw
from soft_control.safety.state_machine import State
from soft_dynamics.robot import Robot, load

BEND = 0.2  # [rad] each angle


def allocation(settings: Settings) -> list[Row]:
    """16 chambers, with feasible forces, and with infeasible ones, which activate limits and take longest."""
    robot = load('honeycomb_arm')
    allocate, A = Allocation(robot, level=0.3), robot.actuation(robot.rest)
    reach = robot.description.actuation.pressure_max * np.abs(A).max()
    signs = np.cos(2.0 * np.arange(robot.nq))
    sizes = {'within reach': 0.3, 'beyond reach': 3.0}
    cases = [Case(allocate, (A, size * reach * signs)) for size in sizes.values()]
    return [
        Row(
            'control.allocation',
            f'allocation, 16 chambers, {what}',
            Figure.of(times, 's'),
            target=Target(50e-6, 's'),
        )
        for what, times in zip(sizes, take_turns(cases, settings.repetitions), strict=True)
    ]


def laws(settings: Settings) -> list[Row]:
    """Complete cycles with checks, allocation and safety; the predictive law must keep up with 50 Hz."""
    robot = load('honeycomb_arm')
    laws = {
        'configuration law': (ConfigurationLaw(robot, ConfigurationGains()), None),
        'task law': (TaskLaw(robot, TaskGains()), None),
        'predictive law': (PredictiveLaw(robot, PredictiveGains()), Target(20e-3, 's')),
    }
    samples = take_turns([_cycles(robot, law) for law, _ in laws.values()], settings.repetitions)
    return [
        Row('control.laws', f'cycle of the {name}, 8 angles', Figure.of(times, 's'), target=target)
        for (name, (_, target)), times in zip(laws.items(), samples, strict=True)
    ]


def _cycles(robot: Robot, law: Law) -> Case:
    """Return a control cycle that holds a bent pose, with 20 ms between cycles."""
    loop, q, cycle = ControlLoop(robot, law), np.full(robot.nq, BEND), count()

    def run() -> None:
        t = 0.02 * next(cycle)
        loop.feed(State(t, q, np.zeros(robot.nq)))
        if t == 0.0:
            loop.follow(t, Still(loop.present(t)))
        loop.step(t)

    return Case(run)


class Still:
    """A constant reference."""

    expires = float('inf')

    def __init__(self, sample: object) -> None:
        self._sample = sample

    def sample(self, t: float) -> object:
        return self._sample
