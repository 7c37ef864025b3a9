"""Register map of a Modbus valve terminal: config/pressure/*.yaml."""

from __future__ import annotations

import itertools
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from soft_dynamics.description.robot_files import share_folder
from soft_dynamics.errors import RobotFileError
from soft_dynamics.reader import quantity, read
from soft_dynamics.strict_yaml import YamlError, load
from soft_hw_bridge.pressure.guard import Array, PressureLimits
from soft_hw_bridge.pressure.modbus_client import Words

LAST_ADDRESS = 65535


@dataclass(frozen=True)
class Block:
    """The registers of all channels: channel i is at address + stride (i // group) + i % group."""

    address: int = quantity(least=0, most=LAST_ADDRESS)
    stride: int = quantity(1, least=1, most=LAST_ADDRESS)
    group: int = quantity(1, least=1, most=LAST_ADDRESS, doc='number of channels in adjacent registers')

    def of(self, channel: int) -> int:
        """Return the register of a channel."""
        return self.address + self.stride * (channel // self.group) + channel % self.group


@dataclass(frozen=True)
class DeviceTimeout:
    """Register of the device's own watchdog, in milliseconds; two words have the low word first."""

    address: int = quantity(least=0, most=LAST_ADDRESS)
    words: int = quantity(1, least=1, most=2)
    minimum_ms: int = quantity(100, least=1, most=1000, unit='ms')


@dataclass(frozen=True)
class Write:
    """Write a value to `count` registers, `stride` apart."""

    type: Literal['write']
    address: int = quantity(least=0, most=LAST_ADDRESS)
    value: int = quantity(least=0, most=65535)
    stride: int = quantity(1, least=1, most=LAST_ADDRESS)
    count: int = quantity(1, least=1, most=LAST_ADDRESS)


@dataclass(frozen=True)
class Wait:
    """Wait until (register & mask) == value in `count` registers, `stride` apart."""

    type: Literal['wait']
    address: int = quantity(least=0, most=LAST_ADDRESS)
    value: int = quantity(least=0, most=65535)
    mask: int = quantity(65535, least=0, most=65535)
    stride: int = quantity(1, least=1, most=LAST_ADDRESS)
    count: int = quantity(1, least=1, most=LAST_ADDRESS)
    timeout: float = quantity(5.0, unit='s', above=0.0, most=60.0)


Step = Write | Wait


@dataclass(frozen=True)
class RegisterMap:
    """A register map file. Addresses are raw holding registers, as in requests; one count is `scale` Pa."""

    format: Literal[1]
    setpoint: Block
    measured: Block
    channels: int = quantity(least=1, most=120)
    scale: float = quantity(unit='Pa', above=0.0, doc='pressure of one count')
    ambient: float = quantity(
        0.0,
        unit='Pa',
        least=0.0,
        doc='reading of a vented chamber: 0 for a gauge sensor, 101325 for an absolute one',
    )
    signed: bool = False  # measurements below ambient are two's complement
    device_id: int = quantity(1, least=0, most=255)
    port: int = quantity(502, least=1, most=65535)
    timeout: DeviceTimeout | None = None
    start: tuple[Step, ...] = ()
    stop: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        last = {name: getattr(self, name).of(self.channels - 1) for name in ('setpoint', 'measured')}
        for name in ('start', 'stop'):
            steps = getattr(self, name)
            last[name] = max([step.address + step.stride * (step.count - 1) for step in steps], default=0)
        if self.timeout is not None:
            last['timeout'] = self.timeout.address + self.timeout.words - 1
        for name, address in last.items():
            if address > LAST_ADDRESS:
                raise ValueError(f'{name}: expected registers up to {LAST_ADDRESS}, got {address}')
        self._check_overlap()

    def _check_overlap(self) -> None:
        """Reject blocks that share registers, and a start or stop that writes set points or the watchdog."""
        timeout = self.timeout
        blocks = {
            'setpoint': {self.setpoint.of(channel) for channel in range(self.channels)},
            'measured': {self.measured.of(channel) for channel in range(self.channels)},
            'timeout': set()
            if timeout is None
            else set(range(timeout.address, timeout.address + timeout.words)),
        }
        for name, other in itertools.combinations(blocks, 2):
            shared = blocks[name] & blocks[other]
            if shared:
                raise ValueError(f'{other}: must not share registers with {name}, got {min(shared)} in both')
        vented = self.ambient / self.scale
        for name in ('start', 'stop'):
            for step in getattr(self, name):
                written = set(range(step.address, step.address + step.stride * step.count, step.stride))
                if isinstance(step, Wait):
                    continue
                if written & blocks['timeout']:
                    raise ValueError(f'{name}: must not write the watchdog, got register {step.address}')
                if written & blocks['setpoint'] and abs(step.value - vented) > 1.0:
                    raise ValueError(
                        f'{name}: may write only {vented:.0f} (vented) to set points, got {step.value} '
                        f'from register {step.address}'
                    )

    def to_counts(self, pressure: Array, limits: PressureLimits) -> Words:
        """Return the register values of pressures [Pa], rounded and clipped to the limits.

        Non-finite pressures become vented. This is the last gate before the wire.
        """
        low = max(math.ceil((limits.pressure_min + self.ambient) / self.scale), 0)
        high = max(min(math.floor((limits.pressure_max + self.ambient) / self.scale), 65535), 0)
        counts = np.rint((np.where(np.isfinite(pressure), pressure, 0.0) + self.ambient) / self.scale)
        return np.minimum(np.maximum(counts, low), high).astype(np.uint16)

    def to_pressure(self, counts: Words) -> Array:
        """Return the pressures [Pa] from register values."""
        values = counts.view(np.int16) if self.signed else counts
        return values.astype(np.float64) * self.scale - self.ambient


def load_register_map(name: str | os.PathLike[str]) -> RegisterMap:
    """Read a shipped map ('festo_vtem') or a path ending in .yaml.

    Raises FileNotFoundError with the shipped names, or RobotFileError with all problems in the file.
    """
    folder = share_folder() / 'config' / 'pressure'
    path = Path(name)
    if path.suffix not in ('.yaml', '.yml'):
        path = folder / f'{name}.yaml'
    if not path.is_file():
        shipped = ', '.join(sorted(p.stem for p in folder.glob('*.yaml')))
        raise FileNotFoundError(
            f'no register map {str(name)!r}; shipped are {shipped}; else give a .yaml file'
        )
    try:
        data = load(path)
    except YamlError as error:
        raise RobotFileError(path.name, [str(error)]) from None
    problems: list[str] = []
    register_map = read(RegisterMap, data, '', problems)
    if register_map is None:
        raise RobotFileError(path.name, problems)
    return register_map
