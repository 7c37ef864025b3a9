"""What acts on the robot from outside: `tip_load`."""

from __future__ import annotations

from typing import Any

from geometry_msgs.msg import InertiaStamped
from rclpy.node import Node

from soft_dynamics.arguments import Array
from soft_dynamics.robot import Robot
from soft_dynamics.ros.qos import STATE
from soft_estimation.loads import TipLoad, TipLoadOfStates


class LoadOutputs:
    """Publishes the load at the tip whenever there is a new estimate of it."""

    def __init__(self, node: Node, robot: Robot) -> None:
        self._node, self._robot = node, robot
        self._tip_load = node.create_publisher(InertiaStamped, 'tip_load', STATE)
        self.start_over()

    def start_over(self) -> None:
        """Forget the states that were fed."""
        self._load = TipLoadOfStates(TipLoad(self._robot))

    def close(self) -> None:
        """Publish nothing any more."""
        self._node.destroy_publisher(self._tip_load)

    def feed(self, estimate: Any, stamp: Any, pressure: Array | None, wrench_B: Array | None) -> None:
        """Take a state with the pressures [Pa] and the wrench on the robot at its base, in its axes."""
        if pressure is None or wrench_B is None:
            return
        if self._load.feed(estimate.t, estimate.q, estimate.qd, pressure, wrench_B):
            message = InertiaStamped()
            message.header.stamp, message.header.frame_id = stamp, self._robot.frame_names[-1]
            message.inertia.m = self._load.mass
            self._tip_load.publish(message)

    def report(self) -> dict[str, object]:
        """For people."""
        return {'tip load [kg]': f'{self._load.mass:.3f} ± {self._load.standard_deviation:.3f}'}
