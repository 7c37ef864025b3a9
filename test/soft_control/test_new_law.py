"""A law from outside the package: one entry in the table; the controller offers it and the loop runs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from closed_loop import Rig, perturbed, robot_of

from soft_control.control_loop import ControlLoop
from soft_control.laws import CONFIGURATION_LAWS, TASK_LAWS
from soft_control.nodes.configuration_controller import Config
from soft_control.references import JointPath, JointSample
from soft_control.safety.state_machine import Mode, State
from soft_dynamics.array import Array
from soft_dynamics.robot import Robot

STEP, RATE = 0.05, 100.0  # [rad], [Hz]


class StaticLaw:
    """The forces that hold the reference at rest: tau = g(q_r) + k(q_r). No feedback."""

    def __init__(self, robot: Robot) -> None:
        self._robot = robot

    def rest(self, state: State) -> JointSample:
        zero = np.zeros_like(state.q)
        return JointSample(state.q, zero, zero)

    def start(self, t: float, state: State, reference: JointPath, tau: Array) -> None:
        """Do nothing: the law has no memory."""

    def forces(self, t: float, dt: float, state: State, reference: JointPath) -> Array:
        wanted = reference.sample(t).q
        return self._robot.inverse_dynamics(wanted, np.zeros_like(wanted), np.zeros_like(wanted))

    def applied(self, dt: float, tau: Array) -> None:
        """Do nothing: the law has no integral."""


def make(robot: Robot, _config: Any, tell: Callable[[str], Any]) -> StaticLaw:
    tell(f'{robot.name} is held by its springs')
    return StaticLaw(robot)


def test_a_new_law_is_chosen_by_name_and_brings_the_robot_to_its_reference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ValueError, match="law must be feedback or predictive, got 'static'"):
        Config(law='static')
    monkeypatch.setitem(CONFIGURATION_LAWS, 'static', make)
    config, robot, told = Config(law='static'), robot_of('bending_actuator'), list[str]()
    law = CONFIGURATION_LAWS[config.law](robot, config, told.append)
    assert told == ['bending_actuator is held by its springs']
    rig = Rig(perturbed('bending_actuator'), ControlLoop(robot, law), RATE)
    target = rig.q + STEP
    rig.loop.follow(0.0, JointPath(0.0, rig.loop.present(0.0), [1.0], [target]))
    modes = rig.run(4.0, lambda _, memory: memory.mode)
    assert set(modes) == {Mode.FOLLOWING}
    assert np.abs(rig.q - target).max() < 0.25 * STEP  # the plant is off by 10 %, and the law has no feedback


def test_the_tables_have_the_laws_that_the_nodes_offer() -> None:
    assert list(CONFIGURATION_LAWS) == ['feedback', 'predictive']
    assert list(TASK_LAWS) == ['kinematic', 'predictive']
