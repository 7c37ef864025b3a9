"""Datagrams with the kernel's arrival time, which does not depend on when the process wakes up."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable

_SO_TIMESTAMPNS = 35  # Linux; the socket module has no name for it
_TIMESPEC = struct.Struct('@qq')
_SIMULATED_NS = 1_000_000_000  # a clock this far from the system clock is simulated


def stamp_arrivals(receiver: socket.socket) -> None:
    """Make the kernel record the arrival time of each datagram."""
    receiver.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)


def receive(
    receiver: socket.socket, size: int, now_ns: Callable[[], int]
) -> tuple[bytes, tuple[str, int], int]:
    """Return the next datagram, its sender and its arrival time on the clock now_ns; OSError if there is none.

    On a simulated clock, the arrival time is the time of this call.
    """
    data, notes, _, sender = receiver.recvmsg(size, socket.CMSG_SPACE(_TIMESPEC.size))
    read_ns = now_ns()
    if notes and abs(read_ns - time.time_ns()) < _SIMULATED_NS:
        seconds, nanoseconds = _TIMESPEC.unpack(notes[0][2])
        read_ns = min(read_ns, seconds * 1_000_000_000 + nanoseconds)
    return data, sender, read_ns
