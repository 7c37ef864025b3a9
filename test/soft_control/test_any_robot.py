"""The configuration law on every robot with chambers on its coordinates, with a model that is off by 10 %."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from closed_loop import Rig, perturbed, robot_of, settle, step_of

from soft_control.control_loop import ControlLoop
from soft_control.laws.configuration_space import ConfigurationGains, ConfigurationLaw
from soft_control.references import JointPath
from soft_control.safety.state_machine import Mode
from soft_dynamics.robot import Robot

SECONDS = 5.0
RATE = 100.0  # [Hz]


def gentle(robot: Robot) -> ConfigurationGains:
    """Gains that suit all robots, including one that swings at 12 Hz."""
    return ConfigurationGains((0.0,), (0.0,), (2.0,))


def usual(robot: Robot) -> ConfigurationGains:
    """The default gains of the node."""
    return ConfigurationGains().eased(robot, robot.description.actuation.valve_lag + 2.0 / RATE)


def slow_motion(robot: Robot, seconds: float = SECONDS) -> tuple[np.ndarray, np.ndarray]:
    """Times and coordinates under pressures that rise in 2 s and then oscillate: a feasible motion."""
    t = np.arange(0.0, seconds + 0.05, 0.1)
    share = 0.1 + 0.1 * np.sin(1.0 + np.arange(len(robot.chamber_names)))
    rise = np.minimum(0.5 * t, 1.0) * (1.0 + 0.5 * np.sin(t))
    pressure = robot.description.actuation.pressure_max * np.outer(rise, share)
    q0, qd0 = settle(robot)
    return t, robot.simulate(q0, qd0, pressure, t, step=step_of(robot, 0.01)).q


@pytest.mark.parametrize(('gains', 'share'), [(gentle, 0.05), (usual, 0.1)])
@pytest.mark.parametrize('name', ['bending_actuator', 'floating_actuator', 'honeycomb_arm', 'pneumatic_arm'])
def test_a_slow_motion_is_followed(
    name: str, gains: Callable[[Robot], ConfigurationGains], share: float
) -> None:
    """Within a share of the motion's range; the same pressures without a law have much larger errors."""
    robot, plant = robot_of(name), perturbed(name)
    t, q = slow_motion(robot)
    rig = Rig(plant, ControlLoop(robot, ConfigurationLaw(robot, gains(robot))), RATE)
    path = JointPath(0.0, rig.loop.present(0.0), 1.0 + t[1:], q[1:])
    rig.loop.follow(0.0, path)
    seen = rig.run(1.0 + SECONDS, lambda rig, memory: (rig.q - path.sample(rig.t).q, memory.mode))
    assert {mode for _, mode in seen} == {Mode.FOLLOWING}
    rms = np.sqrt(np.mean([e**2 for e, _ in seen[200:]], axis=0))
    assert rms.max() <= share * np.ptp(q, axis=0).max()
