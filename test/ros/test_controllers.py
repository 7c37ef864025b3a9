"""The controllers as processes: for any states and references, commands stay within limits and end vented."""

from __future__ import annotations

import math
import random
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import PoseArray, PoseStamped
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from soft_robot_suite.msg import ChamberPressures, SoftState
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from soft_control.control_loop import ControlLoop
from soft_control.laws.configuration_space import ConfigurationGains, ConfigurationLaw
from soft_control.laws.predictive import PredictiveGains, PredictiveLaw
from soft_control.laws.task_space import TaskGains, TaskLaw
from soft_control.references import JointPath, PosePath
from soft_control.safety.state_machine import State
from soft_dynamics.robot import load
from soft_dynamics.ros.conversions import float64s, pose_from_arrays, time_to_seconds
from soft_dynamics.ros.qos import COMMAND, SENSOR, STATE
from tools.simulation import patient

CONFIGURATION, TASK = 'configuration_controller', 'task_controller'
ROBOT = load('honeycomb_arm')
ACTUATION, SAFETY = ROBOT.description.actuation, ROBOT.description.safety
VENT_RATE = ACTUATION.pressure_max / SAFETY.vent_time  # [Pa/s]


@pytest.fixture(scope='module', autouse=True)
def _compiled() -> None:
    """Fill the compiler's cache, so that the tests do not wait a minute for a node to start."""
    state = State(0.0, ROBOT.rest, np.zeros(8))
    configuration, task = ConfigurationLaw(ROBOT, ConfigurationGains()), TaskLaw(ROBOT, TaskGains())
    here = task.rest(state).X_WT
    hold = PosePath(0.0, here, [here], 1.0, 1.0)
    for law, path in (
        (configuration, JointPath(0.0, configuration.rest(state), [1.0], [ROBOT.rest])),
        (task, hold),
        (PredictiveLaw(ROBOT, PredictiveGains()), hold),
    ):
        loop = ControlLoop(ROBOT, law)
        loop.feed(state)
        loop.follow(0.0, path)
        loop.step(0.001)


def _stiffness() -> np.ndarray:
    """Return d(k + g)/dq (8, 8) near rest [N m/rad]."""
    steps = 1e-5 * np.eye(8)
    rows = [ROBOT.inverse_dynamics(x, np.zeros(8), np.zeros(8)) for x in (*steps, *-steps)]
    return np.asarray((np.array(rows[:8]) - np.array(rows[8:])).T / 2e-5)


STIFFNESS, RNG = _stiffness(), np.random.default_rng(0)


class Arm:
    """A quasi-static arm: publishes states like an estimator, and records the commands it receives."""

    def __init__(self, node: Any) -> None:
        self.node, self.q, self.alive, self.bends = node, np.full(8, 0.02), True, True
        self._states = node.create_publisher(SoftState, 'state', STATE)
        self.commands: list[ChamberPressures] = node.collect(ChamberPressures, 'pressure/command', COMMAND)
        node.create_timer(0.02, self._tell)

    def bend(self) -> None:
        """Move towards the equilibrium of the last commands, with the tremor of a real arm."""
        p = np.asarray(self.commands[-1].pressure) if self.commands else np.zeros(16)
        held = 0.02 + np.linalg.solve(STIFFNESS, ROBOT.actuation(ROBOT.rest) @ p)
        self.q = self.q + 0.2 * self.bends * (held - self.q) + 1e-9 * RNG.normal(size=self.q.size)

    def _tell(self) -> None:
        if self.alive:
            self.bend()
            message = SoftState(
                names=list(ROBOT.coordinate_names), q=float64s(self.q), qd=float64s(np.zeros(self.q.size))
            )
            message.header.stamp = self.node.get_clock().now().to_msg()
            self._states.publish(message)

    @property
    def highest(self) -> float:
        return max(self.commands[-1].pressure) if self.commands else math.nan

    def until_highest(self, low: float, high: float) -> None:
        self.node.spin_until(lambda: low <= self.highest <= high, f'command between {low:g} and {high:g}')

    def until_vented(self) -> None:
        """Wait; check that every command follows the ramp once the controller must have noticed the missing state."""
        first = len(self.commands) - 1
        self.until_highest(0.0, 0.0)
        t = np.array([time_to_seconds(c.header.stamp) for c in self.commands[first:]])
        p = np.array([c.pressure for c in self.commands[first:]])
        # A command is decided after the stamp of its predecessor, and stamped when its process runs.
        too_fast = np.max(p[1:-1] - p[2:], axis=1) > 1.1 * VENT_RATE * (t[2:] - t[:-2])
        noticed = t[:-2] > t[0] + SAFETY.state_timeout + 0.1
        assert not np.any(too_fast & noticed), 'vented faster than the ramp'

    def check_limits(self) -> None:
        p = np.array([c.pressure for c in self.commands])
        assert np.all(np.isfinite(p))
        assert np.all((p >= ACTUATION.pressure_min) & (p <= ACTUATION.pressure_max))
        t = np.array([time_to_seconds(c.header.stamp) for c in self.commands])
        # The stamp is read after the decision: allow for a delay of the process in between.
        assert np.all(np.abs(np.diff(p, axis=0)) <= ACTUATION.slew * (np.diff(t)[:, None] + 0.05))


@pytest.fixture
def arm(ros_client_node: Any) -> Arm:
    return Arm(ros_client_node)


def trajectory(*points: tuple[float, list[float]]) -> JointTrajectory:
    message = JointTrajectory(joint_names=list(ROBOT.coordinate_names))
    for t, q in points:
        point = JointTrajectoryPoint(positions=q)
        point.time_from_start.sec, point.time_from_start.nanosec = divmod(round(t * 1e9), 10**9)
        message.points.append(point)
    return message


def poses(q: np.ndarray, frame: str = 'base_link') -> PoseArray:
    X = ROBOT.pose(q, 'tip')
    message = PoseArray()
    message.header.frame_id = frame
    message.poses.append(pose_from_arrays([0.0, 0.0, 0.0, 1.0], X[:3, 3]))
    return message


def good(name: str) -> Any:
    """Return a reference that needs pressure."""
    return trajectory((1.0, [0.3] * 8)) if name == CONFIGURATION else poses(np.full(8, 0.1))


def garbage(name: str) -> Any:
    """Return a reference that must be rejected, or a distant one."""
    number = lambda: random.choice([math.nan, math.inf, -1e300, 1e9, -40.0, 0.0, 0.5, 3.0])  # noqa: E731
    if name == CONFIGURATION:
        count = random.choice([0, 1, 2, 30])
        message = trajectory(
            *(
                (random.uniform(0.0, 2.0), [number() for _ in range(random.choice([7, 8]))])
                for _ in range(count)
            )
        )
        message.joint_names = random.choice([[], ['wing'] * 8, list(ROBOT.coordinate_names)])
        return message
    message = poses(np.zeros(8), random.choice(['', 'world', 'base_link', 'moon']))
    pose = message.poses[0]
    pose.position.x, pose.position.z, pose.orientation.x = (
        number(),
        number(),
        random.choice([0.0, math.nan, 7.0]),
    )
    return message


def change(node: Any, name: str, *transitions: str) -> None:
    """Request transitions of a controller, such as 'deactivate'."""
    for transition in transitions:
        number = getattr(Transition, f'TRANSITION_{transition.upper()}')
        request = ChangeState.Request(transition=Transition(id=number))
        assert node.call(ChangeState, f'{name}/change_state', request).success


@pytest.mark.parametrize(
    ('name', 'law'),
    [(CONFIGURATION, 'feedback'), (CONFIGURATION, 'predictive'), (TASK, 'kinematic'), (TASK, 'predictive')],
)
def test_from_rest_through_every_trouble(
    ros_process: Any, ros_client_node: Any, arm: Arm, name: str, law: str
) -> None:
    node = ros_client_node
    process = ros_process(f'soft_control.nodes.{name}', {'rate': 50.0, 'law': law})
    kind, topic = (
        (JointTrajectory, 'reference/configuration')
        if name == CONFIGURATION
        else (PoseArray, 'reference/poses')
    )
    references = node.announce(kind, topic, COMMAND)
    node.spin_until(lambda: len(arm.commands) > 30, 'commands')
    assert not any(any(c.pressure) for c in arm.commands), 'inflated without a reference'
    assert list(arm.commands[-1].names) == list(ROBOT.chamber_names)

    references.publish(good(name))
    arm.until_highest(20e3, ACTUATION.pressure_max)

    arm.alive = False  # the estimator dies
    start = time.monotonic()
    arm.until_vented()
    assert time.monotonic() - start < 10.0 * (SAFETY.vent_time + SAFETY.state_timeout)
    arm.alive = True
    node.spin_for(0.5)
    assert arm.highest == 0.0, 'the old reference was followed again'

    references.publish(good(name))
    arm.until_highest(20e3, ACTUATION.pressure_max)
    for _ in range(100):
        references.publish(garbage(name))
        node.spin_for(0.01)
    arm.q = np.full(8, math.nan)
    arm.until_vented()
    arm.q = np.full(8, 0.02)
    node.spin_for(0.3)

    references.publish(good(name))
    arm.until_highest(20e3, ACTUATION.pressure_max)
    assert node.call(Trigger, f'{name}/emergency_stop', Trigger.Request()).success
    arm.until_vented()
    references.publish(good(name))
    node.spin_for(0.5)
    assert arm.highest == 0.0, 'followed after an emergency stop'
    change(node, name, 'deactivate', 'activate')
    node.spin_for(0.2)
    references.publish(good(name))
    arm.until_highest(20e3, ACTUATION.pressure_max)

    arm.check_limits()
    assert process.stop(signal.SIGTERM) == 0
    assert 'Traceback' not in process.stderr
    assert 'reference refused' in process.stderr


def test_the_other_controller_takes_over_without_a_bump(
    ros_process: Any, ros_client_node: Any, arm: Arm, tmp_path: Path
) -> None:
    node, common = ros_client_node, {'rate': 50.0, 'robot': str(patient(ROBOT.name, tmp_path))}
    ros_process(f'soft_control.nodes.{CONFIGURATION}', common | {'gains.integral': [0.0]})
    second = ros_process(f'soft_control.nodes.{TASK}', common | {'autostart': False, 'gains.posture': 0.0})
    references = node.announce(JointTrajectory, 'reference/configuration', COMMAND)
    change(node, TASK, 'configure')
    node.spin_until(lambda: arm.commands, 'commands')
    references.publish(good(CONFIGURATION))
    arm.until_highest(20e3, ACTUATION.pressure_max)
    node.spin_for(1.0)  # the trajectory
    node.spin_until(lambda: np.ptp([c.pressure for c in arm.commands[-20:]], axis=0).max() < 1.0, 'still arm')
    before, arm.bends = (
        np.array(arm.commands[-1].pressure),
        False,
    )
    change(node, CONFIGURATION, 'deactivate')
    arm.commands.clear()
    change(node, TASK, 'activate')
    node.spin_until(lambda: len(arm.commands) > 20, 'commands of the other controller')
    assert max(np.max(np.abs(np.array(c.pressure) - before)) for c in arm.commands) < 2e3, second.stderr
    assert {c.source for c in arm.commands} == {f'/{TASK}'}  # so that the bridge knows the source


def test_a_stream_of_poses_that_ends_is_a_reference_lost(
    ros_process: Any, ros_client_node: Any, arm: Arm
) -> None:
    node = ros_client_node
    ros_process(f'soft_control.nodes.{TASK}', {'rate': 50.0, 'reference_timeout': 0.5})
    stream = node.announce(PoseStamped, 'reference/pose', COMMAND)
    node.spin_until(lambda: arm.commands, 'commands')
    message = PoseStamped(pose=poses(np.full(8, 0.1)).poses[0])
    message.header.frame_id = 'base_link'
    deadline = time.monotonic() + 30.0
    while not arm.highest > 20e3:
        assert time.monotonic() < deadline
        stream.publish(message)
        node.spin_for(0.05)
    arm.until_vented()
    arm.check_limits()


@pytest.mark.parametrize('trouble', ['silence', 'empty'])
def test_a_bridge_that_does_not_follow_ends_the_reference(
    ros_process: Any, ros_client_node: Any, arm: Arm, tmp_path: Path, trouble: str
) -> None:
    node, robot = ros_client_node, str(patient(ROBOT.name, tmp_path))
    process = ros_process(f'soft_control.nodes.{CONFIGURATION}', {'rate': 50.0, 'robot': robot})
    references = node.announce(JointTrajectory, 'reference/configuration', COMMAND)
    measured = node.announce(ChamberPressures, 'pressure/measured', SENSOR)
    share: float | None = 1.0  # of the measured command

    def measure() -> None:
        if arm.commands and share is not None:
            pressure = share * np.array(arm.commands[-1].pressure)
            message = ChamberPressures(names=list(ROBOT.chamber_names), pressure=float64s(pressure))
            measured.publish(message)

    node.create_timer(0.01, measure)
    node.spin_until(lambda: len(arm.commands) > 30, 'commands')
    references.publish(good(CONFIGURATION))
    arm.until_highest(20e3, ACTUATION.pressure_max)
    node.spin_for(2.0)
    assert arm.highest > 20e3, process.stderr
    share = None if trouble == 'silence' else 0.0
    arm.until_vented()
    told = 'no measured pressures for 0.5 s' if trouble == 'silence' else 'chambers stay empty'
    assert told in process.stderr
    share = 1.0
    node.spin_for(1.0)
    assert arm.highest == 0.0, 'the old reference was followed again'
    references.publish(good(CONFIGURATION))
    arm.until_highest(20e3, ACTUATION.pressure_max)
    arm.check_limits()


@pytest.mark.parametrize(
    ('name', 'params', 'line'),
    [
        (CONFIGURATION, {'rate': 19.0}, 'rate must be 20 to 2000, got 19.0'),
        (TASK, {'gains.singular': 2.0}, 'gains: singular must be between 0 and 1, got 2.0'),
        (
            CONFIGURATION,
            {'robot': 'fabric_arm', 'law': 'predictive'},
            'robot fabric_arm: expected no discs; the predictive law cannot linearise them',
        ),
        (CONFIGURATION, {'law': 'best'}, "law must be feedback or predictive, got 'best'"),
    ],
)
def test_bad_parameter_is_one_line_and_exit_code_1(
    ros_process: Any, name: str, params: dict[str, Any], line: str
) -> None:
    process = ros_process(f'soft_control.nodes.{name}', params)
    assert process.wait() == 1
    (only,) = process.stderr.splitlines()
    assert f'cannot start: {line}' in only
