"""A pressure command and its bytes between the ROS process and the device process."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

_HEAD = struct.Struct(
    '<dqq?qB'
)  # the fields of Command before `publisher`, `generation`, and the length of `publisher`
_NUMBER = struct.Struct('<d')


class Command(NamedTuple):
    """Requested pressures and their publisher."""

    heard_t: float  # [s] of `boot_time`, when the ROS process received it
    stamp_ns: int  # wall time of the decision
    sequence: int  # number of the message, from the middleware
    is_handover: bool  # the publisher declares a hand-over
    publisher: bytes  # GID; empty if the middleware does not provide it
    pressure: tuple[float, ...]  # [Pa] gauge, in the order of the robot's chambers
    generation: int = 0  # of publishers: how often one appeared while there were no commands

    def pack(self) -> bytes:
        """Return the bytes for `unpack`."""
        head = _HEAD.pack(*self[:4], self.generation, len(self.publisher))
        return head + self.publisher + struct.pack(f'<{len(self.pressure)}d', *self.pressure)

    @classmethod
    def unpack(cls, data: bytes) -> Command:
        """Return the command from the bytes of `pack`."""
        heard_t, stamp_ns, sequence, is_handover, generation, size = _HEAD.unpack_from(data)
        publisher, numbers = data[_HEAD.size : _HEAD.size + size], data[_HEAD.size + size :]
        pressure = struct.unpack(f'<{len(numbers) // _NUMBER.size}d', numbers)
        return cls(heard_t, stamp_ns, sequence, is_handover, publisher, pressure, generation)


def in_order(names: Sequence[str], pressure: Sequence[float], wanted: Sequence[str]) -> tuple[float, ...]:
    """Return the pressures in the order of the wanted names; ValueError unless each name has one."""
    if len(pressure) != len(names):
        raise ValueError(f'command has {len(pressure)} pressures for {len(names)} names')
    if tuple(names) == tuple(wanted):
        return tuple(pressure)
    if len(names) != len(wanted) or set(names) != set(wanted):
        raise ValueError('command must name every chamber of the robot once')
    by_name = dict(zip(names, pressure, strict=True))
    return tuple(by_name[name] for name in wanted)
