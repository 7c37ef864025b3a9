"""A cursor over bytes."""

from __future__ import annotations

import struct
from typing import Any

from soft_hw_bridge.errors import MalformedPacket

_I32 = struct.Struct('<i')


class Reader:
    """Reads little-endian values in sequence; MalformedPacket beyond the end."""

    __slots__ = ('_data', 'pos')

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.pos = 0

    @property
    def remaining(self) -> int:
        return len(self._data) - self.pos

    def skip(self, size: int) -> None:
        if not 0 <= size <= len(self._data) - self.pos:
            raise MalformedPacket(f'expected {size} bytes, {self.remaining} left')
        self.pos += size

    def take(self, size: int) -> bytes:
        start = self.pos
        self.skip(size)
        return self._data[start : self.pos]

    def since(self, start: int) -> bytes:
        return self._data[start : self.pos]

    def unpack(self, layout: struct.Struct) -> tuple[Any, ...]:
        try:
            values = layout.unpack_from(self._data, self.pos)
        except struct.error:
            raise MalformedPacket(f'expected {layout.size} bytes, {self.remaining} left') from None
        self.pos += layout.size
        return values

    def i32(self) -> int:
        value: int = self.unpack(_I32)[0]
        return value

    def text(self) -> str:
        """Read UTF-8 up to a zero byte."""
        end = self._data.find(b'\0', self.pos)
        if end < 0:
            raise MalformedPacket('text is not terminated')
        raw = self._data[self.pos : end]
        self.pos = end + 1
        return raw.decode('utf-8', errors='replace')
