"""vive_bridge as a process, against an emulated SteamVR: the topics, and what happens in trouble."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PoseStamped

from soft_dynamics.ros.conversions import time_to_ns
from soft_dynamics.ros.qos import SENSOR
from soft_hw_bridge.emulators.loop import Loop
from soft_hw_bridge.emulators.openvr import OpenVrEmulator
from soft_hw_bridge.emulators.pose import Pose

MODULE = 'soft_hw_bridge.nodes.vive_bridge'
TIP, SPARE = 'LHR-0000000A', 'LHR-0000000B'
OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR


class SteamVr:
    """An emulated SteamVR at work, with two trackers that move forward, one above the other."""

    def __init__(self) -> None:
        self.emulator = OpenVrEmulator([TIP, SPARE])
        self.faults = self.emulator.faults
        self.loop = Loop(self._step, self.emulator.serve, 200)
        self.params = {'trackers': [f'{TIP}=tip'], 'stand_in_port': self.emulator.port, 'rate': 200.0}

    def _step(self, t: float) -> None:
        quat = (0.5, -0.5, 0.5, 0.5)
        self.emulator.send({TIP: Pose((t, 2.0, 1.0), quat), SPARE: Pose((t, 0.0, 3.0), quat)})


@pytest.fixture
def steam_vr() -> Iterator[SteamVr]:
    with (running := SteamVr()).loop:
        yield running
    running.emulator.close()


class Listener:
    """What the bridge publishes."""

    def __init__(self, node: Any) -> None:
        self.node = node
        self.tip: list[PoseStamped] = node.collect(PoseStamped, 'vive/tip/pose', SENSOR)
        self.spare: list[PoseStamped] = node.collect(PoseStamped, 'vive/LHR_0000000B/pose', SENSOR)
        self.arrays: list[DiagnosticArray] = node.collect(DiagnosticArray, '/diagnostics')

    @property
    def status(self) -> DiagnosticStatus:
        return self.arrays[-1].status[0] if self.arrays else DiagnosticStatus(level=DiagnosticStatus.STALE)

    def value(self, key: str) -> str:
        return next((item.value for item in self.status.values if item.key == key), '')

    def until_poses(self) -> None:
        self.tip.clear()
        self.spare.clear()
        self.node.spin_until(lambda: len(self.tip) > 10 and len(self.spare) > 10, 'poses of both trackers')

    def until_level(self, level: bytes, text: str) -> None:
        self.node.spin_until(
            lambda: self.status.level == level and text in self.status.message, f'diagnosis {text}'
        )


def test_trackers_are_published_under_their_names(
    ros_process: Any, ros_client_node: Any, steam_vr: SteamVr
) -> None:
    process = ros_process(MODULE, steam_vr.params)
    listener = Listener(ros_client_node)
    listener.until_poses()
    tip = listener.tip[-1]
    assert (tip.pose.position.y, tip.pose.position.z) == (2.0, 1.0)
    assert listener.spare[-1].pose.position.z == 3.0
    orientation = tip.pose.orientation
    assert (orientation.x, orientation.y, orientation.z, orientation.w) == pytest.approx(
        (0.5, -0.5, 0.5, 0.5)
    )
    assert tip.header.frame_id == 'vive_world'
    assert 0 <= time.time_ns() - time_to_ns(tip.header.stamp) < 2_000_000_000
    stamps = [time_to_ns(message.header.stamp) for message in listener.tip]
    assert stamps == sorted(stamps)
    listener.until_level(OK, 'tracking')
    assert process.stop(signal.SIGINT) == 0
    assert 'Traceback' not in process.stderr


def test_every_fault_is_told_and_survived(ros_process: Any, ros_client_node: Any, steam_vr: SteamVr) -> None:
    process = ros_process(MODULE, steam_vr.params)
    listener = Listener(ros_client_node)
    listener.until_poses()

    steam_vr.faults.untracked = frozenset({TIP})
    listener.until_level(WARN, 'tip out of range')
    listener.tip.clear()
    ros_client_node.spin_for(0.3)
    assert listener.tip == []
    assert int(listener.value('tip.untracked')) > 0
    steam_vr.faults.clear()
    listener.until_level(OK, 'tracking')
    listener.until_poses()

    steam_vr.faults.frozen = True
    listener.until_level(WARN, 'does not change')
    steam_vr.faults.clear()
    listener.until_poses()

    steam_vr.faults.restart = True
    ros_client_node.spin_until(lambda: listener.value('reconnects') == '1', 'reconnection')
    listener.until_poses()
    assert listener.tip[-1].pose.position.z == 1.0
    assert listener.spare[-1].pose.position.z == 3.0

    steam_vr.faults.silent = True
    listener.until_level(ERROR, 'SteamVR')
    steam_vr.faults.clear()
    listener.until_level(OK, 'tracking')
    listener.until_poses()
    assert process.stop(signal.SIGTERM) == 0
    assert 'Traceback' not in process.stderr


def test_steam_vr_may_come_later(ros_process: Any, ros_client_node: Any) -> None:
    steam_vr = SteamVr()
    ros_process(MODULE, steam_vr.params)
    listener = Listener(ros_client_node)
    listener.until_level(ERROR, 'is it running?')
    with steam_vr.loop:
        listener.until_poses()
    steam_vr.emulator.close()


@pytest.mark.parametrize(
    ('params', 'line'),
    [
        ({'universe': 'flat'}, "universe must be one of seated, standing, raw, got 'flat'"),
        ({'trackers': ['LHR-1']}, "trackers must have the form serial=name, got 'LHR-1'"),
        ({'trackers': ['LHR-1=a', 'LHR-2=a']}, 'trackers must have different serials and names'),
        ({'rate': 0.0}, 'rate must be in (0, 1000], got 0.0'),
    ],
)
def test_bad_parameter_is_one_line_and_exit_code_1(
    ros_process: Any, params: dict[str, Any], line: str
) -> None:
    process = ros_process(MODULE, params)
    assert process.wait() == 1
    (only,) = process.stderr.splitlines()
    assert f'cannot start: {line}' in only
