"""Messages of a header, texts and flat arrays of numbers, read and written as bytes.

As Python objects they cost ten times more, and a loop of nodes has a thousand of them a second. Where the numbers are
is found once and holds as long as everything between them stays the same.

fields: what follows the stamp. s: a text, S: a list of texts, a digit: so many numbers, D: a list of numbers.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .arguments import Array

FIELDS = {  # of the messages in msg/ that come often
    'BodyPoses': 'sSDD',
    'ChamberPressures': 'sSD',
    'SoftState': 'ssSDDDDS',
}
_START = 4  # CDR counts its alignment from here: behind the encapsulation
_STAMP, _LENGTH = struct.Struct('<iI'), struct.Struct('<I')
_NS = 1_000_000_000
LITTLE_ENDIAN = b'\x00\x01'

Texts = tuple[str | tuple[str, ...], ...]


class Layout(NamedTuple):
    """Where the numbers of a message are."""

    texts: Texts  # in the order of the fields
    numbers: tuple[slice, ...]  # bytes of each field of numbers
    fixed: tuple[tuple[slice, bytes], ...]  # what stands between them


class Flat(NamedTuple):
    """What a message says."""

    stamp_ns: int
    texts: Texts
    arrays: tuple[Array, ...]


def layout(data: bytes, fields: str) -> Layout:
    """Walk through a message; ValueError if it is no little-endian CDR of these fields."""
    if data[:2] != LITTLE_ENDIAN:
        raise ValueError(f'expected little-endian CDR, got {data[:2].hex()}')
    texts: list[str | tuple[str, ...]] = []
    numbers: list[slice] = []
    position = _START + _STAMP.size

    def length() -> int:
        nonlocal position
        position += -(position - _START) % _LENGTH.size + _LENGTH.size
        return int(_LENGTH.unpack_from(data, position - _LENGTH.size)[0])

    def text() -> str:
        nonlocal position
        size = length()
        position += size
        return bytes(data[position - size : position - 1]).decode()

    try:
        for field in fields:
            if field == 's':
                texts.append(text())
            elif field == 'S':
                texts.append(tuple(text() for _ in range(length())))
            else:
                size = 8 * (length() if field == 'D' else int(field))
                position += -(position - _START) % 8 if size else 0
                numbers.append(slice(position, position + size))
                position += size
    except (struct.error, UnicodeDecodeError) as error:
        raise ValueError(f'expected a message of {fields}, got {len(data)} other bytes: {error}') from None
    if position > len(data):
        raise ValueError(f'expected a message of {fields}, {position} bytes, got {len(data)}')
    edges = [_START + _STAMP.size, *(edge for part in numbers for edge in (part.start, part.stop)), position]
    between = [slice(*edges[k : k + 2]) for k in range(0, len(edges), 2)]
    return Layout(
        tuple(texts),
        tuple(numbers),
        tuple((part, bytes(data[part])) for part in between if part.stop > part.start),
    )


class FlatReader:
    """Reads the messages of one stream."""

    def __init__(self, fields: str) -> None:
        self._fields = fields
        self._layout: Layout | None = None

    def read(self, data: bytes) -> Flat:
        """ValueError if these are not the bytes of such a message."""
        found = self._layout  # one look: another thread may read too, and find another
        if found is None or any(data[part] != known for part, known in found.fixed):
            found = self._layout = layout(data, self._fields)
        texts, numbers, _ = found
        sec, nanosec = _STAMP.unpack_from(data, _START)
        counts = ((part.start, (part.stop - part.start) // 8) for part in numbers)
        arrays = tuple(np.frombuffer(data, '<f8', count, start).copy() for start, count in counts)
        return Flat(sec * _NS + nanosec, texts, arrays)


class FlatWriter:
    """Writes messages that differ from a serialized one in stamp and numbers only."""

    def __init__(self, template: bytes, fields: str) -> None:
        self._data = bytearray(template)
        self._numbers = [
            np.frombuffer(self._data, '<f8', (part.stop - part.start) // 8, part.start)
            for part in layout(template, fields).numbers
        ]

    def write(self, stamp_ns: int, *arrays: Sequence[float] | Array) -> bytes:
        """Each array has the length that it has in the template."""
        _STAMP.pack_into(self._data, _START, *divmod(stamp_ns, _NS))
        for numbers, values in zip(self._numbers, arrays, strict=True):
            numbers[:] = values
        return bytes(self._data)
