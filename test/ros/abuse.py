"""Nonsense messages on every topic to which the nodes of a closed loop subscribe."""

from __future__ import annotations

import math
import random
from typing import Any

from geometry_msgs.msg import PoseArray, PoseStamped
from ros.test_controllers import CONFIGURATION, ROBOT, TASK, garbage
from soft_robot_suite.msg import ChamberPressures, SoftState
from trajectory_msgs.msg import JointTrajectory

from soft_dynamics.ros.qos import COMMAND, STATE

NUMBERS = (math.nan, math.inf, -math.inf, -1e300, 1e9, -40.0, 0.0, 0.5)
LATE = (0.0, 0.0, 0.3, -0.3, 5.0, -5.0, 1e8, -1e8)  # [s] error of a stamp


class Abuse:
    """Publishes garbage under the right names; `pressures` are the stamps of its pressure commands."""

    def __init__(self, node: Any, seed: int) -> None:
        self.node, self.random = node, random.Random(seed)
        random.seed(seed)  # of `garbage`
        self.pressures: set[tuple[int, int]] = set()
        kinds: dict[str, tuple[Any, Any, Any]] = {
            'state': (SoftState, STATE, self._state),
            'pressure/measured': (ChamberPressures, 5, self._pressures),
            'pressure/command': (ChamberPressures, COMMAND, self._pressures),
            'reference/configuration': (JointTrajectory, COMMAND, lambda: garbage(CONFIGURATION)),
            'reference/poses': (PoseArray, COMMAND, lambda: garbage(TASK)),
            'reference/pose': (PoseStamped, COMMAND, self._pose),
            'mocap/plate2/pose': (PoseStamped, 5, self._tracked),
            'mocap/plate4/pose': (PoseStamped, 5, self._tracked),
        }
        self._publishers = [
            (node.create_publisher(kind, topic, qos), make) for topic, (kind, qos, make) in kinds.items()
        ]

    def begin(self) -> None:
        """Publish NaN states with current stamps, before all else: the node logs one venting reason a second."""
        states, _ = self._publishers[0]
        self.node.spin_until(states.get_subscription_count, 'subscriber to states')
        for _ in range(30):
            message = SoftState(
                names=list(ROBOT.coordinate_names), q=[math.nan] * ROBOT.nq, qd=[0.0] * ROBOT.nq
            )
            message.header.stamp = self.node.get_clock().now().to_msg()
            states.publish(message)
            self.node.spin_for(0.01)

    def once(self, share: float = 0.3) -> None:
        """Publish on about this share of the topics."""
        for publisher, make in self._publishers:
            if self.random.random() < share:
                message = make()
                off_ns = round(self.random.choice(LATE) * 1e9)
                stamp_ns = self.node.get_clock().now().nanoseconds + off_ns
                message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp_ns, 10**9)
                if isinstance(message, ChamberPressures):
                    self.pressures.add((message.header.stamp.sec, message.header.stamp.nanosec))
                publisher.publish(message)

    def end(self) -> None:
        for publisher, _ in self._publishers:
            self.node.destroy_publisher(publisher)

    def _numbers(self, count: int) -> list[float]:
        """Return one number for all, or different ones; now and then one too few."""
        count -= self.random.random() < 0.1
        same = self.random.choice(NUMBERS)
        mixed = self.random.random() < 0.5
        return [self.random.choice(NUMBERS) if mixed else same for _ in range(count)]

    def _state(self) -> SoftState:
        q, qd = self._numbers(ROBOT.nq), self._numbers(ROBOT.nq)
        return SoftState(names=list(ROBOT.coordinate_names), q=q, qd=qd)

    def _pressures(self) -> ChamberPressures:
        names = list(ROBOT.chamber_names)
        return ChamberPressures(names=names, pressure=self._numbers(len(names)))

    def _tracked(self) -> PoseStamped:
        message = self._pose()
        message.header.frame_id = 'mocap_world'
        return message

    def _pose(self) -> PoseStamped:
        return PoseStamped(header=garbage(TASK).header, pose=garbage(TASK).poses[0])
