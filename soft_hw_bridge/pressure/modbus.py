"""Valves behind Modbus TCP, with a register map."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from soft_dynamics.reader import quantity
from soft_hw_bridge.errors import DeviceError
from soft_hw_bridge.pressure.device import Reading
from soft_hw_bridge.pressure.modbus_tcp import ModbusTcp, Words
from soft_hw_bridge.pressure.register_map import RegisterMap, Step, Wait
from soft_hw_bridge.pressure.safety import Array, PressureLimits

MAX_WRITE, MAX_READ = 123, 125  # registers in one request
_POLL_S = 0.02


@dataclass(frozen=True)
class ModbusConfig:
    """Where the valves are."""

    host: str = quantity('192.168.1.1', doc='name or address of the valve terminal')
    port: int = quantity(0, doc='0: the one of the register map')
    register_map: str = quantity('festo_mpa_vppm', doc='shipped map or path of a .yaml file')
    response_timeout: float = quantity(0.5, unit='s', doc='without an answer, connect again')
    device_timeout: float = quantity(0.2, unit='s', doc='without a request the device vents by itself')

    def __post_init__(self) -> None:
        if not 0 <= self.port < 65536:
            raise ValueError(f'port must be in 0..65535, got {self.port}')
        for name in ('response_timeout', 'device_timeout'):
            if not 0 < getattr(self, name) < 60:
                raise ValueError(f'{name} must be in 0..60 s, got {getattr(self, name)}')


class ModbusPressure:
    """Writes all set points and reads all measurements, one request each.

    channels: the device's channel of each chamber. stop: once it is set, `open` waits no longer.
    """

    sequence_bits = 32  # readings have no numbers
    malformed = 0  # nor can they be damaged: TCP

    def __init__(
        self,
        config: ModbusConfig,
        register_map: RegisterMap,
        channels: Sequence[int],
        limits: PressureLimits,
        now_ns: Callable[[], int] = time.time_ns,
        stop: threading.Event | None = None,
    ) -> None:
        if len(set(channels)) < len(channels) or not all(0 <= c < register_map.channels for c in channels):
            last = register_map.channels - 1
            raise ValueError(f'channels must differ and be in 0..{last}, got {list(channels)}')
        self._config = config
        self._map = register_map
        self._limits = limits
        self._now_ns = now_ns
        self._stop = stop or threading.Event()
        self._setpoints, self._out = _places([register_map.setpoint.of(channel) for channel in channels])
        self._measured, self._in = _places([register_map.measured.of(channel) for channel in channels])
        if len(self._out) > MAX_WRITE or len(self._in) > MAX_READ:
            raise ValueError(f'channels spread over {len(self._out)} registers, a request holds {MAX_WRITE}')
        watchdog = register_map.timeout
        self.has_watchdog = watchdog is not None
        self.about = (
            f'register map {config.register_map}, unit {register_map.device_id}: set points in {_span(self._out)}, '
            f'measured in {_span(self._in)}, {f"watchdog in {watchdog.address}" if watchdog else "no watchdog"}'
        )
        self._image: Words | None = None  # of the output registers, set points and what lies between them
        self._connection: ModbusTcp | None = None

    def open(self) -> None:
        """Connect, vent, set the device's own time-out, and start it. Raises DeviceError."""
        self._connect()
        self._image = self._read(self._out)
        self._put_out(np.zeros(len(self._setpoints)))
        self._set_timeout()
        self._run(self._map.start, self._stop)

    def exchange(self, pressure: Array) -> list[Reading]:
        """Put out pressures [Pa] and return the measured ones. Raises DeviceError."""
        self._put_out(pressure)
        asked_ns = self._now_ns()
        words = self._read(self._in)
        sampled_ns = (asked_ns + self._now_ns()) // 2
        return [Reading(self._map.to_pressure(words[self._measured]), sampled_ns)]

    def close(self) -> None:
        """Vent, stop the device, disconnect; where the connection has failed, over a new one."""
        if self._connection is None:
            return
        with contextlib.suppress(DeviceError):
            try:
                self._shut_down()
            except DeviceError:
                self._connection.close()
                self._connect()
                self._shut_down()
        self._connection.close()
        self._connection = self._image = None

    def _connect(self) -> None:
        config, port = self._config, self._config.port or self._map.port
        self._connection = ModbusTcp(config.host, port, self._map.device_id, config.response_timeout)

    def _shut_down(self) -> None:
        if self._image is not None:
            self._put_out(np.zeros(len(self._setpoints)))
            self._run(self._map.stop, threading.Event())

    def _put_out(self, pressure: Array) -> None:
        if self._image is not None:
            self._image[self._setpoints] = self._map.to_counts(pressure, self._limits)
            self._write(self._out.start, self._image)

    def _set_timeout(self) -> None:
        register = self._map.timeout
        if register is None:
            return
        ms = max(math.ceil(1000 * self._config.device_timeout), register.minimum_ms)
        words = np.array([ms >> 16 * k & 0xFFFF for k in range(register.words)], np.uint16)
        self._write(register.address, words)
        if (self._read(range(register.address, register.address + register.words)) != words).any():
            raise DeviceError(
                f'the device did not take the time-out of {ms} ms in register {register.address}'
            )

    def _run(self, steps: Sequence[Step], stop: threading.Event) -> None:
        for step in steps:
            addresses = range(step.address, step.address + step.stride * step.count, step.stride)
            if isinstance(step, Wait):
                self._wait(step, addresses, stop)
                continue
            for address in addresses:
                if self._image is not None and address in self._out:
                    self._image[address - self._out.start] = step.value
                self._write(address, np.array([step.value], np.uint16))

    def _wait(self, step: Wait, addresses: range, stop: threading.Event) -> None:
        deadline = time.monotonic() + step.timeout
        while True:
            words = self._read(range(addresses[0], addresses[-1] + 1))[:: step.stride]
            if (words & step.mask == step.value).all():
                return
            if time.monotonic() > deadline:
                raise DeviceError(f'registers {addresses} are {words.tolist()} after {step.timeout:g} s')
            if stop.wait(_POLL_S):
                raise DeviceError('stopped while the device started')

    def _write(self, address: int, words: Words) -> None:
        self._connected().write(address, words)

    def _read(self, addresses: range) -> Words:
        return self._connected().read(addresses.start, len(addresses))

    def _connected(self) -> ModbusTcp:
        if self._connection is None:
            raise DeviceError('the device is not opened')
        return self._connection


def _places(registers: Sequence[int]) -> tuple[npt.NDArray[np.intp], range]:
    """Where registers lie in the smallest range that holds them all, and that range."""
    span = range(min(registers), max(registers) + 1)
    return np.array(registers) - span.start, span


def _span(registers: range) -> str:
    return f'registers {registers[0]} to {registers[-1]}'
