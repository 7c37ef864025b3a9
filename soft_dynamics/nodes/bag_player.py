"""Play a rosbag2 bag, on machines without `ros2 bag`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.publisher import Publisher
from rosgraph_msgs.msg import Clock as ClockMessage

from soft_dynamics.bags import BagError, Message, open_bag
from soft_dynamics.nodes.bag_qos import played_qos
from soft_dynamics.ros.conversions import time_from_ns
from soft_dynamics.ros.node_main import run_node
from soft_dynamics.ros.parameters import bind_config
from soft_dynamics.ros.qos import SENSOR

_PERIOD = 0.002  # [s] period of publishing due messages
_ACK_TIMEOUT = 1.0  # [s]
_COMMAND = 'pressure/command'
_MOVES = re.compile(rf'(.*/)({_COMMAND}|reference/[^/]+)')  # topics that move an arm


@dataclass(frozen=True)
class Config:
    """Parameters of the node."""

    bag: str = field(metadata={'doc': 'folder of the bag, or a .mcap or .db3 file', 'read_only': True})
    rate: float = field(default=1.0, metadata={'doc': 'playback speed; 1: real time', 'read_only': True})
    start: float = field(
        default=0.0, metadata={'doc': 'time in the bag at which to start', 'unit': 's', 'read_only': True}
    )
    delay: float = field(
        default=1.0,
        metadata={
            'doc': 'wait before the first message, so that subscribers can connect',
            'unit': 's',
            'read_only': True,
        },
    )
    loop: bool = field(default=False, metadata={'doc': 'restart at the end of the bag', 'read_only': True})
    topics: list[str] = field(
        default_factory=list, metadata={'doc': 'topics to play; empty: all', 'read_only': True}
    )
    clock: float = field(
        default=0.0, metadata={'doc': 'rate of /clock; 0: do not publish it', 'unit': 'Hz', 'read_only': True}
    )

    def __post_init__(self) -> None:
        if not self.rate > 0:
            raise ValueError(f'rate must be > 0, got {self.rate}')
        for name in ('start', 'delay', 'clock'):
            if not getattr(self, name) >= 0:
                raise ValueError(f'{name} must be >= 0, got {getattr(self, name)}')


class BagPlayer(Node):
    """Publishes the messages of a bag at their times, with the recorded QoS.

    It publishes commands and references under `replayed/`, so that a recording cannot move the arm.
    """

    config: Config
    _messages: Iterator[Message]
    _next: Message | None

    def __init__(self) -> None:
        super().__init__('bag_player')
        self.config = bind_config(self, Config)
        self._stack = ExitStack()
        self._bag = self._stack.enter_context(open_bag(self.config.bag, self.get_logger().warning))
        if self.config.start >= self._bag.duration:
            raise ValueError(
                f'start must be < {self._bag.duration:.3f} s, the length of the bag, got {self.config.start}'
            )
        self._wanted = [self.resolve_topic_name(name) for name in self.config.topics]
        self._start_ns = self._bag.start_ns + round(self.config.start * 1e9)
        self._by_topic: dict[str, Publisher] = {}
        for topic, msgtype in self._bag.topics.items():
            if not self._wanted or topic in self._wanted:
                self._add_publisher(topic, msgtype)
        if not self._by_topic and not self._wanted:
            raise BagError(self._bag.path, 'has no topic of a type that is installed')
        self._steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._clock = self.create_publisher(ClockMessage, '/clock', SENSOR) if self.config.clock > 0 else None
        self._clock_ns = 0
        self._rewind(self.config.delay)
        self.create_timer(_PERIOD, self.play, clock=self._steady)

    def play(self) -> None:
        """Publish all due messages."""
        now_ns = self._bag_time_ns()
        self._publish_clock(now_ns)
        while self._next is not None and self._next.t_ns <= now_ns:
            self._by_topic[self._next.topic].publish(self._next.data)
            self._next = next(self._messages, None)
        if self._next is None:
            if not self.config.loop:
                self._finish()
            self._rewind(0.0)

    def destroy_node(self) -> None:
        self._stack.close()
        super().destroy_node()

    def _rewind(self, delay: float) -> None:
        self._began_ns = self._steady.now().nanoseconds + round(delay * 1e9)
        self._messages = self._bag.messages(self._wanted or tuple(self._by_topic), self._start_ns)
        self._next = next(self._messages, None)
        if self._next is None:
            raise BagError(self._bag.path, 'has no message to play')

    def _bag_time_ns(self) -> int:
        return self._start_ns + round((self._steady.now().nanoseconds - self._began_ns) * self.config.rate)

    def _publish_clock(self, now_ns: int) -> None:
        """Publish /clock at its rate; during the initial delay, with the time of the first message."""
        steady_ns = self._steady.now().nanoseconds
        if self._clock is not None and steady_ns - self._clock_ns >= 1e9 / self.config.clock:
            self._clock_ns = steady_ns
            self._clock.publish(ClockMessage(clock=time_from_ns(max(now_ns, self._start_ns))))

    def _add_publisher(self, topic: str, msgtype: str) -> None:
        """Create the publisher. Topics of unknown type are left out, unless requested by name."""
        package, _, name = msgtype.split('/')
        try:
            msg_class: Any = getattr(import_module(f'{package}.msg'), name)
        except (ImportError, AttributeError):
            reason = f'{topic} needs the type {msgtype}, which is not installed'
            if topic in self._wanted:
                raise BagError(self._bag.path, reason) from None
            self.get_logger().warning(f'not played: {reason}')
            return
        moves = _MOVES.fullmatch(topic)
        name = f'{moves[1]}replayed/{moves[2]}' if moves else topic
        publisher = self.create_publisher(msg_class, name, played_qos(self._bag.qos(topic)))
        if publisher.topic_name.endswith(f'/{_COMMAND}') and not publisher.topic_name.endswith(
            f'/replayed/{_COMMAND}'
        ):
            raise ValueError(f'{publisher.topic_name}: recorded messages may not be played there')
        if moves:
            self.get_logger().info(f'{topic} is played as {publisher.topic_name}')
        self._by_topic[topic] = publisher

    def _finish(self) -> None:
        for publisher in self._by_topic.values():
            publisher.wait_for_all_acked(Duration(seconds=_ACK_TIMEOUT))
        raise SystemExit(0)


def main(args: list[str] | None = None) -> int:
    return run_node(BagPlayer, args)
