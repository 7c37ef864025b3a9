"""False sensor data in the launched loop: the arm ends vented, or the diagnostics name the body."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from ros.test_closed_loop import VENTED, Loop
from ros.test_controllers import ROBOT, trajectory

from soft_dynamics.ros.qos import STATE
from tools.simulation import Simulation


@pytest.fixture(scope='module')
def loop(module_ros_client_node: Any) -> Iterator[Loop]:
    with Simulation(robot=ROBOT.name, rate=50, shape='false', ft='none') as simulation:
        yield Loop(module_ros_client_node, simulation, ROBOT.description.safety)


def test_motion_capture_that_repeats_itself_under_new_stamps_vents(loop: Loop) -> None:
    """The bridge sees new frames and the estimator new stamps; only moving pressures reveal the fault."""
    told: list[DiagnosticArray] = loop.node.collect(DiagnosticArray, '/diagnostics', STATE)
    loop.until_ready()
    loop.inflate()
    with loop.simulation.rig as rig:
        rig.fault('mocap', stuck=True)
    elsewhere = trajectory((1.0, [-0.25, 0.1] * 4), (2.0, [0.25, -0.1] * 4))
    loop.references.publish(elsewhere)
    loop.until(lambda: loop.pressure() < VENTED, 'vented arm')
    loop.until(lambda: any('frozen' in s.message for m in told for s in m.status), 'diagnosis')
    loop.check()
    with loop.simulation.rig as rig:
        rig.clear()
    assert loop.stays_vented()
    loop.inflate()
    loop.until(lambda: max(np.abs(loop.states[-1].q)) > 0.1, 'bend')
