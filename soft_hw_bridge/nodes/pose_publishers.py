"""Publishers for whole frames, and for single bodies that have subscribers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from rclpy.publisher import Publisher
from soft_robot_suite.msg import BodyPoses

from soft_dynamics.messages.body_frame import BodyFrame
from soft_dynamics.messages.flat_messages import FlatWriter
from soft_dynamics.ros.conversions import flat_writer
from soft_dynamics.ros.qos import SENSOR

_NS = 1_000_000_000
_MOST_WRITERS = 64  # sets of bodies that appear together
_MOST_TOPICS = 200  # a publisher costs 0.1 MB and lives until cleanup


@lru_cache(maxsize=1024)
def topic_token(name: str) -> str:
    """Return a valid part of a topic name: letters, digits and single underscores, no leading digit."""
    token = re.sub(r'[^A-Za-z0-9]+', '_', name)
    return f'body_{token}' if token[:1].isdigit() or token in ('', '_') else token


class PosePublishers:
    """Publishes soft_robot_suite/BodyPoses on `<prefix>/frame` and geometry_msgs/PoseStamped on `<prefix>/<name>/pose`.

    A message with ten poses costs about as much as one with a single pose, so a frame is one message. The topic of a
    single body is served while `announce` finds a subscriber.
    """

    def __init__(self, node: Node, prefix: str, frame_id: str) -> None:
        self._node = node
        self._prefix = prefix
        self._owners: dict[str, str] = {}  # body of each topic
        self._publishers: dict[str, Publisher | None] = {}
        self._heard: dict[str, Publisher] = {}  # those with a subscriber
        self._frame_publisher = node.create_publisher(BodyPoses, f'{prefix}/frame', SENSOR)
        self._writers: dict[tuple[str, ...], FlatWriter] = {}  # by names of the bodies
        self._single = PoseStamped()  # reused: creating a message takes longer than sending it
        self._single.header.frame_id = frame_id

    def announce(self, names: Iterable[str]) -> None:
        """Create the topics of new names and look for subscribers. Call it in the executor only."""
        for name in names:
            if name not in self._publishers and len(self._publishers) < _MOST_TOPICS:
                self._publishers[name] = self._make(name)
                if len(self._publishers) == _MOST_TOPICS:
                    self._node.get_logger().error(f'bodies beyond the first {_MOST_TOPICS} are not published')
        made = {name: each for name, each in self._publishers.items() if each is not None}
        self._heard = {name: each for name, each in made.items() if each.get_subscription_count()}

    def publish(self, frames: Iterable[BodyFrame]) -> None:
        """Publish frames in the order of time; skip names not announced yet. Not thread-safe."""
        for frame in frames:
            known = [k for k, name in enumerate(frame.names) if self._publishers.get(name)]
            if known:
                self._publish_frame(frame if len(known) == len(frame.names) else frame.only(known))

    def destroy(self) -> None:
        for publisher in [self._frame_publisher, *self._publishers.values()]:
            if publisher:
                self._node.destroy_publisher(publisher)
        self._publishers, self._heard = {}, {}

    def _publish_frame(self, frame: BodyFrame) -> None:
        stamp_ns, names, p_WB, quat_WB = frame
        writer = self._writers.get(names) or self._make_writer(names)
        self._frame_publisher.publish(writer.write(stamp_ns, p_WB.ravel(), quat_WB.ravel()))
        heard, single = self._heard, self._single
        if not heard:
            return
        single.header.stamp.sec, single.header.stamp.nanosec = divmod(stamp_ns, _NS)
        position, orientation = single.pose.position, single.pose.orientation
        for name, p, quat in zip(names, p_WB.tolist(), quat_WB.tolist(), strict=True):
            if name in heard:
                position.x, position.y, position.z = p
                orientation.x, orientation.y, orientation.z, orientation.w = quat
                heard[name].publish(single)

    def _make_writer(self, names: tuple[str, ...]) -> FlatWriter:
        if len(self._writers) >= _MOST_WRITERS:
            self._writers.clear()
        frame = BodyPoses(
            names=[topic_token(name) for name in names],
            positions=[0.0] * (3 * len(names)),
            orientations=[0.0] * (4 * len(names)),
        )
        frame.header.frame_id = self._single.header.frame_id
        self._writers[names] = flat_writer(frame)
        return self._writers[names]

    def _make(self, name: str) -> Publisher | None:
        topic = f'{self._prefix}/{topic_token(name)}/pose'
        owner = self._owners.setdefault(topic, name)
        if owner != name:
            self._node.get_logger().error(f'cannot publish {name!r}: {topic} is the topic of {owner!r}')
            return None
        return self._node.create_publisher(PoseStamped, topic, SENSOR)
