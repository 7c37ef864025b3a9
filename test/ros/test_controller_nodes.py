"""The controllers in this process: stops, commands, references, tips and parameters in every state."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rclpy
import yaml
from geometry_msgs.msg import PoseStamped
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message
from ros.test_controllers import ROBOT, SAFETY, poses, trajectory
from ros.test_virtual_rig import full_robot
from soft_robot_suite.msg import ChamberPressures
from std_srvs.srv import Trigger

from soft_control.laws.configuration_space import ConfigurationLaw
from soft_control.nodes.configuration_controller import ConfigurationController
from soft_control.nodes.controller_base import ControllerNode
from soft_control.nodes.task_controller import TaskController
from soft_control.safety.state_machine import Memory, Mode, State
from soft_dynamics.description.robot_files import robot_file
from soft_dynamics.ros.conversions import float64s, time_from_ns
from soft_dynamics.timing.boot_time import boot_time


@pytest.fixture
def make_controller(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Return a factory for the node in this process; both motion capture and a Vive tracker see the tip."""
    made: list[ControllerNode] = []

    def make(kind: Callable[[], ControllerNode] = TaskController, **parameters: Any) -> ControllerNode:
        named = {'robot': full_robot(tmp_path), 'autostart': False} | parameters
        rclpy.init(args=['test', '--ros-args', *(x for k, v in named.items() for x in ('-p', f'{k}:={v}'))])
        made.append(kind())
        return made[-1]

    yield make
    for node in made:
        node.destroy_node()
    rclpy.try_shutdown()


@pytest.fixture
def task_controller(make_controller: Callable[..., Any]) -> TaskController:
    node: TaskController = make_controller()
    return node


def activate(node: ControllerNode) -> None:
    """Activate the node with an arm at rest."""
    node.trigger_configure()
    node.trigger_activate()
    assert node.active
    node.loop.feed(State(boot_time(), ROBOT.rest, np.zeros(8)))


def hear(node: ControllerNode, topic: str, message: Any) -> None:
    """Deliver a message to the node with an arm at rest."""
    (subscription,) = (s for s in node.subscriptions if s.topic_name == topic)
    data = serialize_message(message)
    node.loop.feed(State(boot_time(), ROBOT.rest, np.zeros(8)))
    subscription.callback(data)


def command(pressure: float) -> ChamberPressures:
    names = list(ROBOT.chamber_names)
    return ChamberPressures(names=names, pressure=float64s(np.full(len(names), pressure)))


@pytest.mark.parametrize('configured', [False, True])
def test_an_emergency_stop_is_kept_until_a_deactivation_whatever_the_state(
    task_controller: TaskController, configured: bool
) -> None:
    node = task_controller

    def mode_when_active() -> Mode:
        node.trigger_activate()
        assert node.active
        return node.loop.step(boot_time()).mode

    if configured:
        node.trigger_configure()
    response = node._on_emergency_stop(None, Trigger.Response())
    assert response.success
    assert 'not active; stopped for the next activation' in response.message
    if not configured:
        node.trigger_configure()
    assert mode_when_active() is Mode.STOPPED
    node.trigger_deactivate()
    assert mode_when_active() is Mode.IDLE


def test_a_reference_for_a_node_that_is_not_active_is_refused(task_controller: TaskController) -> None:
    hear(task_controller, '/reference/poses', poses(np.full(8, 0.1)))
    task_controller.trigger_configure()
    hear(task_controller, '/reference/poses', poses(np.full(8, 0.1)))
    assert task_controller.refused == 2


def test_a_pose_out_of_reach_and_too_many_are_refused(task_controller: TaskController) -> None:
    node, message = task_controller, poses(np.full(8, 0.1))
    activate(node)
    for far, refused in ((0.0, 0), (0.3, 1), (-1.6, 2), (2.0, 3)):
        message.poses[0].position.z = 0.62 + far
        hear(node, '/reference/poses', message)
        assert node.refused == refused
    message.poses[0].position.z = 0.62
    message.poses = message.poses * 500
    hear(node, '/reference/poses', message)
    assert node.refused == 3
    message.poses.append(message.poses[0])
    hear(node, '/reference/poses', message)
    assert node.refused == 4


def test_a_trajectory_beyond_the_limits_or_too_large_is_refused(
    make_controller: Callable[..., Any], capfd: pytest.CaptureFixture[str]
) -> None:
    node = make_controller(ConfigurationController)
    activate(node)
    hear(node, '/reference/configuration', trajectory((1.0, [0.1] * 8)))
    assert node.refused == 0
    followed = node.loop._reference
    hear(node, '/reference/configuration', trajectory((0.01, [0.5] * 8)))
    assert node.refused == 1
    assert 'reference refused: trajectory has a rate of segment1_theta1 beyond 20' in capfd.readouterr().err
    assert node.loop._reference is followed
    for points, refused in ((1900, 1), (2500, 2)):
        dense = trajectory(*((0.01 * k, [0.1] * 8) for k in range(1, points)))
        hear(node, '/reference/configuration', dense)
        assert node.refused == refused


def test_what_another_controller_commands_is_gone_on_from_within_limits_and_time(
    task_controller: TaskController,
) -> None:
    node = task_controller
    node.trigger_configure()
    for pressure, age, begin in (
        (50e3, 0.0, 50e3),
        (1e9, 0.0, 50e3),  # not heard
        (-1e9, 0.0, 50e3),
        (np.nan, 0.0, 50e3),
        (50e3, SAFETY.command_timeout + 0.01, 0.0),
    ):
        hear(node, '/pressure/command', command(pressure))
        assert node._commanded is not None
        node._commanded = node._commanded[0] - age, node._commanded[1]
        node.trigger_activate()
        np.testing.assert_array_equal(node.loop.memory.pressure, begin)
        node.trigger_deactivate()


def test_cycles_need_activation_and_one_that_was_held_up_first_lets_states_in(
    task_controller: TaskController,
) -> None:
    """After a stall the process finds its state old, although a newer one may be queued behind the call."""
    node, cycles = task_controller, []
    node.trigger_configure()

    def silence(passed: float) -> int:
        cycles.clear()
        node.loop.step = lambda t: cycles.append(t) or node.loop.memory  # type: ignore[method-assign, func-returns-value]
        node._awake_t = boot_time() - passed
        node._on_silence()
        return len(cycles)

    assert silence(0.0) == 0
    node.trigger_activate()
    assert silence(0.0) == 1
    assert silence(0.6 * SAFETY.state_timeout) == 0
    assert silence(0.6 * SAFETY.state_timeout) == 1  # still stalled: no state was queued


def test_losing_control_is_a_warning_and_a_stop_an_error_told_once_a_second(
    task_controller: TaskController, capfd: pytest.CaptureFixture[str]
) -> None:
    node = task_controller
    node.trigger_configure()
    node.trigger_activate()

    def lines(t: float, mode: Mode, reason: str) -> list[str]:
        memory = Memory(mode, np.zeros(16), t, reason=reason)
        node.loop.step = lambda _: memory  # type: ignore[method-assign]
        capfd.readouterr()
        node._cycle(t)
        return capfd.readouterr().err.splitlines()

    (line,) = lines(0.0, Mode.FOLLOWING, '')
    assert '[INFO]' in line
    (line,) = lines(0.01, Mode.VENTING, 'no state')
    assert '[WARN]' in line
    assert 'venting: no state' in line
    assert not lines(0.02, Mode.FOLLOWING, '')
    assert not lines(0.03, Mode.VENTING, 'state jumps')
    (line,) = lines(1.02, Mode.VENTING, 'state jumps')
    assert 'venting: state jumps' in line
    assert not lines(9.0, Mode.VENTING, 'state jumps')
    (line,) = lines(9.0, Mode.STOPPED, 'emergency stop')
    assert '[ERROR]' in line


def test_parameters_that_no_law_takes_are_refused_when_they_are_set(
    make_controller: Callable[..., Any], capfd: pytest.CaptureFixture[str]
) -> None:
    """Other changes of the law wait for the next configure."""
    node = make_controller(ConfigurationController)
    activate(node)
    (result,) = node.set_parameters([Parameter('gains.proportional', value=[1.0, 2.0, 3.0])])
    assert result.reason == 'proportional must have 1 or 8 entries, got 3'
    (result,) = node.set_parameters([Parameter('use_sim_time', value=True)])
    assert result.reason == 'use_sim_time must be false: this node commands hardware'
    capfd.readouterr()
    (result,) = node.set_parameters([Parameter('gains.proportional', value=[2.0])])
    assert result.successful
    assert 'law, gains and actuation change at the next configure' in capfd.readouterr().err
    assert node.loop.law.gains.proportional == (1.0,)
    node.trigger_deactivate()
    node.trigger_cleanup()
    node.trigger_configure()
    assert node.loop.law.gains.proportional == (2.0,)


def test_gains_are_eased_for_valve_lag_and_rate_whatever_else_is_set(
    make_controller: Callable[..., Any],
) -> None:
    parameters = {'robot': 'floating_actuator', 'rate': 100.0, 'gains.lookahead': 0.01}
    law = make_controller(ConfigurationController, **parameters).loop.law
    assert isinstance(law, ConfigurationLaw)
    assert law.gains.lookahead == 0.01
    assert law.gains.proportional[0] == pytest.approx(0.05, abs=0.005)


def test_a_rate_too_low_for_the_time_out_of_commands_is_refused(
    make_controller: Callable[..., Any], tmp_path: Path
) -> None:
    data = yaml.safe_load(robot_file('honeycomb_arm').read_text())
    data['safety']['command_timeout'] = 0.05
    (tmp_path / 'quick.yaml').write_text(yaml.safe_dump(data))
    with pytest.raises(ValueError, match='rate must be at least 40 Hz for honeycomb_arm, got 39'):
        make_controller(robot=tmp_path / 'quick.yaml', rate=39.0)


@pytest.mark.parametrize('kind', [TaskController, ConfigurationController])
def test_callbacks_of_a_controller_never_run_at_once(make_controller: Callable[..., Any], kind: Any) -> None:
    """Under any executor: all callbacks share one mutually exclusive group."""
    node = make_controller(kind)
    activate(node)
    assert isinstance(node.default_callback_group, MutuallyExclusiveCallbackGroup)
    entities = [*node.subscriptions, *node.timers, *node.services, *node.clients]
    assert {each.callback_group for each in entities} == {node.default_callback_group}


def test_measured_pressures_of_a_played_bag_are_not_taken(task_controller: TaskController) -> None:
    node, heard = task_controller, list[Any]()
    node.loop.feed_pressure = lambda t, pressure: heard.append(pressure)  # type: ignore[method-assign]
    message = command(1e3)
    for age_ns, taken in ((0, 1), (int(2e9), 1), (int(1e16), 1), (int(0.1e9), 2), (None, 3)):
        stamp_ns = 0 if age_ns is None else time.time_ns() - age_ns
        message.header.stamp = time_from_ns(stamp_ns)
        node.look()
        node._on_measured(serialize_message(message))
        assert len(heard) == taken


def test_poses_of_a_played_bag_are_refused(task_controller: TaskController) -> None:
    node, message = task_controller, poses(np.full(8, 0.1))
    activate(node)
    for age_ns, refused in ((0, 0), (int(5e9), 1), (-int(5e9), 2), (int(0.5e9), 2)):
        message.header.stamp = time_from_ns(time.time_ns() - age_ns)
        node.look()
        hear(node, '/reference/poses', message)
        assert node.refused == refused


@pytest.mark.parametrize(('rate', 'is_told'), [(50.0, False), (2000.0, True)])
def test_a_rate_that_no_cycle_can_keep_is_told(
    make_controller: Callable[..., Any],
    capfd: pytest.CaptureFixture[str],
    rate: float,
    is_told: bool,
) -> None:
    make_controller(rate=rate, law='predictive').trigger_configure()
    lines = [line for line in capfd.readouterr().err.splitlines() if f'too long for {rate:g} Hz' in line]
    assert len(lines) == is_told


def test_the_tip_is_heard_from_whoever_sees_it_and_motion_capture_goes_first(
    task_controller: TaskController,
) -> None:
    node = task_controller
    tips: list[Any] = []
    node.loop.feed_tip = lambda t, X_WT: tips.append(X_WT)  # type: ignore[method-assign]
    heard = {s.topic_name: s for s in node.subscriptions}
    vive, mocap = heard['/vive/tracker/pose'], heard['/mocap/plate4/pose']
    assert vive.is_in_passing
    assert mocap.is_in_passing
    message = PoseStamped()
    message.pose.orientation.w = 1.0

    def says(subscription: Any, frame: str) -> int:
        tips.clear()
        message.header.frame_id = frame
        subscription.callback(serialize_message(message))
        return len(tips)

    assert says(vive, 'vive_world') == 1
    np.testing.assert_allclose(tips[0][:3, 3], [0.0, 0.0, 1.0], atol=1e-12)  # of a mount upside down at 1 m
    assert says(vive, 'moon') == 0
    assert says(vive, 'mocap_world') == 0
    assert says(mocap, 'mocap_world') == 1
    assert says(mocap, 'world') == 1
    assert says(vive, 'vive_world') == 0  # while motion capture publishes
    node._mocap_t -= 1.0
    assert says(vive, 'vive_world') == 1
