"""The task controller in this process: stops, references and tips that reach it in any state."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rclpy
from geometry_msgs.msg import PoseStamped
from ros.test_controllers import ROBOT, poses
from ros.test_virtual_rig import full_robot
from std_srvs.srv import Trigger

from soft_control.nodes.task_controller import TaskController
from soft_control.safety import Mode, State


@pytest.fixture
def make_controller(tmp_path: Path) -> Iterator[Callable[..., TaskController]]:
    """Return a maker of the node in this process, of an arm whose tip both motion capture and a Vive tracker see."""
    made: list[TaskController] = []

    def make(**parameters: Any) -> TaskController:
        named = {'robot': full_robot(tmp_path), 'autostart': False} | parameters
        rclpy.init(args=['test', '--ros-args', *(x for k, v in named.items() for x in ('-p', f'{k}:={v}'))])
        made.append(TaskController())
        return made[-1]

    yield make
    for node in made:
        node.destroy_node()
    rclpy.try_shutdown()


@pytest.fixture
def task_controller(make_controller: Callable[..., TaskController]) -> TaskController:
    return make_controller()


@pytest.mark.parametrize('configured', [False, True])
def test_an_emergency_stop_is_kept_until_a_deactivation_whatever_the_state(
    task_controller: TaskController, configured: bool
) -> None:
    node = task_controller

    def mode_when_active() -> Mode:
        node.trigger_activate()
        assert node.active
        return node.loop.step(time.monotonic()).mode

    if configured:
        node.trigger_configure()
    response = node._on_emergency_stop(None, Trigger.Response())
    assert response.success
    assert 'not active, stopped all the same' in response.message
    if not configured:
        node.trigger_configure()
    assert mode_when_active() is Mode.STOPPED
    node.trigger_deactivate()
    assert mode_when_active() is Mode.IDLE


def test_a_reference_for_a_node_that_is_not_active_is_refused(task_controller: TaskController) -> None:
    task_controller._on_poses(poses(np.full(8, 0.1)))
    task_controller.trigger_configure()
    task_controller._on_poses(poses(np.full(8, 0.1)))
    assert task_controller.refused == 2


def test_a_pose_out_of_reach_is_refused(task_controller: TaskController) -> None:
    node, message = task_controller, poses(np.full(8, 0.1))
    node.trigger_configure()
    node.trigger_activate()
    node.loop.feed(State(time.monotonic(), ROBOT.rest, np.zeros(8)))
    for far, refused in ((0.0, 0), (0.3, 1), (-1.6, 2), (2.0, 3)):
        message.poses[0].position.z = 0.62 + far
        node.loop.feed(State(time.monotonic(), ROBOT.rest, np.zeros(8)))
        node._on_poses(message)
        assert node.refused == refused


@pytest.mark.parametrize(('rate', 'is_told'), [(50.0, False), (2000.0, True)])
def test_a_rate_that_no_cycle_can_keep_is_told(
    make_controller: Callable[..., TaskController],
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
        subscription.callback(message)
        return len(tips)

    assert says(vive, 'vive_world') == 1
    np.testing.assert_allclose(tips[0][:3, 3], [0.0, 0.0, 1.0], atol=1e-12)  # of a mount upside down at 1 m
    assert says(vive, 'moon') == 0
    assert says(vive, 'mocap_world') == 0
    assert says(mocap, 'mocap_world') == 1
    assert says(mocap, 'world') == 1
    assert says(vive, 'vive_world') == 0  # while motion capture is heard
    node._mocap_t -= 1.0
    assert says(vive, 'vive_world') == 1
