"""vive_bridge as a process, against an emulated SteamVR: topics and fault handling."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest
from geometry_msgs.msg import PoseStamped
from ros.bridge_listener import ERROR, OK, BridgeListener, at_work

from soft_dynamics.ros.conversions import time_to_ns
from soft_dynamics.ros.qos import SENSOR
from soft_hw_bridge.emulators.background_runner import Loop
from soft_hw_bridge.emulators.openvr import OpenVrEmulator
from soft_hw_bridge.emulators.pose import Pose

MODULE = 'soft_hw_bridge.nodes.vive_bridge'
TIP, SPARE = 'LHR-0000000A', 'LHR-0000000B'


class SteamVr:
    """An emulated SteamVR in a thread, with two trackers that move forward, one above the other."""

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
    with at_work(SteamVr()) as running:
        yield running


@pytest.fixture
def tip(ros_client_node: Any) -> BridgeListener:
    return BridgeListener(ros_client_node, 'vive_bridge', PoseStamped, 'vive/tip/pose', SENSOR)


@pytest.fixture
def spare(ros_client_node: Any) -> BridgeListener:
    return BridgeListener(ros_client_node, 'vive_bridge', PoseStamped, 'vive/LHR_0000000B/pose', SENSOR)


def test_trackers_are_published_under_their_names(
    ros_process: Any, tip: BridgeListener, spare: BridgeListener, steam_vr: SteamVr
) -> None:
    process = ros_process(MODULE, steam_vr.params)
    tip.until_messages()
    spare.until_messages()
    pose = tip.messages[-1].pose
    assert (pose.position.y, pose.position.z) == (2.0, 1.0)
    assert spare.messages[-1].pose.position.z == 3.0
    quat = (pose.orientation.x, pose.orientation.y, pose.orientation.z, pose.orientation.w)
    assert quat == pytest.approx((0.5, -0.5, 0.5, 0.5))
    assert tip.messages[-1].header.frame_id == 'vive_world'
    stamps = [time_to_ns(message.header.stamp) for message in tip.messages]
    assert stamps == sorted(stamps)
    assert 0 <= time.time_ns() - stamps[-1] < 60e9
    tip.until_level(OK, 'tracking')
    assert process.stop(signal.SIGINT) == 0
    assert 'Traceback' not in process.stderr


def test_restart_changes_no_names(
    ros_process: Any, tip: BridgeListener, spare: BridgeListener, steam_vr: SteamVr
) -> None:
    process = ros_process(MODULE, steam_vr.params)
    tip.until_messages()
    reconnects = int(tip.value('reconnects') or 0)
    steam_vr.faults.restart = True  # SteamVR finds the trackers in another order after a restart
    tip.until_value('reconnects', reconnects)
    tip.until_messages()
    spare.until_messages()
    assert tip.messages[-1].pose.position.z == 1.0
    assert spare.messages[-1].pose.position.z == 3.0
    assert process.stop(signal.SIGTERM) == 0
    assert 'Traceback' not in process.stderr


def test_steam_vr_may_come_later(ros_process: Any, tip: BridgeListener) -> None:
    steam_vr = SteamVr()
    ros_process(MODULE, steam_vr.params)
    tip.until_level(ERROR, 'is it running?')
    with at_work(steam_vr):
        tip.until_messages()


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
    assert f'cannot start: {line}' in ros_process(MODULE, params).refusal()
