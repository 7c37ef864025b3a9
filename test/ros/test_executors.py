"""Estimator and controller under rclpy's executors and the suite's own: if either falls silent, the arm vents."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from ros.test_controllers import CONFIGURATION, ROBOT, Arm, good
from soft_robot_suite.msg import BodyPoses, SoftState
from trajectory_msgs.msg import JointTrajectory

from soft_dynamics.geometry import quaternion
from soft_dynamics.geometry.se3 import pose_from_rpy
from soft_dynamics.ros.conversions import float64s
from soft_dynamics.ros.qos import COMMAND, SENSOR, STATE
from soft_estimation.inverse_kinematics.pose_tracking import frame_index
from tools.simulation import patient

CONTROLLER = 'soft_control.nodes.configuration_controller.ConfigurationController'
ESTIMATOR = 'soft_estimation.nodes.state_estimator.StateEstimator'
START = 120.0  # [s] more than the compiler takes when nothing is cached
INFLATED = 20e3, ROBOT.description.actuation.pressure_max  # [Pa]


class Cameras:
    """Motion capture of an arm that bends under its commands, 50 times a second while `alive`."""

    def __init__(self, node: Any, arm: Arm) -> None:
        mount = ROBOT.description.mount
        self._X_WM, self._arm = pose_from_rpy(mount.position, mount.rpy), arm
        self._sensors = [s for s in ROBOT.description.sensors if s.kind == 'mocap']
        self.alive, self._node = True, node
        self._publisher = node.create_publisher(BodyPoses, 'mocap/frame', SENSOR)
        node.create_timer(0.02, self._look)

    def _look(self) -> None:
        self._arm.bend()
        if self.alive:
            frame = self._frame()
            frame.header.stamp = self._node.get_clock().now().to_msg()
            self._publisher.publish(frame)

    def _frame(self) -> BodyPoses:
        X_MF, sensors = ROBOT.forward_kinematics(self._arm.q), self._sensors
        X_WS = [self._X_WM @ X_MF[frame_index(ROBOT, s)] @ pose_from_rpy(s.position, s.rpy) for s in sensors]
        return BodyPoses(
            names=[s.name for s in sensors],
            positions=float64s(np.ravel([X[:3, 3] for X in X_WS])),
            orientations=float64s(np.ravel([quaternion.from_rotation(X[:3, :3]) for X in X_WS])),
        )


class Reports:
    """Diagnostics of the controller."""

    def __init__(self, node: Any) -> None:
        self.arrays: list[DiagnosticArray] = node.collect(DiagnosticArray, '/diagnostics', STATE)

    def last(self) -> str:
        """The newest diagnosis."""
        own = [s for array in self.arrays for s in array.status if CONFIGURATION in s.name]
        return f'{("OK", "WARN", "ERROR", "STALE")[own[-1].level[0]]} {own[-1].message}' if own else ''


@pytest.mark.parametrize('executor', ['own', 'single-threaded', 'multi-threaded', 'events'])
def test_silence_of_cameras_or_estimator_vents_under_any_executor(
    ros_process: Callable[..., Any], ros_client_node: Any, tmp_path: Path, executor: str
) -> None:
    """The arm vents along the ramp, the node reports it, and a new reference is needed once the states are back."""
    node, robot = ros_client_node, str(patient(ROBOT.name, tmp_path))
    arm, reports = Arm(node), Reports(node)
    cameras = Cameras(node, arm)
    arm.alive = False  # these states come from the estimator
    states: list[SoftState] = node.collect(SoftState, 'state', STATE)

    def spun(which: str, **parameters: Any) -> Any:
        env = {'NODE': which, 'EXECUTOR': executor}
        return ros_process('ros.nodes_for_test.spun', {'robot': robot, 'rate': 50.0} | parameters, env=env)

    estimator = spun(ESTIMATOR, method='differentiator')
    controller = spun(CONTROLLER)
    references = node.announce(JointTrajectory, 'reference/configuration', COMMAND, START)

    def inflate() -> None:
        states.clear()
        first = len(arm.commands)  # an inactive controller has no commands and accepts no reference
        node.spin_until(lambda: len(states) > 10 and len(arm.commands) > first + 10, 'states and commands')
        references.publish(good(CONFIGURATION))
        try:
            arm.until_highest(*INFLATED)
        except TimeoutError as error:
            raise TimeoutError(f'{error}: {reports.last()}, {controller.stderr[-1000:]}') from None
        node.spin_until(lambda: reports.last() == 'OK following', 'following controller')

    def is_vented_and_told() -> None:
        arm.until_vented()
        node.spin_until(lambda: reports.last() == 'WARN no state for 0.5 s', 'verdict')

    def stays_vented() -> None:
        states.clear()
        first = len(arm.commands)
        node.spin_until(lambda: len(states) > 20 and len(arm.commands) > first + 20, 'states and commands')
        assert not any(any(c.pressure) for c in arm.commands[first:]), 'the old reference was followed again'

    node.spin_until(lambda: states, 'first states', START)
    inflate()
    cameras.alive = False
    states.clear()
    is_vented_and_told()
    assert len(states) > 3, 'no states are predicted while the cameras are silent'
    cameras.alive = True
    stays_vented()

    inflate()
    estimator.process.send_signal(signal.SIGSTOP)
    is_vented_and_told()
    estimator.process.send_signal(signal.SIGCONT)
    stays_vented()

    inflate()
    estimator.kill()
    is_vented_and_told()
    arm.check_limits()
    assert 'Traceback' not in controller.stderr + estimator.stderr
