"""fiber_bridge as a process, against emulated devices."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from ros.bridge_listener import ERROR, OK, BridgeListener, at_work
from soft_robot_suite.msg import ShapeSamples

from soft_dynamics.ros.conversions import time_to_ns
from soft_dynamics.ros.qos import SENSOR
from soft_hw_bridge.emulators.background_runner import Loop
from soft_hw_bridge.emulators.odisi import OdisiEmulator
from soft_hw_bridge.emulators.shape import ShapeEmulator

MODULE = 'soft_hw_bridge.nodes.fiber_bridge'
RATE_HZ = 100.0
N = 213
S = 0.8e-3 * np.arange(N)
KAPPA = 5.0  # [1/m] about y
CIRCLE = np.column_stack([1 - np.cos(KAPPA * S), np.zeros(N), np.sin(KAPPA * S)]) / KAPPA
OFFSET_NS = 5 * 3600 * 10**9  # of the device's clock


class Fiber:
    """An emulated SHP1 device in a thread; its clock is hours off and runs 100 ppm fast."""

    def __init__(self) -> None:
        self.emulator = ShapeEmulator()
        self.faults = self.emulator.faults
        self.start_ns = time.time_ns()
        self.loop = Loop(self._step, time.sleep, RATE_HZ)
        self.params = {'host': '127.0.0.1', 'port': self.emulator.port}

    def _step(self, _: float) -> None:
        self.send(time.time_ns())

    def send(self, now_ns: int) -> None:
        """Send a current sample; its twist encodes the sample's time in s since the start."""
        elapsed_ns = now_ns - self.start_ns
        device_ns = OFFSET_NS + elapsed_ns + elapsed_ns // 10_000
        twist = np.full(N, elapsed_ns * 1e-9)
        self.emulator.send(device_ns, S, CIRCLE, np.tile([0.0, KAPPA], (N, 1)), twist)

    def stamp_error_ms(self, message: ShapeSamples) -> float:
        taken_ns = self.start_ns + message.curvature[2] * 1e9
        return (time_to_ns(message.header.stamp) - taken_ns) * 1e-6


@pytest.fixture
def fiber() -> Iterator[Fiber]:
    with at_work(Fiber()) as running:
        yield running


@pytest.fixture
def listener(ros_client_node: Any) -> BridgeListener:
    return BridgeListener(ros_client_node, 'fiber_bridge', ShapeSamples, 'fiber/shape', SENSOR)


def test_shape_has_points_curvature_and_the_time_of_measurement(
    ros_process: Any, ros_client_node: Any, listener: BridgeListener, fiber: Fiber
) -> None:
    process = ros_process(MODULE, fiber.params | {'frame_id': 'arm_base', 'offset': 0.05})
    listener.until_messages()
    ros_client_node.spin_for(4.0)  # the drift is known
    listener.until_messages(int(RATE_HZ))
    message = listener.messages[-1]
    assert message.header.frame_id == 'arm_base'
    np.testing.assert_allclose(message.arc_length, S + 0.05, atol=1e-6)
    np.testing.assert_allclose(np.reshape(message.points, (N, 3)), CIRCLE, atol=1e-6)
    np.testing.assert_allclose(np.reshape(message.curvature, (N, 3))[:, :2], np.tile([0.0, KAPPA], (N, 1)))
    errors = [abs(fiber.stamp_error_ms(m)) for m in listener.messages]
    assert np.median(errors) < 1.0
    listener.until_level(OK, 'streaming')
    assert float(listener.value('clock_offset_s')) == pytest.approx(
        (fiber.start_ns - OFFSET_NS) * 1e-9, rel=1e-9
    )
    assert listener.value('lost') == '0'
    assert listener.status.hardware_id == f'shp1 at 127.0.0.1:{fiber.emulator.port}'
    assert process.stop(signal.SIGINT) == 0
    assert 'Traceback' not in process.stderr


def test_device_may_come_later_and_only_the_active_bridge_publishes(
    ros_process: Any, listener: BridgeListener
) -> None:
    absent = ShapeEmulator()
    absent.close()
    process = ros_process(MODULE, {'host': '127.0.0.1', 'port': absent.port})
    listener.until_level(ERROR, f'no shape sensor at 127.0.0.1:{absent.port}')
    fiber = Fiber()
    fiber.emulator.close()
    fiber.emulator = ShapeEmulator(absent.port)
    with at_work(fiber):
        listener.until_messages()
        listener.change('deactivate')
        assert listener.is_mute()
        listener.change('cleanup', 'configure', 'activate')
        listener.until_messages()
    assert process.stderr.count('no shape sensor') == 1


def test_strain_becomes_a_shape(ros_process: Any, listener: BridgeListener) -> None:
    n, radius = 100, 1e-3
    angles = np.radians([0.0, 120.0, 240.0])
    microstrain = np.concatenate([np.full(n, -1e6 * KAPPA * radius * np.cos(a)) for a in angles]).tolist()
    device = OdisiEmulator({1: {'a': n, 'b': n, 'c': n}}, pitch_mm=2.0, rate_hz=RATE_HZ)
    params = {
        'protocol': 'odisi',
        'port': device.port,
        'cores.radius': [radius] * 3,
        'cores.angle': angles.tolist(),
        'odisi.channels': [1, 1, 1],
        'odisi.segments': ['a', 'b', 'c'],
    }
    try:
        with Loop(lambda _: device.send(time.time_ns(), 1, microstrain), time.sleep, RATE_HZ):
            ros_process(MODULE, params)
            listener.until_messages()
            listener.until_level(OK, 'streaming')
    finally:
        device.close()
    s = 2e-3 * np.arange(n)
    circle = np.column_stack([1 - np.cos(KAPPA * s), np.zeros(n), np.sin(KAPPA * s)]) / KAPPA
    np.testing.assert_allclose(np.reshape(listener.messages[-1].points, (n, 3)), circle, atol=1e-6)
    assert listener.value('product') == 'ODiSI 6104'


@pytest.mark.parametrize(
    ('params', 'line'),
    [
        ({'protocol': 'luna'}, "protocol must be one of shp1, odisi, fbgs_strain, fbgs_shape, got 'luna'"),
        ({'protocol': 'odisi'}, 'cores must be three or more and not collinear, to measure bending'),
    ],
)
def test_bad_parameter_is_one_line_and_exit_code_1(
    ros_process: Any, params: dict[str, Any], line: str
) -> None:
    assert ros_process(MODULE, params).refusal().endswith('cannot start: ' + line)
