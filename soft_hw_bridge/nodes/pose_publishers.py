"""One topic of poses for each body."""

from __future__ import annotations

import re
from collections.abc import Iterable

from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from rclpy.publisher import Publisher

from soft_dynamics.ros.qos import SENSOR

_NS = 1_000_000_000


def topic_token(name: str) -> str:
    """Return a name that ROS allows in a topic: letters, digits and single underscores, no digit first."""
    token = re.sub(r'[^A-Za-z0-9]+', '_', name)
    return f'body_{token}' if token[:1].isdigit() or token in ('', '_') else token


class PosePublishers:
    """Publishes geometry_msgs/PoseStamped on `<prefix>/<name>/pose`."""

    def __init__(self, node: Node, prefix: str, frame_id: str) -> None:
        self._node = node
        self._prefix = prefix
        self._owners: dict[str, str] = {}  # of the topics
        self._publishers: dict[str, Publisher | None] = {}
        self._message = PoseStamped()  # filled anew for each pose: making one takes longer than sending it
        self._message.header.frame_id = frame_id

    def announce(self, names: Iterable[str]) -> None:
        """Make the topics of new names; in the executor, as all that makes publishers."""
        for name in names:
            if name not in self._publishers:
                self._publishers[name] = self._make(name)

    def publish(
        self,
        name: str,
        stamp_ns: int,
        p_WB: tuple[float, float, float],
        quat_WB: tuple[float, float, float, float],
    ) -> None:
        """Publish a pose, unless its name was not announced yet. Not for two threads at a time."""
        publisher = self._publishers.get(name)
        if publisher is None:
            return
        stamp, pose = self._message.header.stamp, self._message.pose
        stamp.sec, stamp.nanosec = divmod(stamp_ns, _NS)
        pose.position.x, pose.position.y, pose.position.z = p_WB
        pose.orientation.x, pose.orientation.y, pose.orientation.z, pose.orientation.w = quat_WB
        publisher.publish(self._message)

    def destroy(self) -> None:
        for publisher in self._publishers.values():
            if publisher:
                self._node.destroy_publisher(publisher)
        self._publishers = {}

    def _make(self, name: str) -> Publisher | None:
        topic = f'{self._prefix}/{topic_token(name)}/pose'
        owner = self._owners.setdefault(topic, name)
        if owner != name:
            self._node.get_logger().error(f'{name!r} is not published: {topic} belongs to {owner!r}')
            return None
        return self._node.create_publisher(PoseStamped, topic, SENSOR)
