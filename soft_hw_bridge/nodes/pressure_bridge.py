"""Pressure I/O: follows `pressure/command`, publishes `pressure/measured`, obeys `pressure/emergency_stop`.

Nothing is inflated before activation. It vents when commands stop, make no sense or come from two sources at once (by
the frame_id of their header), on deactivation, shutdown and errors; a valve terminal with a time-out of its own also
vents when this process is killed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from soft_robot_suite.msg import ChamberPressures
from std_srvs.srv import Trigger

from soft_dynamics.counters import Status
from soft_dynamics.ros.conversions import flat_reader, flat_writer, float64s
from soft_dynamics.ros.executor import in_passing, take_all
from soft_dynamics.ros.qos import SENSOR, STATE
from soft_dynamics.ros.run import run_node
from soft_hw_bridge.nodes.bridge import BridgeNode
from soft_hw_bridge.pressure.config import PressureConfig, make_stream
from soft_hw_bridge.pressure.stream import PressureStream


class PressureBridge(BridgeNode[PressureStream]):
    """Hands commands to the guard, and measurements to the topic. Active means armed."""

    config: PressureConfig
    can_wait = True  # a cycle that comes late by a millisecond harms nobody

    def __init__(self) -> None:
        super().__init__('pressure_bridge', PressureConfig)
        self._stopped = False  # by an emergency stop, until deactivated
        self._publisher = self.create_publisher(ChamberPressures, 'pressure/measured', SENSOR)
        self._read = flat_reader(ChamberPressures)
        self._commands = self.create_subscription(  # not only the newest: one source must not hide the other
            ChamberPressures, 'pressure/command', self._on_command, STATE, raw=True
        )
        in_passing(self._commands)  # the thread of the device takes them when it needs them
        self.create_service(Trigger, 'pressure/emergency_stop', self._on_emergency_stop)

    def check_config(self, config: PressureConfig) -> None:
        make_stream(config)

    def open_device(self) -> tuple[PressureStream, str]:
        config = self.config
        where = config.serial.port if config.device == 'serial' else config.modbus.host
        stream = make_stream(config, self.now_ns, self._stop)
        self._allow_unstamped = config.allow_unstamped
        self.get_logger().info(f'{config.device} at {where}, {stream.about}')
        if not stream.has_watchdog:
            self.get_logger().warning(
                'no watchdog: if this process is killed, the chambers keep their pressure'
            )
        empty = float64s(np.zeros(len(stream.names)))
        self._measured = flat_writer(ChamberPressures(names=stream.names, pressure=empty))
        return stream, f'{config.device} at {where}'

    def poll_device(self, device: PressureStream) -> None:
        for measured in device.poll(lambda: take_all(self._commands)):
            if self.is_active:
                self._publisher.publish(self._measured.write(measured.stamp_ns, measured.pressure))

    def supervise_device(self, device: PressureStream) -> Status:
        return device.status()

    def close_device(self, device: PressureStream) -> None:
        device.close()

    def on_activate(self, state: Any) -> Any:
        if self._device is not None and self._stopped:
            self._device.emergency_stop()
        elif self._device is not None:
            self._device.arm()
        return super().on_activate(state)

    def on_deactivate(self, state: Any) -> Any:
        self._stopped = False
        if self._device is not None:
            self._device.disarm()
        return super().on_deactivate(state)

    def _on_command(self, data: bytes) -> None:
        device = self._device  # one look: this may run in the thread of the device while that is given up
        if device is None:
            return
        try:
            stamp_ns, (_, names, source, _), (pressure,) = self._read.read(data)
        except ValueError as error:
            device.refuse(f'command that cannot be read: {error}')
            return
        if not stamp_ns and not self._allow_unstamped:
            device.refuse('command without a stamp, and allow_unstamped is false')
            return
        age = (self.now_ns() - stamp_ns) * 1e-9 if stamp_ns else 0.0
        device.command(names, pressure.tolist(), age, str(source))

    def _on_emergency_stop(self, _: Any, response: Trigger.Response) -> Trigger.Response:
        """Stop now if there is a device, and in any case stay so at the next activation."""
        self._stopped = True
        if self._device is not None:
            self._device.emergency_stop()
        response.success = True
        what = 'vented' if self.is_active else 'not active, stopped all the same: it will follow nothing'
        response.message = f'{what}; deactivate and activate to go on'
        self.get_logger().error('emergency stop')
        return response


def main(args: list[str] | None = None) -> int:
    return run_node(PressureBridge, args)
