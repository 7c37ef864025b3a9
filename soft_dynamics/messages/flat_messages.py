"""Read and write messages of a header, strings and flat arrays of numbers as bytes.

Python message objects cost ten times more, and a loop of nodes exchanges a thousand messages per second. The positions
of the numbers are computed once and stay valid while all bytes between them stay the same.

fields: the fields after the stamp. s: a string, S: a list of strings, b: a bool, a digit n: n numbers, D: a list of
numbers.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..array import Array

FIELDS = {  # of the frequent messages in msg/
    'BodyPoses': 'sSDD',
    'ChamberPressures': 'sSDsb',
    'SoftState': 'ssSDDDDS',
}
_START = 4  # CDR alignment is relative to this byte, after the encapsulation header
_STAMP, _LENGTH = struct.Struct('<iI'), struct.Struct('<I')
_NS = 1_000_000_000
_NUMBER = np.dtype('<f8')
_MOST_FORMS = 4, 16  # layouts kept per stream: per length, and number of lengths; strings change rarely
_MOST_BYTES = 1 << 17  # limit of a message; a message with forty poses has 3 kB
LITTLE_ENDIAN = b'\x00\x01'

Texts = tuple[Any, ...]  # str, tuple[str, ...] and bool, in the order of the fields


class Layout(NamedTuple):
    """Positions of the numbers in a message."""

    texts: Texts  # strings and bools, in the order of the fields
    numbers: tuple[slice, ...]  # bytes of each field of numbers
    fixed: tuple[tuple[slice, bytes], ...]  # bytes between them, except padding, which is arbitrary


class Flat(NamedTuple):
    """Content of a message."""

    stamp_ns: int
    texts: Texts
    arrays: tuple[Array, ...]


def layout(data: bytes, fields: str) -> Layout:
    """Parse a message. Raises ValueError if it is not little-endian CDR of these fields, or too long."""
    if len(data) > _MOST_BYTES:
        raise ValueError(f'expected at most {_MOST_BYTES} bytes, got {len(data)}')
    if data[:2] != LITTLE_ENDIAN:
        raise ValueError(f'expected little-endian CDR, got {data[:2].hex()}')
    texts: list[Any] = []
    numbers: list[slice] = []
    fixed: list[slice] = []
    position = _START + _STAMP.size

    def take(size: int, alignment: int) -> slice:
        nonlocal position
        position += -(position - _START) % alignment + size
        return slice(position - size, position)

    def take_fixed(size: int, alignment: int) -> slice:
        part = take(size, alignment)
        joins = fixed and fixed[-1].stop == part.start
        fixed.append(slice(fixed.pop().start, part.stop) if joins else part)
        return part

    def length() -> int:
        return int(_LENGTH.unpack_from(data, take_fixed(_LENGTH.size, _LENGTH.size).start)[0])

    def text() -> str:
        part = take_fixed(length(), 1)
        return bytes(data[part.start : part.stop - 1]).decode()

    try:
        for field in fields:
            if field == 's':
                texts.append(text())
            elif field == 'S':
                texts.append(tuple(text() for _ in range(length())))
            elif field == 'b':
                texts.append(any(bytes(data[take_fixed(1, 1)])))
            else:
                size = 8 * (length() if field == 'D' else int(field))
                numbers.append(take(size, 8 if size else 1))
    except (struct.error, UnicodeDecodeError) as error:
        raise ValueError(f'expected a message of {fields}, got {len(data)} other bytes: {error}') from None
    if position > len(data):
        raise ValueError(f'expected a message of {fields}, {position} bytes, got {len(data)}')
    return Layout(tuple(texts), tuple(numbers), tuple((part, bytes(data[part])) for part in fixed))


class _Form(NamedTuple):
    """A layout prepared for fast comparison with a message and fast reading."""

    between: struct.Struct  # extracts everything except stamp and numbers from a message
    fixed: tuple[bytes, ...]  # expected result
    texts: Texts
    first: int  # first byte of the numbers
    places: int  # numbers from there to the end of the last; all are aligned to their size
    parts: tuple[slice, ...]  # slice of these numbers for each field

    @classmethod
    def of(cls, data: bytes, found: Layout) -> _Form:
        pattern, position = '<', 0
        for part, known in found.fixed:
            pattern += f'{part.start - position}x{len(known)}s'
            position = part.stop
        filled = [part for part in found.numbers if part.stop > part.start]
        first, last = (filled[0].start, filled[-1].stop) if filled else (0, 0)
        return cls(
            struct.Struct(f'{pattern}{len(data) - position}x'),
            tuple(known for _, known in found.fixed),
            found.texts,
            first,
            (last - first) // 8,
            tuple(slice((part.start - first) // 8, (part.stop - first) // 8) for part in found.numbers),
        )


class FlatReader:
    """Reader of the messages of one stream."""

    def __init__(self, fields: str) -> None:
        self._fields = fields
        self._forms: dict[int, tuple[_Form, ...]] = {}  # by length, newest first

    def read(self, data: bytes) -> Flat:
        """Read a message. Raises ValueError if the bytes are not a message of this type."""
        size = len(data)
        for form in self._forms.get(size, ()):
            if form.between.unpack(data) == form.fixed:
                break
        else:
            form = self._learn(data)
        _, _, texts, first, places, parts = form
        sec, nanosec = _STAMP.unpack_from(data, _START)
        numbers = np.frombuffer(data, _NUMBER, places, first).copy()
        return Flat(sec * _NS + nanosec, texts, tuple([numbers[part] for part in parts]))

    def _learn(self, data: bytes) -> _Form:
        form, (most, lengths) = _Form.of(data, layout(data, self._fields)), _MOST_FORMS
        if len(self._forms) >= lengths:
            self._forms.clear()
        self._forms[len(data)] = (form, *self._forms.get(len(data), ())[: most - 1])
        return form


class FlatWriter:
    """Writer of messages that differ from a serialized one in stamp and numbers only."""

    def __init__(self, template: bytes, fields: str) -> None:
        self._data = bytearray(template)
        self._numbers = [
            np.frombuffer(self._data, _NUMBER, (part.stop - part.start) // 8, part.start)
            for part in layout(template, fields).numbers
        ]

    def write(self, stamp_ns: int, *arrays: Sequence[float] | Array) -> bytes:
        """Write a message; each array has the same length as in the template."""
        _STAMP.pack_into(self._data, _START, *divmod(stamp_ns, _NS))
        for numbers, values in zip(self._numbers, arrays, strict=True):
            numbers[:] = values
        return bytes(self._data)
