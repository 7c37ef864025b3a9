"""Parameters of the pressure bridge, and construction of its stream."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from soft_dynamics.description.robot_description import load_description
from soft_dynamics.pressure_limits import chamber_limits
from soft_dynamics.reader import quantity
from soft_hw_bridge.pressure.device import DeviceKind, Stop
from soft_hw_bridge.pressure.guard import PressureLimits
from soft_hw_bridge.pressure.modbus_device import MODBUS, ModbusConfig
from soft_hw_bridge.pressure.serial_device import SERIAL, SerialConfig
from soft_hw_bridge.pressure.stream import PressureStream

DEVICES: dict[str, DeviceKind] = {  # by the name that the parameter `device` takes
    'modbus': MODBUS,
    'serial': SERIAL,
}
# Least cycles within safety.command_timeout: controllers time out on measurements as the bridge on commands.
_CYCLES_PER_TIMEOUT = 2.0
_CYCLES_PER_WATCHDOG = 3.0  # least cycles within the watchdog time of the device


@dataclass(frozen=True)
class PressureConfig:
    """The robot, which defines names and limits of the chambers, and the device."""

    robot: str = quantity('honeycomb_arm', doc='name of a shipped robot, or path of a robot file')
    device: str = quantity('modbus', doc='type of the valve device: modbus or serial')
    channels: tuple[int, ...] = quantity((), doc='channel of each chamber of the robot; empty: 0, 1, 2 ...')
    rate: float = quantity(200.0, unit='Hz', doc='rate of writing commands and reading measurements')
    modbus: ModbusConfig = ModbusConfig()
    serial: SerialConfig = SerialConfig()

    def __post_init__(self) -> None:
        if self.device not in DEVICES:
            raise ValueError(f'device must be one of {", ".join(DEVICES)}, got {self.device!r}')
        if not 1 <= self.rate <= 1000:
            raise ValueError(f'rate must be in 1..1000 Hz, got {self.rate}')


def make_stream(
    config: PressureConfig, now_ns: Callable[[], int] = time.time_ns, stop: Stop | None = None
) -> PressureStream:
    """Return the stream of a robot's chambers, not yet connected. Once `stop` is set, it does not wait for the device.

    Raises ValueError, FileNotFoundError or RobotFileError for invalid parameters and files.
    """
    robot = load_description(config.robot)
    names = [chamber.name for chamber in robot.actuation.chambers]
    if not names:
        raise ValueError(f'robot {robot.name} has no chambers')
    channels = config.channels or tuple(range(len(names)))
    if len(channels) != len(names):
        raise ValueError(
            f'channels must have {len(names)} entries, one per chamber of {robot.name}, got {len(channels)}'
        )
    least_rate = _CYCLES_PER_TIMEOUT / robot.safety.command_timeout
    if config.rate < least_rate:
        raise ValueError(f'rate must be at least {least_rate:g} Hz for {robot.name}, got {config.rate:g}')
    limits = PressureLimits(
        **chamber_limits(robot),
        command_timeout=robot.safety.command_timeout,
        valve_lag=robot.actuation.valve_lag,
        cycle=1.0 / config.rate,
    )
    device = DEVICES[config.device].make(config, channels, limits, now_ns, stop)
    if device.watchdog is not None and not _CYCLES_PER_WATCHDOG / config.rate <= device.watchdog:
        raise ValueError(
            f'rate must be at least {_CYCLES_PER_WATCHDOG / device.watchdog:g} Hz for a device with a watchdog of '
            f'{device.watchdog:g} s, got {config.rate:g}'
        )
    return PressureStream(device, names, limits)
