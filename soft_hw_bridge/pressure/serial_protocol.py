"""The serial protocol of a microcontroller with valves, in a text and a binary form. It is the suite's own.

    V  sequence                                                 to the device: vent, and begin an epoch
    S  epoch, sequence, t_us, set point of each channel         to the device
    Q  number                                                   to the device: question
    P  epoch, number, t_us, sequence, set points, measured      from the device: answer to Q and V
    E  code                                                     from the device: it has failed, and vented

The head of a message has unsigned numbers of 32 bits, all else are signed numbers of 32 bits [Pa] gauge. A P repeats
the number of its question (of a V: its sequence) and tells what holds: the epoch, the sequence and values of the set
points, the time of the device's clock and the measured pressures, NO_PRESSURE from a sensor that has failed.

The device changes the epoch, and vents, when it starts, at a V that it has not had yet, when it fails, and when no set
points came for WATCHDOG_S. It takes an S only if a V began the epoch and nothing has ended it, if its sequence follows
the one that holds, if t_us, from the P that it follows from, is not older than VALID_S, and if all set points are
within the device's own limits. So an S has an effect once, in time, on what the sender believed to hold, or none.

The first epoch is random, the next ones count up: no epoch comes back while the device runs, and after a reset an old
one does with a chance of 2**-32. The sequence that a V sets is random too, so that an old S passes a bad source of
epochs as rarely. A sequence of 32 bits begins again after 248 days at 200 Hz; an S is valid for VALID_S.

Text: kind and numbers joined by ',', then '*', four hexadecimal digits, line feed. Binary: kind, numbers
(little-endian), u16; a COBS frame ended by 0x00. Both have the CRC-16/CCITT-FALSE of all before it.
"""

from __future__ import annotations

import binascii
import struct
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from soft_hw_bridge.errors import MalformedPacket
from soft_hw_bridge.link.framing import DelimitedBuffer

MAX_CHANNELS = 64
WATCHDOG_S = 0.2  # without set points the device vents
VALID_S = 0.15  # from a measurement to the set points that follow from it
NO_PRESSURE = -(1 << 31)
HEADS = {'V': 1, 'S': 3, 'Q': 1, 'P': 4, 'E': 1}  # numbers in the head of each kind of message
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
    """One form of the protocol."""

    delimiter: bytes

    def encode(self, message: Message) -> bytes:
        """Return the bytes of a message with its delimiter."""

    def decode(self, frame: bytes) -> Message:
        """Return the message of one frame without its delimiter. Raises MalformedPacket."""


class TextCodec:
    """The form that a person can read."""

    delimiter = b'\n'

    def encode(self, message: Message) -> bytes:
        """Return a line."""
        body = ','.join([message.kind, *map(str, message.head + message.values)]).encode()
        return b'%s*%04X\n' % (body, _checksum(body))

    def decode(self, frame: bytes) -> Message:
        """Return the message of a line."""
        body, star, digits = frame.rstrip(b'\r').rpartition(b'*')
        if not star or digits.upper() != b'%04X' % _checksum(body):
            raise MalformedPacket('serial line with a wrong checksum')
        kind, *fields = body.decode('latin-1').split(',')
        if any(len(field) > _MOST_DIGITS for field in fields):
            raise MalformedPacket(f'serial line {frame!r:.40}')
        try:
            return _message(kind, [int(field) for field in fields])
        except ValueError as error:
            raise MalformedPacket(f'serial line: {error}') from None


class BinaryCodec:
    """The form for many channels or a slow line."""

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
            raise MalformedPacket('serial frame with a wrong checksum')
        kind, size = chr(body[0]), len(body) - 1
        heads = min(HEADS.get(kind, 0), size // _NUMBER_BYTES)
        if size % _NUMBER_BYTES:
            raise MalformedPacket(f'serial frame of type {kind!r} with {size} bytes')
        values = size // _NUMBER_BYTES - heads
        return _message(kind, struct.unpack(f'<{heads}I{values}i', body[1:]))


CODECS: dict[str, type[TextCodec] | type[BinaryCodec]] = {'text': TextCodec, 'binary': BinaryCodec}


class MessageStream:
    """Messages from the bytes of a port; damage is counted and skipped."""

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


def _message(kind: str, numbers: Sequence[int]) -> Message:
    """Return a message of these numbers, once all are found to be possible."""
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
