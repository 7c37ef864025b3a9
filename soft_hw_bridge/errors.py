"""What can go wrong on a device link."""

import struct


class MalformedPacket(ValueError):
    """Bytes that are not a valid packet: the only error a decoder raises, whatever it is fed."""


UNREADABLE = (
    *(ValueError, ArithmeticError, LookupError, TypeError),
    *(RecursionError, MemoryError, struct.error),
)
"""What reading bytes may raise: MalformedPacket, and the others where a decoder has a mistake.

Whoever polls a device counts all of these as a malformed packet, so that no bytes end a bridge.
"""


class DeviceError(OSError):
    """A device that is absent, silent, or answers with a refusal; the message names it and what it did."""


class SetpointsChangedError(DeviceError):
    """Valves that do not hold what was written last: they vented, were reset, or another master writes to them."""
