"""mocap_bridge as a process, against an emulated Motive: the topics, and what happens in trouble."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState

from soft_dynamics.ros.conversions import time_to_ns
from soft_dynamics.ros.qos import SENSOR
from soft_hw_bridge.emulators.loop import Loop
from soft_hw_bridge.emulators.natnet import MotiveSettings, NatNetEmulator
from soft_hw_bridge.emulators.pose import Pose

MODULE = 'soft_hw_bridge.nodes.mocap_bridge'
RATE_HZ = 100.0
QUAT_TIP = (0.5, -0.5, 0.5, 0.5)
SETTINGS = {'clock_offset_s': 5 * 3600.0, 'clock_drift_ppm': 100.0, 'processing_s': 0.01}
OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR


class Motive:
    """An emulated Motive at work; the x of the body 'tip' is the number of the frame."""

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
    with (running := Motive()).loop:
        yield running
    running.emulator.close()


class Listener:
    """What the bridge publishes."""

    def __init__(self, node: Any) -> None:
        self.node = node
        self.tip: list[PoseStamped] = node.collect(PoseStamped, 'mocap/tip/pose', SENSOR)
        self.base: list[PoseStamped] = node.collect(PoseStamped, 'mocap/base/pose', SENSOR)
        self.arrays: list[DiagnosticArray] = node.collect(DiagnosticArray, '/diagnostics')

    @property
    def status(self) -> DiagnosticStatus:
        return self.arrays[-1].status[0] if self.arrays else DiagnosticStatus(level=DiagnosticStatus.STALE)

    def value(self, key: str) -> str:
        return next((item.value for item in self.status.values if item.key == key), '')

    def until_poses(self, messages: list[PoseStamped] | None = None) -> None:
        messages = self.tip if messages is None else messages
        messages.clear()
        self.node.spin_until(lambda: len(messages) > 10, 'poses')

    def until_level(self, level: bytes, text: str = '') -> float:
        """Wait for a diagnosis and return how long it took."""
        start = time.monotonic()
        self.node.spin_until(
            lambda: self.status.level == level and text in self.status.message, f'diagnosis {text}'
        )
        return time.monotonic() - start


def change(client: Any, transition: int) -> None:
    request = ChangeState.Request(transition=Transition(id=transition))
    assert client.call(ChangeState, 'mocap_bridge/change_state', request).success


@pytest.mark.parametrize('is_multicast', [False, True])
def test_poses_have_the_time_of_exposure_and_z_up(
    ros_process: Any, ros_client_node: Any, is_multicast: bool
) -> None:
    motive = Motive(is_multicast=is_multicast)
    with motive.loop:
        ros_process(MODULE, motive.params)
        listener = Listener(ros_client_node)
        listener.until_poses(listener.base)
        ros_client_node.spin_for(3.0)  # the drift is known
        listener.tip.clear()
        ros_client_node.spin_for(2.0)
        tip, base = listener.tip[-1], listener.base[-1]
        assert (base.pose.position.x, base.pose.position.y) == (pytest.approx(0.1), pytest.approx(0.2))
        assert (tip.pose.position.y, tip.pose.position.z) == (2.0, 3.0)
        orientation = tip.pose.orientation
        assert (orientation.x, orientation.y, orientation.z, orientation.w) == QUAT_TIP
        assert tip.header.frame_id == 'mocap_world'
        assert len(listener.tip) > RATE_HZ
        errors_ms = sorted(motive.stamp_errors_ms(listener.tip))
        assert errors_ms[len(errors_ms) * 9 // 10] < 1.0  # the rest: a busy machine that held the emulator up
        listener.until_level(OK, 'streaming')
        assert float(listener.value('clock_drift_ppm')) == pytest.approx(-100, abs=50)
        assert listener.value('lost') == '0'
        assert listener.status.hardware_id == f'Motive at 127.0.0.1:{motive.emulator.command_port}'
    motive.emulator.close()


def test_every_fault_is_told_and_survived(ros_process: Any, ros_client_node: Any, motive: Motive) -> None:
    process = ros_process(MODULE, motive.params)
    listener = Listener(ros_client_node)
    listener.until_poses()

    motive.faults.silent = True
    listener.until_level(ERROR, 'no answer from')
    motive.faults.clear()
    listener.until_level(OK)
    listener.until_poses()

    motive.faults.frozen = True
    listener.until_level(ERROR, 'no new frames')
    motive.faults.clear()
    listener.until_level(OK)
    listener.until_poses()

    motive.faults.untracked = frozenset({'tip'})
    listener.until_level(WARN, 'not tracked: tip')
    listener.tip.clear()
    listener.until_poses(listener.base)
    assert listener.tip == []
    assert int(listener.value('untracked.tip')) > 0
    motive.faults.clear()
    listener.until_level(OK)
    listener.until_poses()

    motive.faults.clock_jump_s = -1000.0
    ros_client_node.spin_for(1.0)
    listener.until_poses()
    assert max(motive.stamp_errors_ms(listener.tip)) < 20
    motive.faults.restart = True
    ros_client_node.spin_until(lambda: int(listener.value('reconnects') or 0) >= 3, 'third reconnection')
    motive.faults.clear()
    listener.until_poses()

    for fault, key in [
        ('drop', 'lost'),
        ('duplicate', 'duplicate'),
        ('reorder', 'out_of_order'),
        ('corrupt', 'malformed'),
    ]:
        before = int(listener.value(key))
        setattr(motive.faults, fault, 0.3)
        ros_client_node.spin_until(lambda key=key, before=before: int(listener.value(key)) > before, key)  # type: ignore[misc]
        listener.until_poses()
        motive.faults.clear()
    listener.until_level(OK)
    listener.until_poses()
    assert process.stop(signal.SIGINT) == 0
    assert 'Traceback' not in process.stderr


def test_only_active_bridge_publishes_and_nothing_old(
    ros_process: Any, ros_client_node: Any, motive: Motive
) -> None:
    ros_process(MODULE, motive.params | {'bodies': ['tip'], 'frame_id': 'lab'})
    listener = Listener(ros_client_node)
    listener.until_poses()
    assert listener.tip[-1].header.frame_id == 'lab'
    assert listener.base == []
    change(ros_client_node, Transition.TRANSITION_DEACTIVATE)
    ros_client_node.spin_for(0.2)
    listener.tip.clear()
    ros_client_node.spin_for(1.0)
    assert listener.tip == []
    again_ns = time.time_ns()
    change(ros_client_node, Transition.TRANSITION_ACTIVATE)
    listener.until_poses()
    assert all(time_to_ns(message.header.stamp) > again_ns - 100_000_000 for message in listener.tip)
    change(ros_client_node, Transition.TRANSITION_DEACTIVATE)
    change(ros_client_node, Transition.TRANSITION_CLEANUP)
    listener.until_level(DiagnosticStatus.STALE, 'not configured')
    change(ros_client_node, Transition.TRANSITION_CONFIGURE)
    change(ros_client_node, Transition.TRANSITION_ACTIVATE)
    listener.until_poses()


def test_motive_may_come_later_and_a_missing_body_is_told(ros_process: Any, ros_client_node: Any) -> None:
    motive = Motive()
    process = ros_process(MODULE, motive.params | {'bodies': ['tip', 'hand']})
    listener = Listener(ros_client_node)
    listener.until_level(ERROR, 'no answer from 127.0.0.1')
    with motive.loop:
        listener.until_poses()
        listener.until_level(WARN, 'Motive has no rigid body hand, but base, tip')
        assert process.stop(signal.SIGTERM) == 0
    motive.emulator.close()


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
    process = ros_process(MODULE, params)
    assert process.wait() == 1
    (only,) = process.stderr.splitlines()
    assert only.endswith(line)


def test_unusable_interface_is_one_line_and_the_node_waits(ros_process: Any, ros_client_node: Any) -> None:
    process = ros_process(MODULE, {'server': '127.0.0.1', 'interface': '192.0.2.1'})
    ros_client_node.spin_until(lambda: 'cannot listen on 192.0.2.1' in process.stderr, 'line')
    state = ros_client_node.call(GetState, 'mocap_bridge/get_state', GetState.Request())
    assert state.current_state.label == 'unconfigured'
