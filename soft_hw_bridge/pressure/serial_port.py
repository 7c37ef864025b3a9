"""Valves on a microcontroller behind a serial port."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import serial

from soft_dynamics.reader import quantity
from soft_hw_bridge.errors import DeviceError
from soft_hw_bridge.pressure.device import Reading
from soft_hw_bridge.pressure.microcontroller import (
    CODECS,
    MAX_CHANNELS,
    Codec,
    Fault,
    Measurement,
    MessageStream,
)
from soft_hw_bridge.pressure.safety import Array

_READ_BYTES = 4096
_BITS_PER_BYTE = 10  # with start and stop bit


@dataclass(frozen=True)
class SerialConfig:
    """Where the microcontroller is, and how it talks."""

    port: str = quantity('/dev/ttyACM0', doc='or an URL of pyserial, such as socket://host:port')
    baud: int = quantity(115200, unit='baud', doc='as the microcontroller has it')
    protocol: str = quantity('binary', doc='binary or text')
    silence: float = quantity(0.5, unit='s', doc='without a measurement, open the port again')

    def __post_init__(self) -> None:
        if self.protocol not in CODECS:
            raise ValueError(f'protocol must be one of {", ".join(CODECS)}, got {self.protocol!r}')
        if not self.baud > 0 or not self.silence > 0:
            raise ValueError(f'baud and silence must be > 0, got {self.baud} and {self.silence}')


class SerialPressure:
    """Sends all set points each time, takes what has come meanwhile."""

    has_watchdog = True  # the protocol demands it

    def __init__(
        self,
        config: SerialConfig,
        channels: Sequence[int],
        rate: float,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        if len(set(channels)) < len(channels) or not all(0 <= c < MAX_CHANNELS for c in channels):
            raise ValueError(f'channels must differ and be in 0..{MAX_CHANNELS - 1}, got {list(channels)}')
        self.malformed = 0
        self.about = f'protocol {config.protocol} at {config.baud} baud, channels {list(channels)}'
        self._config = config
        self._channels = list(channels)
        self._codec: Codec = CODECS[config.protocol]()
        self.sequence_bits = self._codec.sequence_bits
        self._now_ns = now_ns
        self._port: serial.Serial | None = None
        self._sequence = 0
        baud = _BITS_PER_BYTE * rate * len(self._codec.encode(0, [100e3] * (max(channels) + 1)))
        if baud > config.baud:
            raise ValueError(
                f'{rate:g} Hz need {baud:.0f} baud with protocol {config.protocol}, got {config.baud}'
            )

    def open(self) -> None:
        """Open the port and vent. Raises DeviceError."""
        try:
            self._port = serial.serial_for_url(
                self._config.port, self._config.baud, timeout=0, write_timeout=0.1
            )
        except (serial.SerialException, ValueError, OSError) as error:
            raise DeviceError(f'no serial port {self._config.port}: {error}') from None
        self._stream = MessageStream(self._codec)
        self._clock = _UnwrappedClock()
        self._heard = time.monotonic()
        self._put_out(np.zeros(len(self._channels)))

    def exchange(self, pressure: Array) -> list[Reading]:
        """Put out pressures [Pa] and return what was measured since the last time. Raises DeviceError."""
        self._put_out(pressure)
        messages = self._stream.feed(self._read())
        receive_ns, t = self._now_ns(), time.monotonic()
        self.malformed = self._stream.malformed
        readings = []
        for message in messages:
            if isinstance(message, Fault):
                raise DeviceError(f'the device on {self._config.port} reports error {message.code}')
            readings.append(self._reading(message, receive_ns))
            self._heard = t
        if t - self._heard > self._config.silence:
            raise DeviceError(f'no measurement from {self._config.port} for {self._config.silence:g} s')
        return readings

    def close(self) -> None:
        """Vent and close the port."""
        if self._port is not None:
            with contextlib.suppress(DeviceError):
                self._put_out(np.zeros(len(self._channels)))
            self._port.close()
            self._port = None

    def _put_out(self, pressure: Array) -> None:
        values = [0.0] * (max(self._channels) + 1)
        for channel, value in zip(self._channels, pressure.tolist(), strict=True):
            values[channel] = value
        self._sequence += 1
        self._use(lambda port: port.write(self._codec.encode(self._sequence, values)))

    def _read(self) -> bytes:
        return self._use(lambda port: port.read(_READ_BYTES))

    def _reading(self, message: Measurement, receive_ns: int) -> Reading:
        if len(message.pressure) <= max(self._channels):
            raise DeviceError(
                f'channel {max(self._channels)} of a device with {len(message.pressure)} channels'
            )
        device_ns = self._clock.unwrap_us(message.t_us) * 1000
        return Reading(message.pressure[self._channels], receive_ns, device_ns, message.sequence)

    def _use(self, action: Callable[[serial.Serial], bytes]) -> bytes:
        if self._port is None:
            raise DeviceError('the port is not opened')
        try:
            return action(self._port)
        except (serial.SerialException, OSError) as error:
            raise DeviceError(f'serial port {self._config.port}: {error}') from None


class _UnwrappedClock:
    """A counter of 32 bits made endless."""

    def __init__(self) -> None:
        self._last: int | None = None

    def unwrap_us(self, t_us: int) -> int:
        if self._last is not None:
            t_us = self._last + (t_us - self._last + (1 << 31)) % (1 << 32) - (1 << 31)
        self._last = t_us
        return t_us
