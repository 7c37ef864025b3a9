"""Subscriptions that tolerate any bytes: invalid messages are rejected, counted and reported.

rclpy's subscriptions read messages of any size and silently drop unreadable ones. Here messages arrive as bytes, so
that their size is checked before decoding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message
from rclpy.subscription import Subscription

from soft_dynamics.errors import one_line
from soft_dynamics.messages.flat_messages import FIELDS
from soft_dynamics.ros.conversions import flat_reader

SMALL = 2_000  # [bytes] limit for a message with one pose or wrench
LARGEST = 200_000  # [bytes] limit for a message with a list: rclpy decodes 100 kB in 10 ms or more
_LONGEST_TEXT = 200  # characters in the reason of a rejection
_TELL_PERIOD = 1.0  # [s] shortest period of log lines


class Refusals:
    """Counts the messages that a node rejected, and reports the last one in log and diagnostics."""

    def __init__(self, node: Node) -> None:
        self.count = 0
        self.last = ''
        self._node = node

    def add(self, what: str, error: Exception | str) -> None:
        """Count a rejected message; what: the topic or sensor."""
        self.count += 1
        self.last = one_line(f'{what}: {error}', _LONGEST_TEXT)
        self._node.get_logger().warning(f'refused: {self.last}', throttle_duration_sec=_TELL_PERIOD)

    def report(self) -> dict[str, object]:
        """Return values for diagnostics."""
        return {'refused': self.count, 'last_refusal': self.last}


def read_message(data: bytes, kind: type[Any], most: int = LARGEST) -> Any:
    """Decode a message. Raises ValueError if the bytes are invalid or more than `most`."""
    if len(data) > most:
        raise ValueError(f'expected at most {most} bytes, got {len(data)}')
    try:
        return deserialize_message(data, kind)
    except RuntimeError:  # RMWError, whose text refers to source files of the middleware
        raise ValueError(f'expected a message of {kind.__name__}, got {len(data)} other bytes') from None


def subscribe(
    node: Node,
    kind: type[Any],
    topic: str,
    callback: Callable[[Any], None],
    qos: QoSProfile,
    refuse: Callable[[str, ValueError | ArithmeticError], None],
    most: int = LARGEST,
) -> Subscription:
    """Call back with each message; call refuse(topic, error) if decoding or the callback fails.

    Messages of the kinds in FIELDS are frequent: the callback gets them as Flat, at a fraction of the cost.
    most: limit of the size of a message [bytes].
    """
    read = flat_reader(kind).read if kind.__name__ in FIELDS else None

    def on_bytes(data: bytes) -> None:
        try:
            callback(read(data) if read is not None else read_message(data, kind, most))
        except (ValueError, ArithmeticError) as error:
            refuse(topic, error)

    return node.create_subscription(kind, topic, on_bytes, qos, raw=True)
