"""Topics of the sensors: turns messages into samples and feeds them to a filter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription
from soft_robot_suite.msg import ChamberPressures

from soft_dynamics.array import Array
from soft_dynamics.description.sensors import Sensor
from soft_dynamics.messages.body_frame import BodyFrame
from soft_dynamics.messages.flat_messages import Flat
from soft_dynamics.ros.conversions import body_frame_of_pose, message_class, record, time_to_ns
from soft_dynamics.ros.executor import in_passing
from soft_dynamics.ros.message_guard import SMALL, subscribe
from soft_dynamics.ros.qos import SENSOR
from soft_estimation.frame_collector import FrameCollector
from soft_estimation.kalman.sensors import SENSORS
from soft_estimation.kalman.sensors.wrench import wrench_at_base
from soft_estimation.nodes.estimator_config import Setup
from soft_estimation.scheduler import Ready, Sample, Scheduler

NEWEST = QoSProfile(depth=1, reliability=SENSOR.reliability)
EVERY = QoSProfile(depth=1000, reliability=SENSOR.reliability)  # with at_samples no sample may be lost


class _Ours(NamedTuple):
    """The rows of our bodies in a frame with these names; None: all."""

    names: Sequence[str]
    rows: list[int] | None


class SensorInputs:
    """Subscribes to the sensors of a setup, turns each message into a Sample, and feeds samples to a filter.

    One kind of sensor leads: the best one heard. Only its messages wake the node. When one arrives, the node also takes
    the newest waiting message of each other sensor and all pressures. If the leader shows the shape, it takes them
    after the state is out: they are newer than the leader's sample and can wait for the next.

    pressure, wrench_B: the last ones fed, the wrench about the base and in its axes; None before.
    """

    def __init__(
        self,
        node: Node,
        setup: Setup,
        scheduler: Scheduler,
        offer: Callable[[Sample], None],
        refuse: Callable[[str, ValueError | ArithmeticError], None],
    ) -> None:
        self._node, self._setup, self._scheduler = node, setup, scheduler
        self._offer, self._refuse = offer, refuse
        self._sensors = {sensor.name: sensor for sensor in setup.sensors}
        body_kinds: set[str] = {sensor.kind for sensor in setup.sensors if SENSORS[sensor.kind].is_body}
        self._bodies = {kind: setup.named(kind) for kind in SENSORS if kind in body_kinds}
        self._ours = {kind: _Ours((), []) for kind in self._bodies}
        self._chambers: tuple[Sequence[str], Any] = ((), None)  # names in a message, and where ours are
        self._topics: dict[Subscription, str] = {}  # and the kinds of their sensors
        self._single_bodies: dict[str, list[Subscription]] = {kind: [] for kind in self._bodies}
        self.start_over()
        self._subscribe()

    def start_over(self) -> None:
        """Forget what was heard."""
        self._collectors = {kind: FrameCollector(names) for kind, names in self._bodies.items()}
        self.pressure: Array | None = None
        self.wrench_B: Array | None = None
        self._leading = ''

    def close(self) -> None:
        """Remove the subscriptions."""
        for subscription in self._topics:
            self._node.destroy_subscription(subscription)
        self._topics = {}

    def follow(self, leading: str) -> None:
        """Let only the messages of the leading kind wake the node."""
        if leading == self._leading:
            return
        self._leading = leading
        for subscription, kind in self._topics.items():
            passes = kind != leading and not self._setup.config.at_samples
            in_passing(subscription, passes, has_time=leading != 'ft')
        if self._node.executor is not None:
            self._node.executor.wake()

    def feed(self, estimator: Any, ready: Ready) -> bool:
        """Feed a sample to a filter; whether a state can be due with it. ValueError if the sample is rejected."""
        sample, t, _ = ready
        if sample.kind in self._bodies:
            return self._feed_bodies(estimator, sample)
        if sample.name in self._sensors:
            return self._feed_sensor(estimator, sample, t)
        pressure = self._pressures(sample.message)
        estimator.feed_pressure(t, pressure)
        self.pressure = pressure
        return True

    def flush(self, estimator: Any) -> None:
        """Feed poses that wait for others."""
        for kind, collector in self._collectors.items():
            for frame in collector.flush():
                try:
                    self._feed_frame(estimator, frame)
                except ValueError as error:
                    self._refuse(kind, error)

    # ---- inside --------------------------------------------------------------------------------------------------

    def _subscribe(self) -> None:
        for kind in self._bodies:
            message, topic = message_class(SENSORS[kind].message), SENSORS[kind].topic
            self._hear(kind, message, topic, partial(self._on_frame, kind))
        for sensor in self._setup.sensors:
            kind, of_kind, callback = sensor.kind, SENSORS[sensor.kind], partial(self._on_stamped, sensor)
            if of_kind.is_body:
                topic = f'{kind}/{sensor.name}/pose'
                self._single_bodies[kind].append(self._hear(kind, PoseStamped, topic, callback))
            else:
                topic = of_kind.topic.format(sensor=sensor.name)
                self._hear(kind, message_class(of_kind.message), topic, callback, of_kind.largest_message)
        if self._setup.config.method == 'model':
            self._hear('pressure', ChamberPressures, 'pressure/measured', self._on_pressure)

    def _hear(
        self,
        kind: str,
        message: type[Any],
        topic: str,
        callback: Callable[[Any], None],
        most: int = SMALL,
    ) -> Subscription:
        keeps = EVERY if self._setup.config.at_samples else SENSOR if kind == 'pressure' else NEWEST
        subscription = subscribe(self._node, message, topic, callback, keeps, self._refuse, most)
        self._topics[subscription] = kind
        return subscription

    def _on_frame(self, kind: str, msg: Flat) -> None:
        for subscription in self._single_bodies.pop(
            kind, ()
        ):  # frames have the same poses at a fifth of the cost
            del self._topics[subscription]
            self._node.destroy_subscription(subscription)

        self._offer(Sample(kind, kind, msg.stamp_ns, msg))

    def _on_stamped(self, sensor: Sensor, msg: Any) -> None:
        self._offer(Sample(sensor.name, sensor.kind, time_to_ns(msg.header.stamp), msg))

    def _on_pressure(self, msg: Flat) -> None:
        self._offer(Sample('pressure', 'pressure', msg.stamp_ns, msg))

    def _feed_bodies(self, estimator: Any, sample: Sample) -> bool:
        kind, msg = sample.kind, sample.message
        if isinstance(msg, Flat):
            frames = [self._our_bodies(kind, record(msg))]
        else:
            frames = self._collectors[kind].add(body_frame_of_pose(sample.name, msg))
        fed = [self._feed_frame(estimator, frame) for frame in frames]
        return any(fed)

    def _feed_frame(self, estimator: Any, frame: BodyFrame) -> bool:
        """Feed a frame and refuse its invalid bodies; whether it has any other."""
        if not frame.names:
            return False
        refused: dict[str, ValueError] = estimator.feed_frame(self._scheduler.seconds(frame.stamp_ns), frame)
        for name, error in refused.items():
            self._refuse(name, error)
        return len(refused) < len(frame.names)

    def _our_bodies(self, kind: str, frame: BodyFrame) -> BodyFrame:
        names, rows = self._ours[kind]
        if frame.names is not names:
            ours = {name: k for k, name in enumerate(frame.names) if name in self._bodies[kind]}
            rows = None if tuple(ours) == frame.names else list(ours.values())
            self._ours[kind] = _Ours(frame.names, rows)
        return frame if rows is None else frame.only(rows)

    def _feed_sensor(self, estimator: Any, sample: Sample, t: float) -> bool:
        kind = SENSORS[sample.kind]
        if self._setup.sees and not kind.shows_shape and not estimator.located:
            return False  # its start pose is unknown
        measured = record(sample.message)
        kind.feed(estimator, sample.name, t, measured)
        if sample.kind == 'ft':
            self.wrench_B = wrench_at_base(self._sensors[sample.name], measured)
        return True

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
