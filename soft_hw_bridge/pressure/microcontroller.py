"""The serial protocol of a microcontroller with valves, in a text and a binary form. It is the suite's own.

Text: a line of fields, '*', two hexadecimal digits (XOR of all characters before the '*'), line feed.

    S,<channel>,<kPa>                  to the device: set point of one channel
    P,<sequence>,<t_us>,<kPa>,...      from the device: measured pressures of all channels
    H                                  heartbeat, either way
    E,<code>                           from the device: an error

Binary: a COBS frame ended by 0x00, little-endian: u8 type (the same letters), u8 sequence, u32 t_us, then
n times f32 [Pa] (in an E: u16 code), u16 CRC-16/CCITT-FALSE of all before it.

Pressures are gauge. The device vents when no S came for 200 ms.
"""

from __future__ import annotations

import binascii
import math
import struct
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from soft_hw_bridge.errors import MalformedPacket
from soft_hw_bridge.framing import DelimitedBuffer
from soft_hw_bridge.pressure.safety import Array

MAX_CHANNELS = 64
MAX_FRAME_BYTES = 1024
_HEAD = struct.Struct('<BBI')


class Measurement(NamedTuple):
    """A message P."""

    sequence: int  # modulo 256 in the binary form
    t_us: int  # modulo 2**32
    pressure: Array  # [Pa]


class Fault(NamedTuple):
    """A message E."""

    code: int


Message = Measurement | Fault | None  # None: a heartbeat


class Codec(Protocol):
    """One form of the protocol."""

    sequence_bits: int
    delimiter: bytes

    def encode(self, sequence: int, pressure: Sequence[float]) -> bytes:
        """Return the bytes that set all channels [Pa], rounded towards vented."""

    def decode(self, frame: bytes) -> Message:
        """Return the message of one frame without its delimiter. Raises MalformedPacket."""


class TextCodec:
    """The form that a person can type."""

    sequence_bits = 32
    delimiter = b'\n'

    def encode(self, sequence: int, pressure: Sequence[float]) -> bytes:
        """Return one line per channel, to 1 Pa."""
        lines = (f'S,{channel},{math.trunc(p) / 1000:.3f}' for channel, p in enumerate(pressure))
        return b''.join(b'%s*%02X\n' % (line.encode(), _xor(line.encode())) for line in lines)

    def decode(self, frame: bytes) -> Message:
        """Return the message of a line."""
        text, star, digits = frame.rstrip(b'\r').rpartition(b'*')
        if not star or len(digits) != 2 or digits.upper() != b'%02X' % _xor(text):
            raise MalformedPacket('serial line with a wrong checksum')
        kind, *fields = text.split(b',')
        try:
            if kind == b'P' and 3 <= len(fields) <= MAX_CHANNELS + 2:
                pressure = 1000.0 * np.array([float(field) for field in fields[2:]])
                return Measurement(int(fields[0]) % (1 << 32), int(fields[1]) % (1 << 32), pressure)
            if kind == b'E' and len(fields) == 1:
                return Fault(int(fields[0]))
        except ValueError as error:
            raise MalformedPacket(f'serial line: {error}') from None
        if kind == b'H' and not fields:
            return None
        raise MalformedPacket(f'serial line {frame!r:.40}')


class BinaryCodec:
    """The form for many channels or a slow line."""

    sequence_bits = 8
    delimiter = b'\0'

    def encode(self, sequence: int, pressure: Sequence[float]) -> bytes:
        """Return one frame, to 1 Pa: whole numbers are exact in f32."""
        body = _HEAD.pack(ord('S'), sequence % 256, 0)
        body += struct.pack(f'<{len(pressure)}f', *map(math.trunc, pressure))
        return cobs_encode(body + struct.pack('<H', binascii.crc_hqx(body, 0xFFFF))) + self.delimiter

    def decode(self, frame: bytes) -> Message:
        """Return the message of a frame."""
        data = cobs_decode(frame)
        body, crc = data[:-2], data[-2:]
        if len(body) < _HEAD.size or binascii.crc_hqx(body, 0xFFFF) != int.from_bytes(crc, 'little'):
            raise MalformedPacket('serial frame with a wrong checksum')
        kind, sequence, t_us = _HEAD.unpack_from(body)
        values = body[_HEAD.size :]
        if kind == ord('P') and values and len(values) % 4 == 0 and len(values) <= 4 * MAX_CHANNELS:
            return Measurement(sequence, t_us, np.frombuffer(values, '<f4').astype(np.float64))
        if kind == ord('E') and len(values) == 2:
            return Fault(int.from_bytes(values, 'little'))
        if kind == ord('H') and not values:
            return None
        raise MalformedPacket(f'serial frame of type {kind} with {len(values)} bytes')


CODECS: dict[str, type[TextCodec] | type[BinaryCodec]] = {'text': TextCodec, 'binary': BinaryCodec}


class MessageStream:
    """Messages from the bytes of a port; damage is counted and skipped."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._frames = DelimitedBuffer(codec.delimiter, MAX_FRAME_BYTES)
        self._malformed = 0

    @property
    def malformed(self) -> int:
        """Frames dropped."""
        return self._malformed + self._frames.overruns

    def feed(self, data: bytes) -> list[Measurement | Fault]:
        """Return the messages completed by these bytes, without heartbeats."""
        messages = []
        for frame in self._frames.feed(data):
            if not frame:
                continue
            try:
                message = self._codec.decode(frame)
            except MalformedPacket:
                self._malformed += 1
            else:
                messages += [message] if message is not None else []
        return messages


def cobs_encode(data: bytes) -> bytes:
    """Return the bytes without zeros, by consistent overhead byte stuffing."""
    out = bytearray()
    for block in data.split(b'\0'):
        while len(block) >= 254:
            out += b'\xff' + block[:254]
            block = block[254:]
        out += bytes([len(block) + 1]) + block
    return bytes(out)


def cobs_decode(data: bytes) -> bytes:
    """Return the bytes before stuffing. Raises MalformedPacket."""
    out = bytearray()
    at = 0
    while at < len(data):
        code = data[at]
        block = data[at + 1 : at + code]
        if code == 0 or len(block) != code - 1:
            raise MalformedPacket('serial frame is no COBS')
        out += block
        at += code
        if code < 255 and at < len(data):
            out.append(0)
    return bytes(out)


def _xor(data: bytes) -> int:
    value = 0
    for byte in data:
        value ^= byte
    return value
