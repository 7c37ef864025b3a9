"""RDT (raw data transfer) of the Net F/T box over UDP, big-endian.

    request, 8 bytes:   u16 0x1234, u16 command, u32 number of records (0: until stopped)
    record, 36 bytes:   u32 rdt sequence, u32 ft sequence, u32 status, i32 counts of Fx Fy Fz Tx Ty Tz

A datagram holds one record, or up to forty in buffered mode.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from soft_hw_bridge.errors import MalformedPacket

PORT = 49152
MAX_RECORDS = 40
_REQUEST = struct.Struct('>HHI')
_RECORD = struct.Struct('>3I6i')


class Command(IntEnum):
    """Command of a request."""

    STOP = 0x0000
    START = 0x0002
    RESET_LATCH = 0x0041
    BIAS = 0x0042


class Record(NamedTuple):
    """One sample in counts."""

    rdt_sequence: int  # of this stream, from 1
    ft_sequence: int  # of the box's own sampling
    status: int  # see `status`
    counts: tuple[int, ...]  # Fx, Fy, Fz, Tx, Ty, Tz


def encode_request(command: Command, records: int = 0) -> bytes:
    """Return the request; `records` 0 asks for an endless stream."""
    return _REQUEST.pack(0x1234, command, records)


def decode_records(datagram: bytes) -> list[Record]:
    """Return the records of one datagram."""
    if not datagram or len(datagram) % _RECORD.size or len(datagram) > MAX_RECORDS * _RECORD.size:
        raise MalformedPacket(f'RDT datagram of {len(datagram)} bytes, expected 1 to 40 times {_RECORD.size}')
    return [Record(a, b, c, tuple(counts)) for a, b, c, *counts in _RECORD.iter_unpack(datagram)]
