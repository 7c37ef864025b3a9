"""Topics of the sensors: turns messages into samples for a filter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import PoseStamped, WrenchStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription
from soft_robot_suite.msg import BodyPoses, ChamberPressures, ShapeSamples

from soft_dynamics.array import Array, as_array
from soft_dynamics.description.sensors import Sensor
from soft_dynamics.messages.flat_messages import Flat
from soft_dynamics.ros.conversions import pose_to_matrix, time_to_ns, wrench_to_array
from soft_dynamics.ros.executor import in_passing
from soft_dynamics.ros.message_guard import SMALL, subscribe
from soft_dynamics.ros.qos import SENSOR
from soft_estimation.inverse_kinematics.poses import pose, poses_from_quaternions
from soft_estimation.kalman.sensor_models import wrench_at_base
from soft_estimation.nodes.estimator_config import POSE_KINDS, Setup
from soft_estimation.pose_sets import PoseCollector

LEADERS = (*POSE_KINDS, 'fiber', 'ft')  # by precedence; the first one heard triggers a state
_LARGEST_SHAPE = 4_000_000  # [bytes] largest message of fiber_bridge
LEAD = 0.1  # [s] a leader that is silent for longer loses the lead
NEWEST = QoSProfile(depth=1, reliability=SENSOR.reliability)
EVERY = QoSProfile(depth=1000, reliability=SENSOR.reliability)  # with at_samples no sample may be lost


class Sample(NamedTuple):
    """A measurement of one kind of sensor; feed(filter, t) passes it on and returns whether a state is due."""

    name: str
    kind: str
    stamp_ns: int
    feed: Callable[[Any, float], bool]


class _Frame(NamedTuple):
    """The bodies of a frame: all names, the rows of our bodies, and their names."""

    names: Sequence[str]
    rows: list[int]
    ours: list[str]


class SensorInputs:
    """Subscribes to the sensors of a setup and turns each message into a Sample.

    One kind of sensor leads: the best one heard. Only its messages wake the node. When one arrives, the node also takes
    the newest waiting message of each other sensor and all pressures. If the leader shows the shape, it takes them
    after the state is out: they are newer than the leader's sample and can wait for the next.

    pressure, wrench_B: the last ones fed, the wrench about the base and in its axes; None before.
    """

    def __init__(
        self,
        node: Node,
        setup: Setup,
        offer: Callable[[Sample], None],
        refuse: Callable[[str, ValueError | ArithmeticError], None],
    ) -> None:
        self._node, self._setup, self._offer, self._refuse = node, setup, offer, refuse
        self._bodies = {kind: setup.named(kind) for kind in POSE_KINDS if setup.named(kind)}
        self._frames = {kind: _Frame((), [], []) for kind in self._bodies}
        self._chambers: tuple[Sequence[str], Any] = (
            (),
            None,
        )  # names in a message, and indices of our bodies
        self._topics: dict[Subscription, str] = {}  # and their kinds of sensors
        self._single_bodies: dict[str, list[Subscription]] = {kind: [] for kind in self._bodies}
        self.start_over()
        self._subscribe()

    def start_over(self) -> None:
        """Reset."""
        self._collectors = {kind: PoseCollector(names) for kind, names in self._bodies.items()}
        self.pressure: Array | None = None
        self.wrench_B: Array | None = None
        self._heard: dict[str, float] = {}
        self.leading = ''

    def close(self) -> None:
        """Remove the subscriptions."""
        for subscription in self._topics:
            self._node.destroy_subscription(subscription)
        self._topics = {}

    def is_led_by(self, kind: str, t: float) -> bool:
        """Return whether this kind of sensor leads at time t [s]."""
        self._heard[kind] = t
        if kind != self.leading:
            leading = next(each for each in LEADERS if t - self._heard.get(each, -np.inf) < LEAD)
            if leading != self.leading:
                self._follow(leading)
        return kind == self.leading

    def flush(self, estimator: Any) -> None:
        """Feed poses that wait for others."""
        for kind, collector in self._collectors.items():
            for t, X_WS in collector.flush():
                try:
                    estimator.feed_poses(t, X_WS)
                except ValueError as error:
                    self._refuse(kind, error)

    # ---- internal ------------------------------------------------------------------------------------------------

    def _follow(self, leading: str) -> None:
        self.leading = leading
        for subscription, kind in self._topics.items():
            passes = kind != leading and not self._setup.config.at_samples
            in_passing(subscription, passes, has_time=leading != 'ft')
        if self._node.executor is not None:
            self._node.executor.wake()

    def _subscribe(self) -> None:
        for kind in self._bodies:
            self._hear(kind, BodyPoses, f'{kind}/frame', partial(self._on_frame, kind))
        for sensor in self._setup.sensors:
            kind = sensor.kind
            if kind in POSE_KINDS:
                topic, callback = f'{kind}/{sensor.name}/pose', partial(self._on_pose, sensor)
                self._single_bodies[kind].append(self._hear(kind, PoseStamped, topic, callback))
            elif kind == 'fiber':
                self._hear(kind, ShapeSamples, 'fiber/shape', partial(self._on_shape, sensor))
            else:
                self._hear(kind, WrenchStamped, 'ft/wrench', partial(self._on_wrench, sensor))
        if self._setup.config.method == 'model':
            self._hear('pressure', ChamberPressures, 'pressure/measured', self._on_pressure)

    def _hear(
        self, kind: str, message: type[Any], topic: str, callback: Callable[[Any], None]
    ) -> Subscription:
        keeps = EVERY if self._setup.config.at_samples else SENSOR if kind == 'pressure' else NEWEST
        most = _LARGEST_SHAPE if message is ShapeSamples else SMALL
        subscription = subscribe(self._node, message, topic, callback, keeps, self._refuse, most)
        self._topics[subscription] = kind
        return subscription

    def _on_frame(self, kind: str, msg: Flat) -> None:
        for subscription in self._single_bodies.pop(
            kind, ()
        ):  # frames have the same poses at a fifth of the cost
            del self._topics[subscription]
            self._node.destroy_subscription(subscription)

        def feed(estimator: Any, t: float) -> bool:
            X_WS = self._frame_poses(kind, msg)
            if X_WS:
                estimator.feed_poses(t, X_WS)
            return bool(X_WS)

        self._offer(Sample(kind, kind, msg.stamp_ns, feed))

    def _frame_poses(self, kind: str, msg: Flat) -> dict[str, Array]:
        """Return our bodies of a frame; reject only the invalid ones."""
        (_, names), (p_WS, quat_WS) = msg.texts, msg.arrays
        if p_WS.size != 3 * len(names) or quat_WS.size != 4 * len(names):
            raise ValueError(f'expected {len(names)} poses, got {p_WS.size} and {quat_WS.size} numbers')
        frame = self._frames[kind]
        if names is not frame.names:
            rows = [k for k, name in enumerate(names) if name in self._bodies[kind]]
            frame = self._frames[kind] = _Frame(names, rows, [names[k] for k in rows])
        p_WS, quat_WS = p_WS.reshape(-1, 3)[frame.rows], quat_WS.reshape(-1, 4)[frame.rows]
        X_WS, good = poses_from_quaternions(quat_WS, p_WS)
        if good.all():
            return dict(zip(frame.ours, X_WS, strict=True))
        found = {}
        for k, name in enumerate(frame.ours):
            try:
                found[name] = pose(quat_WS[k], p_WS[k])
            except ValueError as error:
                self._refuse(name, error)
        return found

    def _on_pose(self, sensor: Sensor, msg: PoseStamped) -> None:
        def feed(estimator: Any, t: float) -> bool:
            X_WS = pose_to_matrix(msg.pose)
            as_array('p_WS', X_WS[:3, 3])  # rejected here, it affects no other body
            sets = self._collectors[sensor.kind].add(t, sensor.name, X_WS)
            for each in sets:
                estimator.feed_poses(*each)
            return bool(sets)

        self._offer(Sample(sensor.name, sensor.kind, time_to_ns(msg.header.stamp), feed))

    def _on_shape(self, sensor: Sensor, msg: ShapeSamples) -> None:
        def feed(estimator: Any, t: float) -> bool:
            points = np.array(msg.points)
            if points.size != 3 * len(msg.arc_length):
                raise ValueError(f'expected {len(msg.arc_length)} points, got {points.size} numbers')
            estimator.feed_shape(t, sensor.name, msg.arc_length, points.reshape(-1, 3))
            return True

        self._offer(Sample(sensor.name, 'fiber', time_to_ns(msg.header.stamp), feed))

    def _on_wrench(self, sensor: Sensor, msg: WrenchStamped) -> None:
        def feed(estimator: Any, t: float) -> bool:
            if self._setup.sees and not estimator.located:
                return False  # it cannot tell from which pose to start
            wrench_S = wrench_to_array(msg.wrench)
            estimator.feed_wrench(t, sensor.name, wrench_S)
            self.wrench_B = wrench_at_base(sensor, wrench_S)
            return True

        self._offer(Sample(sensor.name, 'ft', time_to_ns(msg.header.stamp), feed))

    def _on_pressure(self, msg: Flat) -> None:
        def feed(estimator: Any, t: float) -> bool:
            pressure = self._pressures(msg)
            estimator.feed_pressure(t, pressure)
            self.pressure = pressure
            return True

        self._offer(Sample('pressure', 'pressure', msg.stamp_ns, feed))

    def _pressures(self, msg: Flat) -> Array:
        """Return pressures [Pa] in the order of the robot file."""
        (_, names, *_), (pressure,) = msg.texts, msg.arrays
        if names is not self._chambers[0]:
            missing = [name for name in self._setup.robot.chamber_names if name not in names]
            if missing:
                raise ValueError(f'expected chamber {missing[0]!r}, got {", ".join(names)}')
            self._chambers = names, [names.index(name) for name in self._setup.robot.chamber_names]
        if pressure.size != len(names):
            raise ValueError(f'expected {len(names)} pressures, got {pressure.size}')
        return np.asarray(pressure[self._chambers[1]])
