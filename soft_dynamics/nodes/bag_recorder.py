"""Record topics to a rosbag2 bag, on machines without `ros2 bag`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from importlib import import_module
from typing import Any

from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from soft_dynamics.bags import STORAGES, BagError, BagWriter
from soft_dynamics.diagnostics import OK, Status
from soft_dynamics.nodes.bag_qos import recorded_qos
from soft_dynamics.ros.diagnostics import Diagnostics
from soft_dynamics.ros.node_main import run_node
from soft_dynamics.ros.parameters import bind_config
from soft_dynamics.ros.report import report

_DISCOVERY_PERIOD = 0.5  # [s]
_PATIENCE = 3.0  # [s] after which to report topics without publisher
_DEPTH = 1000  # queue length while the disk is busy


@dataclass(frozen=True)
class Config:
    """Parameters of the node."""

    output: str = field(
        default='',
        metadata={'doc': 'folder of the new bag; default: named after the current time', 'read_only': True},
    )
    storage: str = field(
        default='mcap', metadata={'doc': 'storage format: mcap or sqlite3', 'read_only': True}
    )
    topics: list[str] = field(
        default_factory=list, metadata={'doc': 'topics to record; empty: all', 'read_only': True}
    )
    exclude: str = field(
        default='', metadata={'doc': 'regular expression of topics to leave out', 'read_only': True}
    )
    flush_period: float = field(
        default=1.0,
        metadata={
            'doc': 'period of writing to disk: the longest loss if the recorder is killed',
            'unit': 's',
            'read_only': True,
        },
    )

    def __post_init__(self) -> None:
        if self.storage not in STORAGES:
            raise ValueError(f'storage must be one of {", ".join(STORAGES)}, got {self.storage}')
        if not self.flush_period > 0:
            raise ValueError(f'flush_period must be > 0, got {self.flush_period}')
        try:
            re.compile(self.exclude)
        except re.error as error:
            raise ValueError(f'exclude is not a regular expression: {error}') from None


class BagRecorder(Node):
    """Subscribes to topics as they appear, with the QoS that their publishers offer."""

    config: Config

    def __init__(self) -> None:
        super().__init__('bag_recorder')
        self.config = bind_config(self, Config)
        output = self.config.output or datetime.now().strftime('bag_%Y_%m_%d-%H_%M_%S')
        self._wanted = {self.resolve_topic_name(name) for name in self.config.topics}
        self._seen: set[str] = set()
        self._bag = BagWriter(output, self.config.storage)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(_DISCOVERY_PERIOD, self._or_end(self.discover), clock=steady)
        self.create_timer(self.config.flush_period, self._or_end(self._bag.flush), clock=steady)
        self._overdue = self.create_timer(_PATIENCE, self._tell_missing, clock=steady)
        Diagnostics(self, output, {'recording': self.status})
        self.discover()
        self.get_logger().info(f'recording to {output}')

    def discover(self) -> None:
        """Subscribe to new topics."""
        for topic, types in self.get_topic_names_and_types():
            if topic in self._seen or not self._chosen(topic):
                continue
            publishers = self.get_publishers_info_by_topic(topic)
            if not publishers:
                continue
            self._seen.add(topic)
            try:
                package, _, name = types[0].split('/')
                msg_class = getattr(import_module(f'{package}.msg'), name)
                self._bag.add_topic(topic, types[0], tuple(recorded_qos(p.qos_profile) for p in publishers))
            except (ImportError, AttributeError, ValueError) as error:
                self.get_logger().warning(f'{topic} is not recorded: {error}')
                continue
            self.create_subscription(
                msg_class,
                topic,
                self._write(topic, types[0]),
                _matching([p.qos_profile for p in publishers]),
                raw=True,
            )

    def _tell_missing(self) -> None:
        """Report once the topics without publisher: their names may be wrong."""
        self._overdue.cancel()
        published = [topic for topic, _ in self.get_topic_names_and_types() if self.count_publishers(topic)]
        for topic in sorted(self._wanted - set(published)):
            near = difflib.get_close_matches(topic, published, n=1)
            hint = f', did you mean {near[0]}?' if near else ''
            self.get_logger().warning(f'no publisher of {topic} yet{hint}')

    def _chosen(self, topic: str) -> bool:
        left_out = self.config.exclude and re.search(self.config.exclude, topic)
        return not left_out and (not self._wanted or topic in self._wanted)

    def status(self) -> Status:
        return Status(
            OK, f'{self._bag.count} messages', {'topics': len(self._seen), 'bag': str(self._bag.path)}
        )

    def destroy_node(self) -> None:
        """Finish the bag."""
        try:
            if self._bag.is_open:
                self._or_end(self._bag.close)()
                self.get_logger().info(f'{self._bag.count} messages in {self._bag.path}')
        finally:
            super().destroy_node()

    def _or_end(self, act: Callable[..., None]) -> Callable[..., None]:
        """Wrap a call: if writing to disk fails, log one line and end the process."""

        def acting(*args: Any) -> None:
            try:
                act(*args)
            except BagError as error:
                report(self.get_logger(), 'recording ends', error)
                raise SystemExit(1) from None

        return acting

    def _write(self, topic: str, msgtype: str) -> Callable[[bytes], None]:
        clock, bag = self.get_clock(), self._bag
        return self._or_end(lambda data: bag.write(topic, msgtype, data, clock.now().nanoseconds))


def _matching(offered: list[Any]) -> QoSProfile:
    """The strictest profile that is compatible with every publisher."""
    reliable = all(qos.reliability == ReliabilityPolicy.RELIABLE for qos in offered)
    latched = all(qos.durability == DurabilityPolicy.TRANSIENT_LOCAL for qos in offered)
    return QoSProfile(
        depth=_DEPTH,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
    )


def main(args: list[str] | None = None) -> int:
    return run_node(BagRecorder, args)
