"""TCP transport of the fiber protocols: connect, read, reconnect."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

from soft_hw_bridge.errors import DeviceError
from soft_hw_bridge.fiber.adapter import ShapeAdapter, ShapeFrame
from soft_hw_bridge.link.backoff import Backoff
from soft_hw_bridge.link.device_clock import DeviceClock
from soft_hw_bridge.link.stream_health import StreamHealth

_CHUNK_BYTES = 1 << 16
_CONNECT_TIMEOUT_S = 1.0


class ShapeClient:
    """New frames of one sensor, in order. The client reopens a lost or silent connection.

    The client sends nothing, so it notices only by silence that a device was switched off.
    """

    def __init__(
        self,
        address: tuple[str, int],
        adapter: ShapeAdapter,
        sensor: int = 0,
        silence: float = 2.0,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        if not silence > 0:
            raise ValueError(f'silence must be > 0, got {silence}')
        self.health = StreamHealth(adapter.sequence_bits)
        self.clock = DeviceClock()
        self.error = 'not connected yet'  # '' while connected
        self._address = address
        self._adapter = adapter
        self._sensor = sensor
        self._silence = silence
        self._now_ns = now_ns
        self._backoff = Backoff()
        self._socket: socket.socket | None = None
        self._connections = 0
        self._heard = 0.0

    def open(self) -> None:
        """Connect. Raises DeviceError."""
        try:
            self._socket = socket.create_connection(self._address, timeout=_CONNECT_TIMEOUT_S)
        except OSError as error:
            self.error = f'no shape sensor at {self._address[0]}:{self._address[1]}: {error}'
            raise DeviceError(self.error) from None
        self.error = ''
        self._heard = time.monotonic()
        self._adapter.reset()
        self._connections += 1
        self.health.reconnects = self._connections - 1
        self.health.resync()
        self.clock.forget()

    def read(self, timeout: float) -> list[tuple[ShapeFrame, int]]:
        """Return the frames of the next chunk with their host time [ns]; an empty list after the timeout [s]."""
        if self._socket is None and not self._reopen(timeout):
            return []
        data = self._receive(timeout)
        receive_ns, t = self._now_ns(), time.monotonic()
        if not data:
            if t - self._heard > self._silence:
                self._close(f'silent for {self._silence:g} s')
            return []
        self._heard = t
        self._backoff.reset()
        frames = [frame for frame in self._adapter.feed(data) if frame.sensor == self._sensor]
        self.health.malformed = self._adapter.malformed
        new = [frame for frame in frames if self.health.arrived(t, frame.sequence)]
        return [(frame, self._stamp_ns(frame, receive_ns)) for frame in new]

    def close(self) -> None:
        """Close the connection."""
        self._close('closed')

    def _stamp_ns(self, frame: ShapeFrame, receive_ns: int) -> int:
        return receive_ns if frame.stamp_ns is None else self.clock.feed(frame.stamp_ns, receive_ns)

    def _receive(self, timeout: float) -> bytes:
        if self._socket is None:
            return b''
        self._socket.settimeout(timeout)
        try:
            data = self._socket.recv(_CHUNK_BYTES)
        except TimeoutError:
            return b''
        except OSError as error:
            self._close(str(error))
            return b''
        if not data:
            self._close('closed by the device')
        return data

    def _reopen(self, timeout: float) -> bool:
        if not self._backoff.is_due(time.monotonic()):
            time.sleep(timeout)
            return False
        try:
            self.open()
        except DeviceError:
            return False
        return True

    def _close(self, reason: str) -> None:
        self.error = reason
        if self._socket is not None:
            self._socket.close()
            self._socket = None
