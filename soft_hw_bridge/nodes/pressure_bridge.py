"""Pressure I/O: follows `pressure/command`, publishes `pressure/measured`, obeys `pressure/emergency_stop`.

The bridge inflates nothing before activation. It vents when commands stop or are invalid, when a second publisher
commands, on deactivation, shutdown and errors. A separate process drives the valves, so a stall of this node does not
stall the valves. A valve terminal with a watchdog also vents when that process is killed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from soft_robot_suite.msg import ChamberPressures
from std_srvs.srv import Trigger

from soft_dynamics.diagnostics import Status
from soft_dynamics.ros.conversions import flat_reader, flat_writer, float64s
from soft_dynamics.ros.node_main import run_node
from soft_dynamics.ros.qos import SENSOR, STATE
from soft_dynamics.timing.boot_time import boot_time
from soft_hw_bridge.nodes.bridge_base import BridgeNode
from soft_hw_bridge.pressure.command import Command, in_order
from soft_hw_bridge.pressure.command_source import UNKNOWN
from soft_hw_bridge.pressure.config import DEVICES, PressureConfig, make_stream
from soft_hw_bridge.pressure.remote_stream import RemoteStream

_TOPIC = 'pressure/command'
_LARGEST = 20_000  # [bytes] of a command


class PressureBridge(BridgeNode[RemoteStream]):
    """Passes commands to the guard and publishes measurements. Active means armed."""

    config: PressureConfig
    refuses_simulated_time = True
    can_wait = True  # a cycle may be late by a millisecond

    def __init__(self) -> None:
        super().__init__('pressure_bridge', PressureConfig)
        self._stopped = False  # by an emergency stop, until deactivated
        self._losses = 0  # of the device
        self._heard_t = math.inf  # [s] of `boot_time`, when the last command arrived; inf: none so far
        self._seen_t: dict[bytes, float] = {}  # when each publisher of commands appeared, by GID
        self._generation = 0  # of publishers: how often one appeared during a silence
        self._publisher = self.create_publisher(ChamberPressures, 'pressure/measured', SENSOR)
        self._read = flat_reader(ChamberPressures)
        # Take all commands, not only the newest: one publisher must not hide another.
        self.create_subscription(ChamberPressures, _TOPIC, self._on_command, STATE, raw=True)
        self.create_service(Trigger, 'pressure/emergency_stop', self._on_emergency_stop)

    def check_config(self, config: PressureConfig) -> None:
        make_stream(config)

    def open_device(self) -> tuple[RemoteStream, str]:
        config = self.config
        where = DEVICES[config.device].where(config)
        stream = RemoteStream(config)
        self.get_logger().info(f'{config.device} at {where}, {stream.about}')
        if stream.watchdog is None:
            self.get_logger().warning(
                'no watchdog: if the device process is killed, the chambers keep their pressure'
            )
        if not stream.late_writes_excluded:
            self.get_logger().warning('cannot exclude one late write; a hardwired dump valve is required')
        empty = float64s(np.zeros(len(stream.names)))
        self._measured = flat_writer(ChamberPressures(names=stream.names, pressure=empty))
        return stream, f'{config.device} at {where}'

    def poll_device(self, device: RemoteStream) -> None:
        for measured in device.poll():
            if self.is_active:
                self._publisher.publish(self._measured.write(measured.stamp_ns, measured.pressure))

    def supervise_device(self, device: RemoteStream) -> Status:
        level, line, values = device.status()
        losses = int(str(values.get('device_losses', 0)))
        if losses > self._losses:  # it may have returned already
            self.get_logger().error(f'device lost: {values["last_loss"]}')
        self._losses = losses
        return Status(level, line, {**values, 'command_publishers': ' '.join(self._command_publishers())})

    def close_device(self, device: RemoteStream) -> None:
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

    def _command_publishers(self) -> list[str]:
        """Return the nodes that have a publisher of commands, even if it is silent."""
        found, t = self.get_publishers_info_by_topic(self.resolve_topic_name(_TOPIC)), boot_time()
        self._seen_t = {gid: self._seen_t.get(gid, t) for gid in (bytes(each.endpoint_gid) for each in found)}
        return sorted(f'{each.node_namespace.rstrip("/")}/{each.node_name}'[:100] for each in found)

    def _may_be_successor(self, t: float, timeout: float) -> bool:
        """Whether commands stopped for longer than their time-out, and a publisher has appeared since.

        The sequence number of a successor can follow that of its predecessor by chance.
        """
        if t - self._heard_t <= timeout:
            return False
        self._command_publishers()
        return max(self._seen_t.values(), default=0.0) > self._heard_t

    def _on_command(self, data: bytes, info: dict[str, Any]) -> None:
        device = self._device
        if device is None:
            return
        sequence, publisher = info.get('publication_sequence_number'), bytes(info.get('publisher_gid') or b'')
        t = boot_time()
        self._generation += self._may_be_successor(t, device.command_timeout)
        self._heard_t = t
        known = UNKNOWN if sequence is None else sequence
        command = Command(t, 0, known, False, publisher, (), self._generation)
        try:
            device.command(self._filled_in(command, data, device.names))
        except ValueError as error:
            device.refuse(command, str(error))

    def _filled_in(self, command: Command, data: bytes, chambers: list[str]) -> Command:
        """Return the command with the contents of its message; ValueError if it cannot be followed."""
        if len(data) > _LARGEST:
            raise ValueError(f'command: must have at most {_LARGEST} bytes, got {len(data)}')
        try:
            stamp_ns, (_, names, _, is_handover), (pressure,) = self._read.read(data)
        except ValueError as error:
            raise ValueError(f'command failed to parse: {error}') from None
        if not stamp_ns:
            raise ValueError('command has no stamp')
        if command.sequence == UNKNOWN and not command.publisher and len(self._command_publishers()) > 1:
            raise ValueError('commands from two publishers')
        pressures = in_order(names, pressure.tolist(), chambers)
        return command._replace(stamp_ns=stamp_ns, is_handover=bool(is_handover), pressure=pressures)

    def _on_emergency_stop(self, _: Any, response: Trigger.Response) -> Trigger.Response:
        """Stop now if there is a device, and stay stopped at the next activation in any case.

        `success` means that the valves hold zero, as read back, or that the bridge has no device that could fill them.
        """
        self._stopped = True
        known = [] if self.is_active else ['not active; the stop holds after activation']
        response.success = True
        if self._device is not None:
            response.success, what = self._device.emergency_stop()
            known.append(what)
        response.message = '; '.join([*known, 'deactivate and activate to resume'])
        self.get_logger().error('emergency stop')
        return response


def main(args: list[str] | None = None) -> int:
    return run_node(PressureBridge, args)
