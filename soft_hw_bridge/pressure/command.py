"""A command on its way from the topic to the guard, as bytes between two processes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

_HEAD = struct.Struct('<dqq?B')  # the fields of Command before `publisher`, and how many bytes that has
_NUMBER = struct.Struct('<d')


class Command(NamedTuple):
    """Pressures that a publisher wants, and what is known of the publisher."""

    heard_t: float  # [s] by `boot_time`, when the ROS process heard it
    stamp_ns: int  # wall time at which the publisher decided
    sequence: int  # number that the middleware gives to each message of a publisher, in order
    is_handover: bool  # the publisher declares that it gives way or takes over
    publisher: bytes  # GID, where the middleware tells it; else empty
    pressure: tuple[float, ...]  # [Pa] gauge, in the order of the robot's chambers

    def pack(self) -> bytes:
        """Return bytes that `unpack` understands."""
        head = _HEAD.pack(*self[:4], len(self.publisher))
        return head + self.publisher + struct.pack(f'<{len(self.pressure)}d', *self.pressure)

    @classmethod
    def unpack(cls, data: bytes) -> Command:
        """Return the command of these bytes, which this suite has packed."""
        heard_t, stamp_ns, sequence, is_handover, size = _HEAD.unpack_from(data)
        publisher, numbers = data[_HEAD.size : _HEAD.size + size], data[_HEAD.size + size :]
        pressure = struct.unpack(f'<{len(numbers) // _NUMBER.size}d', numbers)
        return cls(heard_t, stamp_ns, sequence, is_handover, publisher, pressure)


def in_order(names: Sequence[str], pressure: Sequence[float], wanted: Sequence[str]) -> tuple[float, ...]:
    """Return the pressures in the order of the wanted names; ValueError unless there is one for each name."""
    if len(pressure) != len(names):
        raise ValueError(f'command with {len(pressure)} pressures for {len(names)} names')
    if tuple(names) == tuple(wanted):
        return tuple(pressure)
    if len(names) != len(wanted) or set(names) != set(wanted):
        raise ValueError('command for other chambers than those of the robot')
    by_name = dict(zip(names, pressure, strict=True))
    return tuple(by_name[name] for name in wanted)
