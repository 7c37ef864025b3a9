"""Subscriptions that bear any bytes: what cannot be read, or makes no sense, is refused, counted and told.

rclpy's own subscriptions read messages of any size, and drop without a word what they cannot read. Here messages come
as bytes, so that their size is bounded before they are read.
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

SMALL = 2_000  # [bytes] of a message with one pose or wrench
LARGEST = (
    200_000  # [bytes] of one with a list: rclpy needs 10 ms and more for 100 kB, while nothing else is done
)
_LONGEST_TEXT = 200  # characters about a refusal
_TELL_PERIOD = 1.0  # [s] at least between two lines in the log


class Refusals:
    """Counts the messages that a node refused, and tells the last one in the log and in its diagnostics."""

    def __init__(self, node: Node) -> None:
        self.count = 0
        self.last = ''
        self._node = node

    def add(self, what: str, error: Exception | str) -> None:
        """Count a refusal; what: the topic or sensor."""
        self.count += 1
        self.last = one_line(f'{what}: {error}', _LONGEST_TEXT)
        self._node.get_logger().warning(f'refused: {self.last}', throttle_duration_sec=_TELL_PERIOD)

    def report(self) -> dict[str, object]:
        """Return values for diagnostics."""
        return {'refused': self.count, 'last_refusal': self.last}


def read_message(data: bytes, kind: type[Any], most: int = LARGEST) -> Any:
    """Return the message in these bytes; ValueError if there is none, or if they are more than `most`."""
    if len(data) > most:
        raise ValueError(f'expected at most {most} bytes, got {len(data)}')
    try:
        return deserialize_message(data, kind)
    except RuntimeError:  # RMWError, whose text names sources of the middleware
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
    """Call back with each message; refuse(topic, error) with what cannot be read and what the callback raises.

    Messages of the kinds in FIELDS come often: they are given as Flat, at a fraction of the cost.
    most: [bytes] of a message.
    """
    read = flat_reader(kind).read if kind.__name__ in FIELDS else None

    def on_bytes(data: bytes) -> None:
        try:
            callback(read(data) if read is not None else read_message(data, kind, most))
        except (ValueError, ArithmeticError) as error:
            refuse(topic, error)

    return node.create_subscription(kind, topic, on_bytes, qos, raw=True)
