"""ft_bridge as a process, against an emulated Net F/T box."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from geometry_msgs.msg import WrenchStamped
from ros.bridge_listener import ERROR, OK, WARN, BridgeListener, at_work
from std_srvs.srv import Trigger

from soft_dynamics.ros.conversions import time_to_ns
from soft_dynamics.ros.qos import SENSOR
from soft_hw_bridge.emulators.background_runner import Loop
from soft_hw_bridge.emulators.netft import NetFtEmulator

MODULE = 'soft_hw_bridge.nodes.ft_bridge'
RATE_HZ = 500.0


class Box:
    """An emulated box in a thread; Fx counts the samples."""

    def __init__(self) -> None:
        self.emulator = NetFtEmulator(rate_hz=RATE_HZ, torque_unit=('Nmm', 1e-3))
        self.faults = self.emulator.faults
        self.sent_ns: list[int] = []
        self.loop = Loop(self._step, time.sleep, RATE_HZ)
        self.params = {
            'host': '127.0.0.1',
            'rdt_port': self.emulator.rdt_port,
            'http_port': self.emulator.http_port,
        }

    def _step(self, _: float) -> None:
        self.sent_ns.append(time.time_ns())
        self.emulator.send((1e-3 * (len(self.sent_ns) - 1), -2.0, 3.0), (0.1, -0.2, 0.3))


@pytest.fixture
def box() -> Iterator[Box]:
    with at_work(Box()) as running:
        yield running


@pytest.fixture
def listener(ros_client_node: Any) -> BridgeListener:
    return BridgeListener(ros_client_node, 'ft_bridge', WrenchStamped, 'ft/wrench', SENSOR)


def test_wrenches_in_si_units_at_the_time_of_the_sample(
    ros_process: Any, listener: BridgeListener, box: Box
) -> None:
    process = ros_process(MODULE, box.params)
    listener.until_messages(3 * int(RATE_HZ))
    wrench = listener.messages[-1].wrench
    assert (wrench.force.y, wrench.force.z) == pytest.approx((-2.0, 3.0))
    assert (wrench.torque.x, wrench.torque.y, wrench.torque.z) == pytest.approx((0.1, -0.2, 0.3))
    assert listener.messages[-1].header.frame_id == 'ft_sensor'
    late_ms = [
        (time_to_ns(m.header.stamp) - box.sent_ns[round(1e3 * m.wrench.force.x)]) * 1e-6
        for m in listener.messages[-500:]
    ]
    assert sorted(late_ms)[250] == pytest.approx(0.0, abs=50.0)  # a busy emulator is late but counts right
    listener.until_level(OK, 'streaming')
    listener.until_value('rate_hz', 0.5 * RATE_HZ)
    assert listener.status.hardware_id == f'Net F/T at 127.0.0.1:{box.emulator.rdt_port}'
    assert listener.value('product') == 'Net F/T (emulated)'
    assert process.stop(signal.SIGINT) == 0
    assert 'Traceback' not in process.stderr


def test_bias_service(ros_process: Any, ros_client_node: Any, listener: BridgeListener, box: Box) -> None:
    ros_process(MODULE, box.params)
    listener.until_messages()
    assert ros_client_node.call(Trigger, 'ft/bias', Trigger.Request()).success
    ros_client_node.spin_until(lambda: abs(listener.messages[-1].wrench.force.z) < 1e-9, 'a wrench of zero')
    box.faults.silent = True
    listener.until_level(ERROR, 'no new records')
    refused = ros_client_node.call(Trigger, 'ft/bias', Trigger.Request())
    assert not refused.success
    assert 'no new records' in refused.message


def test_status_of_the_box_is_told(ros_process: Any, listener: BridgeListener, box: Box) -> None:
    ros_process(MODULE, box.params)
    listener.until_messages()
    box.emulator.status = 0x80020000
    listener.until_level(ERROR, 'saturation')
    box.emulator.status = 0x80010000
    listener.until_level(WARN, 'monitor condition')
    box.emulator.status = 0
    listener.until_level(OK, 'streaming')


def test_restarted_box_is_calibrated_anew(ros_process: Any, listener: BridgeListener, box: Box) -> None:
    process = ros_process(MODULE, box.params)
    listener.until_messages()
    listener.until_level(OK, 'streaming')
    reconnects = int(listener.value('reconnects'))
    box.emulator.counts_per_force *= 100
    box.faults.restart = True
    listener.until_value('reconnects', reconnects)
    listener.until_messages()
    assert listener.messages[-1].wrench.force.z == pytest.approx(3.0)
    assert process.stop(signal.SIGTERM) == 0
    assert 'Traceback' not in process.stderr


def test_strangers_are_not_heard(ros_process: Any, listener: BridgeListener, box: Box) -> None:
    ros_process(MODULE, box.params)
    listener.until_messages()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for _ in range(3):
            stranger.sendto(bytes(36), box.emulator._client)
        listener.until_value('foreign', 2)
    assert all(m.wrench.force.z == pytest.approx(3.0) for m in listener.messages)


def test_box_may_come_later_and_only_the_active_bridge_publishes(
    ros_process: Any, listener: BridgeListener
) -> None:
    box = Box()
    ros_process(MODULE, box.params)
    listener.until_level(ERROR, 'no new records from 127.0.0.1')
    with at_work(box):
        listener.until_messages()
        listener.change('deactivate')
        assert listener.is_mute()
        listener.change('cleanup', 'configure', 'activate')
        listener.until_messages()


def test_bad_parameter_is_one_line_and_exit_code_1(ros_process: Any) -> None:
    line = "cannot start: status_table must be one of net_box, axia, got 'nano'"
    assert ros_process(MODULE, {'status_table': 'nano'}).refusal().endswith(line)
