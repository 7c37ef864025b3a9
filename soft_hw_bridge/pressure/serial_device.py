"""Valves on a microcontroller at a serial port."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import serial

from soft_dynamics.reader import quantity
from soft_dynamics.timing.boot_time import boot_time
from soft_hw_bridge.errors import DeviceError, SetpointsChangedError
from soft_hw_bridge.pressure.contact_lease import ContactLease
from soft_hw_bridge.pressure.device import DeviceKind, Reading, Stop
from soft_hw_bridge.pressure.guard import Array, PressureLimits
from soft_hw_bridge.pressure.serial_protocol import (
    CODECS,
    HEADS,
    MAX_CHANNELS,
    NO_PRESSURE,
    WATCHDOG_S,
    Codec,
    Message,
    MessageStream,
)

_READ_BYTES = 4096
_BITS_PER_BYTE = 10  # with start and stop bit
_POLL_S = 0.0005
_START_S = 3.0  # many boards restart when the port is opened
_REPEATS = 8  # of a question, within `silence`
_HELD = 0.5  # of the watchdog time: longest time from a decision to the sending of its set points
_NUMBERS = 1 << 32
_MOST_PASCAL = 1 << 31
_T = TypeVar('_T')


class Port(Protocol):
    """The part of `serial.Serial` in use; no call waits longer than the time-outs of the port."""

    def read(self, size: int, /) -> bytes:
        """Return received bytes, up to this size."""

    def write(self, data: bytes, /) -> int | None:
        """Send."""

    def close(self) -> None:
        """Release the port."""


@dataclass(frozen=True)
class SerialConfig:
    """Port, speed and protocol of the microcontroller."""

    port: str = quantity('/dev/ttyACM0', doc='serial device, or a pyserial URL such as socket://host:port')
    baud: int = quantity(921600, unit='baud', doc='baud rate of the microcontroller')
    protocol: str = quantity('binary', doc='protocol: binary or text')
    silence: float = quantity(
        0.1,
        unit='s',
        doc='reopen the port after this time without a measurement; < 0.2 s, when the device vents',
    )

    def __post_init__(self) -> None:
        if self.protocol not in CODECS:
            raise ValueError(f'protocol must be one of {", ".join(CODECS)}, got {self.protocol!r}')
        if not self.baud > 0:
            raise ValueError(f'baud must be > 0, got {self.baud}')
        if not 0 < self.silence < WATCHDOG_S:
            raise ValueError(f'silence must be > 0 and < {WATCHDOG_S:g} s, got {self.silence}')


class SerialPressure:
    """Reads state and measurements, and sends set points that the device accepts only in that state.

    channels: the device's channel of each chamber. stop: once it is set, `open` stops waiting.
    """

    sequence_bits = 32
    watchdog: float | None = WATCHDOG_S
    late_writes_excluded = True  # by epoch, sequence and validity time

    def __init__(
        self,
        config: SerialConfig,
        channels: Sequence[int],
        limits: PressureLimits,
        rate: float,
        now_ns: Callable[[], int] = time.time_ns,
        stop: Stop | None = None,
        boot: Callable[[], float] = boot_time,
        sleep: Callable[[float], None] = time.sleep,
        connect: Callable[[SerialConfig], Port] | None = None,
    ) -> None:
        if len(set(channels)) < len(channels) or not all(0 <= c < MAX_CHANNELS for c in channels):
            raise ValueError(f'channels must differ and be in 0..{MAX_CHANNELS - 1}, got {list(channels)}')
        if limits.largest >= _MOST_PASCAL:
            raise ValueError(f'limits must be < {_MOST_PASCAL} Pa, got {limits.largest:g}')
        self.malformed = 0
        self.about = f'protocol {config.protocol} at {config.baud} baud, channels {list(channels)}'
        self._config, self._channels, self._limits = config, list(channels), limits
        self._now_ns, self._boot, self._sleep, self._connect = now_ns, boot, sleep, connect or _connect
        self._stop: Stop = stop or threading.Event()
        self._codec: Codec = CODECS[config.protocol]()
        cycle_s = self._cycle_on_the_line()
        if cycle_s * rate > 1.0:
            raise ValueError(
                f'rate of {rate:g} Hz needs {cycle_s * rate * config.baud:.0f} baud with protocol {config.protocol}, '
                f'got {config.baud}'
            )
        self._repeat_s = max(config.silence / _REPEATS, cycle_s)
        self._lease = ContactLease(boot)
        self._port: Port | None = None
        self._epoch = self._sequence = self._number = self._t_us = 0
        self._before: tuple[int, ...] = ()  # set points of the device before ...
        self._written: tuple[int, ...] = ()  # ... the last sent ones
        self._setpoints = b''  # message with the last sent ones
        self._sent_t = 0.0

    def open(self) -> None:
        """Open the port, vent the device, and verify that it holds zero. Raises DeviceError."""
        self._port = self._connect(self._config)
        self._stream = MessageStream(self._codec)
        self._clock = _UnwrappedClock()
        self._vent(_START_S, self._stop.wait)

    def read(self) -> list[Reading]:
        """Return the measured pressures [Pa], after verifying that the device holds the last set points."""
        readings: list[Reading] = []
        deadline = self._boot() + self._config.silence
        first = (self._number + 1) % _NUMBERS
        while True:
            self._ask()
            repeat_t = self._boot() + self._repeat_s
            while self._boot() < repeat_t:
                messages = self._receive()
                receive_ns = self._now_ns()
                readings += [self._reading(message, receive_ns) for message in messages]
                confirmed = [self._confirms(message, first) for message in messages]  # check all
                if any(confirmed):
                    self._lease.renew(self._sent_t)
                    return readings
                self._sleep(_POLL_S)
            if self._boot() > deadline:
                raise DeviceError(f'no measurement from {self._config.port} for {self._config.silence:g} s')
            self._put_out()

    def write(self, pressure: Array, decided_t: float | None = None) -> None:
        """Write set points [Pa], clipped to the limits and rounded towards vented."""
        if decided_t is not None and self._boot() > decided_t + _HELD * WATCHDOG_S:
            raise DeviceError('delayed between a decision and its writes')
        values = [0] * len(self._written)
        finite = np.where(np.isfinite(pressure), pressure, 0.0)
        bounded = np.clip(finite, self._limits.pressure_min, self._limits.pressure_max)
        for channel, value in zip(self._channels, bounded.tolist(), strict=True):
            values[channel] = int(value)
        self._before, self._written = self._written, tuple(values)
        self._sequence = (self._sequence + 1) % _NUMBERS
        self._sent_t = self._boot()
        head = (self._epoch, self._sequence, self._t_us)
        self._setpoints = self._codec.encode(Message('S', head, self._written))
        self._put_out()

    def close(self) -> None:
        """Vent and close the port."""
        if self._port is None:
            return
        with contextlib.suppress(DeviceError):
            self._vent(self._config.silence, self._sleep)
        with contextlib.suppress(serial.SerialException, OSError):
            self._port.close()
        self._port = None

    def _vent(self, duration: float, wait: Callable[[float], bool | None]) -> None:
        """Start an epoch, and wait until the device reports zero in it."""
        self._sequence = self._number = random.getrandbits(32)
        vent = self._codec.encode(Message('V', (self._sequence,)))
        deadline = self._boot() + duration
        while self._boot() < deadline:
            self._sent_t = self._boot()
            self._lease.start(WATCHDOG_S)
            self._send(self._codec.delimiter + vent)  # a partial message may be on the line
            while self._boot() < self._sent_t + self._repeat_s:
                if any(self._begins(message) for message in self._receive()):
                    return
                if wait(_POLL_S):
                    raise DeviceError('stopped before the device was opened')
        raise DeviceError(f'no measurement from {self._config.port} for {duration:g} s')

    def _begins(self, message: Message) -> bool:
        """Whether the device confirms that it has vented; record its state."""
        epoch, number, t_us, sequence = message.head
        if not number == sequence == self._sequence:
            return False  # from before
        held = message.values[: len(message.values) // 2]
        if len(held) <= max(self._channels):
            raise DeviceError(
                f'channel {max(self._channels)} does not exist: the device has {len(held)} channels'
            )
        if any(held):
            raise DeviceError('the device still holds set points after a command to vent')
        self._epoch, self._t_us, self._setpoints = epoch, t_us, b''
        self._before = self._written = held
        return True

    def _confirms(self, message: Message, first: int) -> bool:
        """Whether this answers a question from `first` on, and the device holds the last set points.

        If those were lost on the way, it may hold the previous ones; otherwise DeviceError.
        """
        epoch, number, t_us, sequence = message.head
        held = message.values[: len(message.values) // 2]
        if epoch != self._epoch:
            self._lease.check()  # after a loss of contact it vented by itself
            if (t_us - self._t_us) % _NUMBERS > 1e6 * WATCHDOG_S:  # its clock jumped too
                raise DeviceError('the device is in another epoch: it was reset')
            raise SetpointsChangedError(
                'the device is in another epoch: it has vented or was reset, or another master uses it'
            )
        if (number - first) % _NUMBERS > (self._number - first) % _NUMBERS:
            return False  # the answer to an earlier question came late
        if (sequence, held) == (self._sequence, self._written):
            self._t_us = t_us
            return True
        if (sequence, held) != ((self._sequence - 1) % _NUMBERS, self._before):
            raise SetpointsChangedError(
                'set points read back differ from those written: another master writes to the device'
            )
        return False

    def _ask(self) -> None:
        self._number = (self._number + 1) % _NUMBERS
        self._send(self._codec.encode(Message('Q', (self._number,))))

    def _put_out(self) -> None:
        """Send the set points; a repetition has no effect on a device that has accepted them."""
        self._lease.check()  # just before the kernel takes it
        self._send(self._setpoints)

    def _receive(self) -> list[Message]:
        """Return the received answers."""
        messages = self._stream.feed(self._use(lambda port: port.read(_READ_BYTES)))
        self.malformed = self._stream.malformed
        for message in messages:
            if message.kind == 'E':
                raise DeviceError(f'the device on {self._config.port} reports error {message.head[0]}')
        return [message for message in messages if message.kind == 'P']

    def _send(self, data: bytes) -> None:
        self._use(lambda port: port.write(data))

    def _reading(self, message: Message, receive_ns: int) -> Reading:
        measured = message.values[len(message.values) // 2 :]
        if len(measured) != len(self._written):
            raise DeviceError(
                f'the device has {len(self._written)} channels but reports {len(measured)} pressures'
            )
        pressure = np.array([measured[channel] for channel in self._channels], np.float64)
        pressure[pressure == NO_PRESSURE] = np.nan
        _, number, t_us, _ = message.head
        return Reading(pressure, receive_ns, self._clock.unwrap_us(t_us) * 1000, number)

    def _use(self, action: Callable[[Port], _T]) -> _T:
        if self._port is None:
            raise DeviceError('the port is not open')
        try:
            return action(self._port)
        except (serial.SerialException, OSError) as error:
            raise DeviceError(f'serial port {self._config.port}: {error}') from None

    def _cycle_on_the_line(self) -> float:
        """Return the transmission time of the messages of a cycle [s]."""
        count = max(self._channels) + 1
        bar = round(self._limits.largest)  # the text form of a set point has this many digits
        cycle = (('Q', 0), ('P', 2 * count), ('S', count))
        messages = [Message(kind, (_NUMBERS - 1,) * HEADS[kind], (bar,) * n) for kind, n in cycle]
        size = sum(len(self._codec.encode(message)) for message in messages)
        return _BITS_PER_BYTE * size / self._config.baud


class _UnwrappedClock:
    """Unwraps a 32-bit counter."""

    def __init__(self) -> None:
        self._last: int | None = None

    def unwrap_us(self, t_us: int) -> int:
        if self._last is not None:
            t_us = self._last + (t_us - self._last + (1 << 31)) % (1 << 32) - (1 << 31)
        self._last = t_us
        return t_us


def _connect(config: SerialConfig) -> Port:
    """Open and lock the port. Raises DeviceError."""
    try:
        return serial.serial_for_url(
            config.port, config.baud, timeout=0, write_timeout=config.silence, exclusive=True
        )
    except (serial.SerialException, ValueError, OSError) as error:
        raise DeviceError(f'no serial port {config.port}: {error}') from None


def _make(
    config: Any,
    channels: Sequence[int],
    limits: PressureLimits,
    now_ns: Callable[[], int],
    stop: Stop | None,
) -> SerialPressure:
    return SerialPressure(config.serial, channels, limits, config.rate, now_ns, stop)


SERIAL = DeviceKind(_make, lambda config: config.serial.port)
