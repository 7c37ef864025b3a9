"""A participant that sends one command of 80 MB as soon as the bridge listens."""

from __future__ import annotations

import time

import numpy as np
from rclpy.node import Node
from soft_robot_suite.msg import ChamberPressures

from soft_dynamics.ros.conversions import float64s
from soft_dynamics.ros.node_main import run_node
from soft_dynamics.ros.qos import COMMAND

NUMBERS = 10_000_000


class Shouter(Node):
    """Publishes on `pressure/command`."""

    def __init__(self) -> None:
        super().__init__('shouter')
        self.publisher = self.create_publisher(ChamberPressures, 'pressure/command', COMMAND)
        self.timer = self.create_timer(0.1, self.on_timer)

    def on_timer(self) -> None:
        if self.publisher.get_subscription_count():
            self.timer.cancel()
            message = ChamberPressures(pressure=float64s(np.full(NUMBERS, 50e3)))
            message.header.stamp = self.get_clock().now().to_msg()
            started = time.monotonic()
            self.publisher.publish(message)
            print(f'sent within {time.monotonic() - started:.2f} s', flush=True)


def main(args: list[str] | None = None) -> int:
    return run_node(Shouter, args)
