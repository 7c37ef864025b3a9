"""Split a byte stream into messages with bounded memory."""

from __future__ import annotations


class DelimitedBuffer:
    """Splits a stream whose messages end with a delimiter byte."""

    def __init__(self, delimiter: bytes, max_bytes: int) -> None:
        self.overruns = 0  # messages dropped because they grew too long without a delimiter
        self._delimiter = delimiter
        self._max_bytes = max_bytes
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Return the messages completed by these bytes, without their delimiters."""
        self._buffer += data
        messages: list[bytes] = []
        if self._delimiter in data:
            *messages, rest = bytes(self._buffer).split(self._delimiter)
            self._buffer[:] = rest
        if len(self._buffer) > self._max_bytes:
            self.overruns += 1
            self._buffer.clear()
        return messages

    def clear(self) -> None:
        """Forget a partial message."""
        self._buffer.clear()
