"""Outputs `tip_load` and `external_wrench`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from geometry_msgs.msg import InertiaStamped, WrenchStamped
from rclpy.node import Node

from soft_dynamics.array import Array
from soft_dynamics.robot import Robot
from soft_dynamics.ros.conversions import time_from_ns, wrench_from_array
from soft_dynamics.ros.qos import STATE
from soft_estimation.loads.external_wrench import WrenchObserver
from soft_estimation.loads.tip_load import TipLoad, TipLoadOfStates

WRENCH_PERIOD = (
    0.05  # [s] period of the external wrench, which costs half as much as a state and has a lag of 0.1 s
)


class LoadOutputs:
    """Publishes the mass at the tip and the wrench on it, each when there is a new estimate."""

    def __init__(self, node: Node, robot: Robot) -> None:
        self._node, self._robot = node, robot
        self._tip_load = node.create_publisher(InertiaStamped, 'tip_load', STATE)
        self._external_wrench = node.create_publisher(WrenchStamped, 'external_wrench', STATE)
        self.start_over()

    def start_over(self) -> None:
        """Reset."""
        self._load, self._observer = TipLoadOfStates(TipLoad(self._robot)), WrenchObserver(self._robot)
        self._observed = -math.inf  # [s]
        self._wrench_F: Array = np.zeros(6)

    def close(self) -> None:
        """Remove the publishers."""
        for publisher in (self._tip_load, self._external_wrench):
            self._node.destroy_publisher(publisher)

    def feed(self, estimate: Any, stamp_ns: int, pressure: Array | None, wrench_B: Array | None) -> None:
        """Take a state with the pressures [Pa] and the wrench on the robot at its base, in its axes."""
        if pressure is None or wrench_B is None:
            return
        state = estimate.t, estimate.q, estimate.qd
        if self._load.feed(*state, pressure, wrench_B):
            message = self._stamped(InertiaStamped(), stamp_ns)
            message.inertia.m = self._load.mass
            self._tip_load.publish(message)
        if estimate.t - self._observed >= WRENCH_PERIOD:
            self._observed = estimate.t
            found = self._observer.feed(*state, pressure, wrench_B)
            self._wrench_F = found.in_axes(self._robot.pose(estimate.q, 'tip')[:3, :3]).wrench
            message = self._stamped(WrenchStamped(wrench=wrench_from_array(self._wrench_F)), stamp_ns)
            self._external_wrench.publish(message)

    def report(self) -> dict[str, object]:
        """For people."""
        return {
            'tip load [kg]': f'{self._load.mass:.3f} ± {self._load.standard_deviation:.3f}',
            'force on the tip [N]': f'{np.linalg.norm(self._wrench_F[3:]):.2f}',
        }

    def _stamped(self, message: Any, stamp_ns: int) -> Any:
        message.header.stamp, message.header.frame_id = time_from_ns(stamp_ns), self._robot.frame_names[-1]
        return message
