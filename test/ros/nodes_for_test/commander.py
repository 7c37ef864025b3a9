"""A controller that repeats the same pressure command."""

from __future__ import annotations

from dataclasses import dataclass

from rclpy.node import Node
from soft_robot_suite.msg import ChamberPressures

from soft_dynamics.description.robot_description import load_description
from soft_dynamics.ros.node_main import run_node
from soft_dynamics.ros.parameters import bind_config
from soft_dynamics.ros.qos import COMMAND


@dataclass(frozen=True)
class Config:
    """The command."""

    robot: str = 'pneumatic_arm'
    pressure: float = 0.0  # [Pa] of all chambers
    age: float = 0.0  # [s] of the commands' stamps
    rate: float = 100.0  # [Hz]


class Commander(Node):
    """Publishes on `pressure/command`."""

    def __init__(self) -> None:
        super().__init__('commander')
        self.config = bind_config(self, Config)
        self.names = [chamber.name for chamber in load_description(self.config.robot).actuation.chambers]
        self.publisher = self.create_publisher(ChamberPressures, 'pressure/command', COMMAND)
        self.create_timer(1 / self.config.rate, self.on_timer)

    def on_timer(self) -> None:
        message = ChamberPressures(names=self.names, pressure=[self.config.pressure] * len(self.names))
        now = self.get_clock().now()
        nanoseconds = now.nanoseconds - round(self.config.age * 1e9)
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(nanoseconds, 10**9)
        self.publisher.publish(message)


def main(args: list[str] | None = None) -> int:
    return run_node(Commander, args)
