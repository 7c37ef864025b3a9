"""A plain node with every kind of parameter; it publishes its current config."""

from __future__ import annotations

from dataclasses import dataclass, field

from rclpy.node import Node
from std_msgs.msg import String

from soft_dynamics.ros.node_main import run_node
from soft_dynamics.ros.parameters import bind_config
from soft_dynamics.ros.qos import DESCRIPTION


@dataclass(frozen=True)
class Limits:
    """Nested parameters."""

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(f'low must be below high, got {self.low} and {self.high}')


@dataclass(frozen=True)
class Config:
    """One field of every supported kind."""

    rate: float = field(default=100.0, metadata={'doc': 'samples per second', 'unit': 'Hz'})
    count: int = 3
    enabled: bool = True
    robot: str = field(default='arm', metadata={'doc': 'name of the robot', 'read_only': True})
    gains: tuple[float, ...] = (1.0, 2.0)
    origin: tuple[float, float, float] = (0.0, 0.0, 0.0)
    bodies: list[str] = field(default_factory=list)
    limits: Limits = Limits(high=2.0)

    def __post_init__(self) -> None:
        if not self.rate > 0:
            raise ValueError(f'rate must be > 0, got {self.rate}')


class Example(Node):
    """Publishes its config, latched, at start and after every change."""

    config: Config

    def __init__(self) -> None:
        super().__init__('example')
        self.publisher = self.create_publisher(String, 'config', DESCRIPTION)
        self.show(bind_config(self, Config, self.show))

    def show(self, config: Config) -> None:
        if config.count == 13:
            raise ValueError('count must not be 13 on this machine')
        self.publisher.publish(String(data=repr(config)))


def main(args: list[str] | None = None) -> int:
    return run_node(Example, args)
