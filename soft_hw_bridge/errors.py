"""Errors of a device link."""

import struct


class MalformedPacket(ValueError):
    """Bytes that are not a valid packet: the only error that a decoder raises."""


UNREADABLE = (
    *(ValueError, ArithmeticError, LookupError, TypeError),
    *(RecursionError, MemoryError, struct.error),
)
"""Errors that a poll counts as a malformed packet: MalformedPacket, and those that a bug in a decoder may raise.

So no bytes from the wire can end a bridge.
"""


class DeviceError(OSError):
    """The device is absent, silent, or rejects a request; the message names the device and the problem."""
