"""Valves on Modbus TCP, described by a register map."""

from __future__ import annotations

import contextlib
import math
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from soft_dynamics.reader import quantity
from soft_dynamics.timing.boot_time import boot_time
from soft_hw_bridge.errors import DeviceError, SetpointsChangedError
from soft_hw_bridge.pressure.contact_lease import ContactLease
from soft_hw_bridge.pressure.device import DeviceKind, Reading, Stop
from soft_hw_bridge.pressure.guard import Array, PressureLimits
from soft_hw_bridge.pressure.modbus_client import ModbusTcp, Words
from soft_hw_bridge.pressure.register_map import DeviceTimeout, RegisterMap, Step, Wait, load_register_map

MAX_WRITE, MAX_READ = 123, 125  # registers in one request
MOST_WATCHDOG = 1.0  # [s]
_POLL_S = 0.02
_HELD = 0.5  # of the watchdog time: limit from a decision to the start of its last write
_CHECK_S = 1.0  # between two checks of the watchdog register and the state of the device


@dataclass(frozen=True)
class ModbusConfig:
    """Address and register map of the valve terminal, and time-outs."""

    host: str = quantity('192.168.1.1', doc='host name or address of the valve terminal')
    port: int = quantity(0, doc='TCP port; 0: from the register map')
    register_map: str = quantity(
        'festo_mpa_vppm', doc='name of a shipped register map, or path of a .yaml file'
    )
    response_timeout: float = quantity(
        0.1, unit='s', doc='reconnect after this time without a response; < device_timeout'
    )
    device_timeout: float = quantity(
        0.2, unit='s', doc='the device vents by itself after this time without a request; <= 1 s'
    )

    def __post_init__(self) -> None:
        if not 0 <= self.port < 65536:
            raise ValueError(f'port must be in 0..65535, got {self.port}')
        if not 0 < self.device_timeout <= MOST_WATCHDOG:
            raise ValueError(
                f'device_timeout must be > 0 and <= {MOST_WATCHDOG:g} s, got {self.device_timeout}'
            )
        if not 0 < self.response_timeout < self.device_timeout:
            raise ValueError(
                f'response_timeout must be > 0 and < device_timeout {self.device_timeout:g} s, '
                f'got {self.response_timeout}'
            )


class ModbusPressure:
    """Reads measurements and set points in one request each, and writes set points in one per run of registers.

    channels: the device's channel of each chamber. stop: once it is set, `open` stops waiting. A cycle writes only the
    registers of set points, not those between them.
    """

    sequence_bits = 32  # readings have no sequence numbers
    malformed = 0  # TCP delivers no damaged answers
    late_writes_excluded = False  # Modbus has neither an epoch nor a validity time

    def __init__(
        self,
        config: ModbusConfig,
        register_map: RegisterMap,
        channels: Sequence[int],
        limits: PressureLimits,
        now_ns: Callable[[], int] = time.time_ns,
        stop: Stop | None = None,
        boot: Callable[[], float] = boot_time,
        connect: Callable[..., socket.socket] = socket.create_connection,
    ) -> None:
        if len(set(channels)) < len(channels) or not all(0 <= c < register_map.channels for c in channels):
            last = register_map.channels - 1
            raise ValueError(f'channels must differ and be in 0..{last}, got {list(channels)}')
        self._config, self._map, self._limits = config, register_map, limits
        self._now_ns, self._boot, self._connect_socket = now_ns, boot, connect
        self._stop: Stop = stop or threading.Event()
        self._setpoints, self._out = _places([register_map.setpoint.of(channel) for channel in channels])
        self._measured, self._in = _places([register_map.measured.of(channel) for channel in channels])
        if max(len(self._out), len(self._in)) > MAX_READ:
            raise ValueError(
                f'channels must fit into one request of {MAX_READ} registers, got {max(len(self._out), len(self._in))}'
            )
        self._runs = _runs(sorted(self._setpoints.tolist()))
        watchdog = register_map.timeout
        self._watchdog_ms = math.ceil(1000 * config.device_timeout)
        if watchdog is not None:
            self._watchdog_ms = max(self._watchdog_ms, watchdog.minimum_ms)
        self.watchdog = None if watchdog is None else 1e-3 * self._watchdog_ms
        self.about = (
            f'register map {config.register_map}, unit {register_map.device_id}: set points in {_span(self._out)}, '
            f'measured in {_span(self._in)}, {f"watchdog in {watchdog.address}" if watchdog else "no watchdog"}'
        )
        self._lease = ContactLease(boot)
        self._written: Words | None = None  # set points in the device; None: not open
        self._checked_t = self._failed_t = -math.inf
        self._connection: ModbusTcp | None = None

    def open(self) -> None:
        """Connect, vent, set the watchdog, start the device, and verify that it holds zero. Raises DeviceError.

        After a failure it first waits for the watchdog time. A write that was delayed on the way then arrives while the
        device still holds the earlier set points, or after the device has vented by itself.
        """
        wait = self._failed_t + (self.watchdog or 0.0) - self._boot()
        if wait > 0.0 and self._stop.wait(wait):
            raise DeviceError('stopped before the device was opened')
        self._connect()
        self._put_out(self._zero())
        self._set_watchdog()
        self._run(self._map.start, self._stop)
        self._put_out(self._zero())
        self._check_setpoints()

    def read(self) -> list[Reading]:
        """Return the measured pressures [Pa], after verifying that the device holds the last set points."""
        asked_ns = self._now_ns()
        words = self._read(self._in)
        sampled_ns = (asked_ns + self._now_ns()) // 2
        self._check_setpoints()
        if self._boot() - self._checked_t >= _CHECK_S:
            self._check_device()
        return [Reading(self._map.to_pressure(words[self._measured]), sampled_ns)]

    def write(self, pressure: Array, decided_t: float | None = None) -> None:
        """Write set points [Pa], clipped to the limits."""
        until = (self._boot() if decided_t is None else decided_t) + _HELD * (self.watchdog or MOST_WATCHDOG)
        self._put_out(self._map.to_counts(pressure, self._limits), until)

    def close(self) -> None:
        """Vent, stop the device, disconnect.

        After a failure of the connection, the watchdog of the device vents; without one, a new connection does.
        """
        if self._connection is None:
            return
        with contextlib.suppress(DeviceError):
            if self.watchdog is None and self._connection.has_failed:
                self._connection.close()
                self._connect()
            if not self._connection.has_failed:
                self._shut_down()
        if self._connection.has_failed:
            self._failed_t = self._boot()
        self._connection.close()
        self._connection = self._written = None

    def _connect(self) -> None:
        config, port = self._config, self._config.port or self._map.port
        self._lease.start(1e-3 * self._watchdog_ms)
        self._connection = ModbusTcp(
            (config.host, port),
            self._map.device_id,
            config.response_timeout,
            self._lease,
            self._boot,
            self._connect_socket,
        )

    def _shut_down(self) -> None:
        if self._written is not None:
            self._put_out(self._zero())
            self._run(self._map.stop, threading.Event())

    def _zero(self) -> Words:
        return self._map.to_counts(np.zeros(len(self._setpoints)), self._limits)

    def _put_out(self, counts: Words, until: float = math.inf) -> None:
        """Write set points; the registers between them belong to the device, its `start` and its `stop`.

        until: when the decision becomes too old [s]. The lease does not limit this: each answer renews it.
        """
        image = np.zeros(len(self._out), np.uint16)
        image[self._setpoints] = counts
        for run in self._runs:
            self._connected().write(self._out.start + run.start, image[run.start : run.stop], until)
        self._written = counts

    def _check_setpoints(self) -> None:
        held = self._read(self._out)[self._setpoints]
        if self._written is None or (held != self._written).any():
            raise SetpointsChangedError(
                'set points read back differ from those written: the device has vented or was reset, or another master '
                'writes to it'
            )

    def _set_watchdog(self) -> None:
        register = self._map.timeout
        if register is not None:
            self._connected().write(register.address, self._watchdog_words(register))
            self._check_watchdog()

    def _check_device(self) -> None:
        """Verify that the watchdog is still set, and the state for which `start` waited."""
        self._checked_t = self._boot()
        self._check_watchdog()
        for step in self._map.start:
            if isinstance(step, Wait) and not self._holds(step):
                raise DeviceError(
                    f'the device has stopped: register {step.address} no longer has its value after the start'
                )

    def _check_watchdog(self) -> None:
        register = self._map.timeout
        if register is None:
            return
        held = self._read(range(register.address, register.address + register.words))
        if (held != self._watchdog_words(register)).any():
            raise DeviceError(
                f'register {register.address} does not hold the watchdog time of {self._watchdog_ms} ms'
            )

    def _watchdog_words(self, register: DeviceTimeout) -> Words:
        return np.array([self._watchdog_ms >> 16 * k & 0xFFFF for k in range(register.words)], np.uint16)

    def _run(self, steps: Sequence[Step], stop: Stop) -> None:
        for step in steps:
            if isinstance(step, Wait):
                self._wait(step, stop)
                continue
            for address in _addresses(step):
                self._connected().write(address, np.array([step.value], np.uint16))

    def _wait(self, step: Wait, stop: Stop) -> None:
        deadline = self._boot() + step.timeout
        while not self._holds(step):
            if self._boot() > deadline:
                raise DeviceError(
                    f'{_span(_addresses(step))} must become {step.value} (mask {step.mask}) within {step.timeout:g} s'
                )
            if stop.wait(_POLL_S):
                raise DeviceError('stopped while the device started')

    def _holds(self, step: Wait) -> bool:
        """Whether the registers have the values that the step waits for."""
        addresses = _addresses(step)
        words = self._read(range(addresses[0], addresses[-1] + 1))[:: step.stride]
        return bool((words & step.mask == step.value).all())

    def _read(self, addresses: range) -> Words:
        return self._connected().read(addresses.start, len(addresses))

    def _connected(self) -> ModbusTcp:
        if self._connection is None:
            raise DeviceError('the device is not open')
        return self._connection


def _addresses(step: Step) -> range:
    return range(step.address, step.address + step.stride * step.count, step.stride)


def _places(registers: Sequence[int]) -> tuple[npt.NDArray[np.intp], range]:
    """Return the positions of registers in the smallest range that contains them, and that range."""
    span = range(min(registers), max(registers) + 1)
    return np.array(registers) - span.start, span


def _runs(places: Sequence[int]) -> list[range]:
    """Split ascending places into runs without gaps that fit into a request."""
    runs: list[range] = []
    for place in places:
        if runs and runs[-1].stop == place and len(runs[-1]) < MAX_WRITE:
            runs[-1] = range(runs[-1].start, place + 1)
        else:
            runs.append(range(place, place + 1))
    return runs


def _span(registers: range) -> str:
    return f'registers {registers[0]} to {registers[-1]}'


def _make(
    config: Any,
    channels: Sequence[int],
    limits: PressureLimits,
    now_ns: Callable[[], int],
    stop: Stop | None,
) -> ModbusPressure:
    register_map = load_register_map(config.modbus.register_map)
    return ModbusPressure(config.modbus, register_map, channels, limits, now_ns, stop)


MODBUS = DeviceKind(_make, lambda config: config.modbus.host)
