"""Messages that stay serialized: to look at a few of their bytes costs a tenth of rclpy's objects."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Any

BODY = 4  # bytes before a serialized message
STAMP = Struct('<iI')


def taken(subscription: Any) -> Iterator[tuple[bytes, dict[str, int]]]:
    """All that has come: bytes, and what DDS says of them."""
    handle, kind = subscription.handle, subscription.msg_type
    while True:
        with handle:
            message = handle.take_message(kind, True)
        if message is None:
            return
        yield message


def stamp_ns(data: bytes) -> int:
    """Stamp of the header that a message begins with."""
    seconds, nanoseconds = STAMP.unpack_from(data, BODY)
    return int(seconds * 1_000_000_000 + nanoseconds)
