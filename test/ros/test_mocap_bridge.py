"""mocap_bridge as a process, against an emulated Motive: topics and fault handling."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from statistics import median
from typing import Any

import pytest
from geometry_msgs.msg import PoseStamped
from lifecycle_msgs.srv import GetState
from ros.bridge_listener import ERROR, OK, STALE, WARN, BridgeListener, at_work
from soft_robot_suite.msg import BodyPoses

from soft_dynamics.ros.conversions import time_to_ns
from soft_dynamics.ros.qos import SENSOR
from soft_hw_bridge.emulators.background_runner import Loop
from soft_hw_bridge.emulators.natnet import MotiveSettings, NatNetEmulator
from soft_hw_bridge.emulators.pose import Pose

MODULE = 'soft_hw_bridge.nodes.mocap_bridge'
RATE_HZ = 100.0
QUAT_TIP = (0.5, -0.5, 0.5, 0.5)
SETTINGS = {'clock_offset_s': 5 * 3600.0, 'clock_drift_ppm': 100.0, 'processing_s': 0.01}


class Motive:
    """An emulated Motive in a thread; the x of the body 'tip' is the frame number."""

    def __init__(self, **settings: Any) -> None:
        self.emulator = NatNetEmulator(['base', 'tip'], MotiveSettings(**(SETTINGS | settings)))
        self.faults = self.emulator.faults
        self.exposures_ns: list[int] = []
        self.loop = Loop(self._step, self.emulator.serve, RATE_HZ)
        self.params = {
            'server': '127.0.0.1',
            'interface': '127.0.0.1',
            'command_port': self.emulator.command_port,
        }

    def _step(self, _: float) -> None:
        number = len(self.exposures_ns)
        self.exposures_ns.append(time.time_ns() - 10_000_000)
        base, tip = Pose((0.1, 0.2, 0.3), (0.0, 0.0, 0.0, 1.0)), Pose((float(number), 2.0, 3.0), QUAT_TIP)
        self.emulator.send({'base': base, 'tip': tip}, self.exposures_ns[-1])

    def stamp_errors_ms(self, messages: list[PoseStamped]) -> list[float]:
        return [
            abs(time_to_ns(m.header.stamp) - self.exposures_ns[round(m.pose.position.x)]) * 1e-6
            for m in messages
        ]


@pytest.fixture
def motive() -> Iterator[Motive]:
    with at_work(Motive()) as running:
        yield running


class Listener(BridgeListener):
    """Subscribes to both bodies; `messages` are those of 'tip'."""

    def __init__(self, node: Any) -> None:
        super().__init__(node, 'mocap_bridge', PoseStamped, 'mocap/tip/pose', SENSOR)
        self.base: list[PoseStamped] = node.collect(PoseStamped, 'mocap/base/pose', SENSOR)
        self.frames: list[BodyPoses] = node.collect(BodyPoses, 'mocap/frame', SENSOR)


@pytest.fixture
def listener(ros_client_node: Any) -> Listener:
    return Listener(ros_client_node)


@pytest.mark.parametrize('is_multicast', [False, True])
def test_poses_have_the_time_of_exposure_and_z_up(
    ros_process: Any, ros_client_node: Any, listener: Listener, is_multicast: bool
) -> None:
    with at_work(Motive(is_multicast=is_multicast)) as motive:
        ros_process(MODULE, motive.params)
        ros_client_node.spin_until(lambda: listener.base, 'poses')
        ros_client_node.spin_for(3.0)  # the drift is known
        listener.until_messages(int(RATE_HZ))
        tip, base = listener.messages[-1], listener.base[-1]
        assert (base.pose.position.x, base.pose.position.y) == (pytest.approx(0.1), pytest.approx(0.2))
        assert (tip.pose.position.y, tip.pose.position.z) == (2.0, 3.0)
        orientation = tip.pose.orientation
        assert (orientation.x, orientation.y, orientation.z, orientation.w) == QUAT_TIP
        assert tip.header.frame_id == 'mocap_world'
        assert median(motive.stamp_errors_ms(listener.messages)) < 1.0
        listener.until_level(OK, 'streaming')
        assert listener.value('lost') == '0'
        assert listener.status.hardware_id == f'Motive at 127.0.0.1:{motive.emulator.command_port}'


def test_a_frame_holds_what_the_topics_of_its_bodies_say(
    ros_process: Any, ros_client_node: Any, listener: Listener, motive: Motive
) -> None:
    ros_process(MODULE, motive.params)

    def pairs() -> list[tuple[PoseStamped, BodyPoses]]:
        frames = {time_to_ns(frame.header.stamp): frame for frame in listener.frames}
        stamped = ((tip, time_to_ns(tip.header.stamp)) for tip in listener.messages)
        return [(tip, frames[stamp]) for tip, stamp in stamped if stamp in frames]

    ros_client_node.spin_until(pairs, 'a frame and a pose of the same time')
    tip, frame = pairs()[-1]
    assert (frame.header.frame_id, list(frame.names)) == ('mocap_world', ['base', 'tip'])
    assert list(frame.positions) == pytest.approx([0.1, 0.2, 0.3, tip.pose.position.x, 2.0, 3.0])
    assert list(frame.orientations) == [0.0, 0.0, 0.0, 1.0, *QUAT_TIP]


def test_only_active_bridge_publishes_and_nothing_old(
    ros_process: Any, listener: Listener, motive: Motive
) -> None:
    process = ros_process(MODULE, motive.params | {'bodies': ['tip'], 'frame_id': 'lab'})
    listener.until_messages()
    assert listener.messages[-1].header.frame_id == 'lab'
    assert listener.base == []
    listener.change('deactivate')
    assert listener.is_mute()
    again_ns = time.time_ns()
    listener.change('activate')
    listener.until_messages()
    assert all(time_to_ns(message.header.stamp) > again_ns - 250_000_000 for message in listener.messages)
    listener.change('deactivate', 'cleanup')
    listener.until_level(STALE, 'not configured')
    listener.change('configure', 'activate')
    listener.until_messages()
    assert process.stop(signal.SIGINT) == 0
    assert 'Traceback' not in process.stderr


def test_motive_may_come_later_and_a_missing_body_is_told(ros_process: Any, listener: Listener) -> None:
    motive = Motive()
    process = ros_process(MODULE, motive.params | {'bodies': ['tip', 'hand']})
    listener.until_level(ERROR, 'no answer from 127.0.0.1')
    with at_work(motive):
        listener.until_messages()
        listener.until_level(WARN, 'Motive has no rigid body hand (it has base, tip)')
        assert process.stop(signal.SIGTERM) == 0


@pytest.mark.parametrize(
    ('params', 'line'),
    [
        ({'up_axis': 'x'}, "cannot start: up_axis must be 'y' or 'z', got 'x'"),
        ({'command_port': 0}, 'cannot start: command_port must be in 1..65535, got 0'),
        ({'servr': 'here'}, 'cannot start: unknown parameter servr, did you mean server?'),
    ],
)
def test_bad_parameter_is_one_line_and_exit_code_1(
    ros_process: Any, params: dict[str, Any], line: str
) -> None:
    assert ros_process(MODULE, params).refusal().endswith(line)


def test_unknown_server_is_one_line_and_asked_for_again(ros_process: Any, ros_client_node: Any) -> None:
    process = ros_process(MODULE, {'server': 'no-such-host.invalid', 'interface': '127.0.0.1'})
    ros_client_node.spin_until(lambda: "cannot resolve 'no-such-host.invalid'" in process.stderr, 'line')
    state = ros_client_node.call(GetState, 'mocap_bridge/get_state', GetState.Request())
    assert state.current_state.label == 'active'
    assert process.stop() == 0
    assert 'Traceback' not in process.stderr


def test_unusable_interface_is_one_line_and_the_node_waits(ros_process: Any, ros_client_node: Any) -> None:
    process = ros_process(MODULE, {'server': '127.0.0.1', 'interface': '192.0.2.1'})
    ros_client_node.spin_until(lambda: 'cannot listen on 192.0.2.1' in process.stderr, 'line')
    state = ros_client_node.call(GetState, 'mocap_bridge/get_state', GetState.Request())
    assert state.current_state.label == 'unconfigured'
