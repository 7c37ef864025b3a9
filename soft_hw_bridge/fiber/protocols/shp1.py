"""SHP1, the suite's own frame for shape sensors without an open protocol.

A little-endian stream of frames: a header of 40 bytes (`header bytes` allows longer ones in future versions), then
float32 arrays in the order of the field mask, with N times their number of components, in SI units.

    0 "SHP1"   4 u16 header bytes   6 u16 flags   8 u32 body bytes   12 u32 sequence   16 u64 device time [ns]
    24 u16 sensor   26 u16 N   28 u32 field mask   32 f32 spacing [m], 0: use s   36 u32 CRC-32 of the body
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

import numpy as np

from soft_hw_bridge.errors import UNREADABLE, MalformedPacket
from soft_hw_bridge.fiber.adapter import Array, BufferedAdapter, ShapeFrame

MAGIC = b'SHP1'
PORT = 50210
FLAG_VALID = 1
HEADER = struct.Struct('<4sHHIIQHHIfI')
MAX_HEADER_BYTES = 256

FIELDS = {  # bit in the mask, numbers per point
    's': (1, 1),
    'xyz': (2, 3),
    'quat': (4, 4),
    'bending': (8, 2),
    'twist': (16, 1),
    'strain': (32, 1),
    'quality': (64, 1),
}
_ALL_FIELDS = sum(bit for bit, _ in FIELDS.values())


class Header(NamedTuple):
    """The fixed part of a frame."""

    magic: bytes
    header_bytes: int
    flags: int
    body_bytes: int
    sequence: int
    device_ns: int
    sensor: int
    n: int
    mask: int
    spacing: float  # [m]
    crc: int


def decode_header(data: bytes) -> Header:
    """Return the header of a frame with consistent sizes, otherwise raise MalformedPacket.

    So no length field can make the reader wait for, or allocate, more than N points.
    """
    if len(data) < HEADER.size:
        raise MalformedPacket(f'SHP1 header needs {HEADER.size} bytes, got {len(data)}')
    header = Header(*HEADER.unpack_from(data))
    if header.magic != MAGIC:
        raise MalformedPacket(f'SHP1 magic must be {MAGIC!r}, got {header.magic!r}')
    if not HEADER.size <= header.header_bytes <= MAX_HEADER_BYTES:
        raise MalformedPacket(f'SHP1 header of {header.header_bytes} bytes')
    if header.mask & ~_ALL_FIELDS:
        raise MalformedPacket(f'SHP1 field mask {header.mask:#x} has unknown bits')
    components = sum(width for bit, width in FIELDS.values() if header.mask & bit)
    if header.body_bytes != 4 * header.n * components:
        raise MalformedPacket(f'SHP1 body of {header.body_bytes} bytes, expected {4 * header.n * components}')
    if not header.mask & 1 and not 0 < header.spacing < np.inf:
        raise MalformedPacket('SHP1 frame has neither s nor a spacing')
    return header


def decode_frame(data: bytes) -> ShapeFrame:
    """Return the frame that fills `data` exactly."""
    header = decode_header(data)
    body = data[header.header_bytes :]
    if len(body) != header.body_bytes:
        raise MalformedPacket(f'SHP1 frame with {len(body)} body bytes, its header says {header.body_bytes}')
    if zlib.crc32(body) != header.crc:
        raise MalformedPacket('SHP1 checksum is wrong')
    fields = _split(np.frombuffer(body, '<f4').astype(np.float64), header)
    s = fields['s'][:, 0] if 's' in fields else header.spacing * np.arange(header.n, dtype=np.float64)
    if not np.all(s[1:] > s[:-1]):
        raise MalformedPacket('SHP1 arc length must ascend')
    return ShapeFrame(
        sensor=header.sensor,
        sequence=header.sequence,
        stamp_ns=header.device_ns,
        valid=bool(header.flags & FLAG_VALID),
        s=s,
        p_FC_F=fields.get('xyz'),
        quat_FC=fields.get('quat'),
        curvature_C=_curvature(fields),
        strain=_column(fields, 'strain'),
        quality=_column(fields, 'quality'),
    )


class Shp1Adapter(BufferedAdapter):
    """Frames from a byte stream; after damaged bytes it searches for the next magic word."""

    def feed(self, data: bytes) -> list[ShapeFrame]:
        """Return the frames completed by these bytes."""
        buffer = self._buffer
        buffer += data
        frames = []
        while self._seek_magic() and len(buffer) >= HEADER.size:
            try:
                header = decode_header(bytes(buffer[: HEADER.size]))
                size = header.header_bytes + header.body_bytes
                if len(buffer) < size:
                    break
                frames.append(decode_frame(bytes(buffer[:size])))
            except UNREADABLE as error:
                self._drop(str(error))
                size = len(MAGIC)
            del buffer[:size]
        return frames

    def _seek_magic(self) -> bool:
        start = self._buffer.find(MAGIC)
        if start < 0:
            del self._buffer[: -len(MAGIC) + 1]
            return False
        del self._buffer[:start]
        return True


def _split(values: Array, header: Header) -> dict[str, Array]:
    fields: dict[str, Array] = {}
    start = 0
    for name, (bit, width) in FIELDS.items():
        if header.mask & bit:
            stop = start + header.n * width
            fields[name] = values[start:stop].reshape(header.n, width)
            start = stop
    return fields


def _curvature(fields: dict[str, Array]) -> Array | None:
    if 'bending' not in fields:
        return None
    twist = fields.get('twist', np.zeros((len(fields['bending']), 1)))
    return np.hstack([fields['bending'], twist])


def _column(fields: dict[str, Array], name: str) -> Array | None:
    return fields[name][:, 0] if name in fields else None
