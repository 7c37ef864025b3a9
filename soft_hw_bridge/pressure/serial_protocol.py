"""The suite's serial protocol for microcontrollers with valves, in a text and a binary form.

    V  sequence                                                 to the device: vent and start an epoch
    S  epoch, sequence, t_us, set point of each channel         to the device
    Q  number                                                   to the device: question
    P  epoch, number, t_us, sequence, set points, measured      from the device: answer to Q and V
    E  code                                                     from the device: it has failed, and vented

The head has unsigned 32-bit numbers, the rest are signed 32-bit numbers [Pa] gauge. A P repeats the number of its
question (for a V: its sequence) and reports the current state: epoch, sequence and values of the set points, time of
the device's clock, and measured pressures, with NO_PRESSURE for a failed sensor.

The device changes the epoch and vents when it starts, at a new V, when it fails, and WATCHDOG_S after the last set
points. It accepts an S only if a V started the current epoch, if its sequence follows the current one, if t_us (from
the P on which the decision was based) is not older than VALID_S, and if all set points are within the limits of the
device. So an S acts at most once, in time, and only on the state that the sender assumed.

The first epoch is random, the next ones count up. No epoch recurs while the device runs; after a reset an old one
recurs with probability 2**-32. The sequence that a V sets is random too, so an old S is as unlikely to pass even with a
bad source of epochs. A 32-bit sequence wraps after 248 days at 200 Hz, while an S is valid for VALID_S.

Text: kind and numbers joined by ',', then '*', four hexadecimal digits, line feed. Binary: kind, numbers
(little-endian), u16; a COBS frame ended by 0x00. Both end with the CRC-16/CCITT-FALSE of the preceding bytes.
"""

from __future__ import annotations

import binascii
import struct
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from soft_hw_bridge.errors import MalformedPacket
from soft_hw_bridge.link.framing import DelimitedBuffer

MAX_CHANNELS = 64
WATCHDOG_S = 0.2  # the device vents without set points
VALID_S = 0.15  # from a measurement to the set points based on it
NO_PRESSURE = -(1 << 31)
HEADS = {'V': 1, 'S': 3, 'Q': 1, 'P': 4, 'E': 1}  # numbers in the head of each kind
_WITH_VALUES = {'S': MAX_CHANNELS, 'P': 2 * MAX_CHANNELS}  # at most
_MOST_FRAME_BYTES = 2048
_MOST_DIGITS = 11  # with sign
_NUMBER_BYTES = 4


class Message(NamedTuple):
    """One message of any kind."""

    kind: str
    head: tuple[int, ...]
    values: tuple[int, ...] = ()  # [Pa]


class Codec(Protocol):
    """Text or binary form of the protocol."""

    delimiter: bytes

    def encode(self, message: Message) -> bytes:
        """Return the bytes of a message with its delimiter."""

    def decode(self, frame: bytes) -> Message:
        """Return the message of one frame without its delimiter. Raises MalformedPacket."""


class TextCodec:
    """Human-readable form."""

    delimiter = b'\n'

    def encode(self, message: Message) -> bytes:
        """Return a line."""
        body = ','.join([message.kind, *map(str, message.head + message.values)]).encode()
        return b'%s*%04X\n' % (body, _checksum(body))

    def decode(self, frame: bytes) -> Message:
        """Return the message of a line."""
        body, star, digits = frame.rstrip(b'\r').rpartition(b'*')
        if not star or digits.upper() != b'%04X' % _checksum(body):
            raise MalformedPacket('serial line: wrong checksum')
        kind, *fields = body.decode('latin-1').split(',')
        if any(len(field) > _MOST_DIGITS for field in fields):
            raise MalformedPacket(f'serial line {frame!r:.40}')
        try:
            return _message(kind, [int(field) for field in fields])
        except ValueError as error:
            raise MalformedPacket(f'serial line: {error}') from None


class BinaryCodec:
    """Compact form for many channels or a slow line."""

    delimiter = b'\0'

    def encode(self, message: Message) -> bytes:
        """Return a frame."""
        kind, head, values = message
        body = kind.encode() + struct.pack(f'<{len(head)}I{len(values)}i', *head, *values)
        return cobs_encode(body + struct.pack('<H', _checksum(body))) + self.delimiter

    def decode(self, frame: bytes) -> Message:
        """Return the message of a frame."""
        if len(frame) > _MOST_FRAME_BYTES:
            raise MalformedPacket(f'serial frame of {len(frame)} bytes')
        data = cobs_decode(frame)
        body, crc = data[:-2], data[-2:]
        if not body or _checksum(body) != int.from_bytes(crc, 'little'):
            raise MalformedPacket('serial frame: wrong checksum')
        kind, size = chr(body[0]), len(body) - 1
        heads = min(HEADS.get(kind, 0), size // _NUMBER_BYTES)
        if size % _NUMBER_BYTES:
            raise MalformedPacket(f'serial frame of type {kind!r} with {size} bytes')
        values = size // _NUMBER_BYTES - heads
        return _message(kind, struct.unpack(f'<{heads}I{values}i', body[1:]))


CODECS: dict[str, type[TextCodec] | type[BinaryCodec]] = {'text': TextCodec, 'binary': BinaryCodec}


class MessageStream:
    """Messages from the bytes of a port; counts and skips damaged frames."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._frames = DelimitedBuffer(codec.delimiter, _MOST_FRAME_BYTES)
        self._malformed = 0

    @property
    def malformed(self) -> int:
        """Frames dropped."""
        return self._malformed + self._frames.overruns

    def feed(self, data: bytes) -> list[Message]:
        """Return the messages completed by these bytes."""
        messages = []
        for frame in filter(None, self._frames.feed(data)):
            try:
                messages.append(self._codec.decode(frame))
            except MalformedPacket:
                self._malformed += 1
        return messages


def cobs_encode(data: bytes) -> bytes:
    """Return the bytes without zeros (COBS: consistent overhead byte stuffing)."""
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
            raise MalformedPacket('serial frame is not valid COBS')
        out += block
        at += code
        if code < 255 and at < len(data):
            out.append(0)
    return bytes(out)


def _message(kind: str, numbers: Sequence[int]) -> Message:
    """Return a message with these numbers. Raises MalformedPacket if one is invalid."""
    heads = HEADS.get(kind)
    if heads is None or len(numbers) < heads:
        raise MalformedPacket(f'serial message {kind!r:.9} with {len(numbers)} numbers')
    head, values = tuple(numbers[:heads]), tuple(numbers[heads:])
    if len(values) > _WITH_VALUES.get(kind, 0) or (kind == 'P' and len(values) % 2):
        raise MalformedPacket(f'serial message {kind} with {len(values)} values')
    if not all(0 <= number < 1 << 32 for number in head):
        raise MalformedPacket(f'serial message {kind} with head {head}')
    if not all(-(1 << 31) <= value < 1 << 31 for value in values):
        raise MalformedPacket(f'serial message {kind} with a value beyond 32 bits')
    return Message(kind, head, values)


def _checksum(data: bytes) -> int:
    return binascii.crc_hqx(data, 0xFFFF)
