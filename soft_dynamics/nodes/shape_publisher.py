"""Publish a robot for RViz: description, joints, frames, and the smooth body, measured and predicted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from geometry_msgs.msg import Point, PoseArray, PoseStamped, TransformStamped, WrenchStamped
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from soft_robot_suite.msg import ChamberPressures, SoftState
from std_msgs.msg import Header, String
from tf2_msgs.msg import TFMessage
from trajectory_msgs.msg import JointTrajectory
from visualization_msgs.msg import Marker, MarkerArray

from soft_dynamics.array import Array, as_array
from soft_dynamics.description.sensors import Sensor
from soft_dynamics.diagnostics import RateCounter, Status, stream_status
from soft_dynamics.geometry import urdf
from soft_dynamics.geometry.se3 import pose_from_rpy
from soft_dynamics.geometry.tip_path import tip_path
from soft_dynamics.geometry.tube import segment_pressures, tube
from soft_dynamics.messages.flat_messages import Flat
from soft_dynamics.nodes.shape_markers import ArrowMarker, PathMarker, TubeMarker
from soft_dynamics.robot import load
from soft_dynamics.ros.conversions import float64s, time_from_ns, time_to_ns, transform_from_matrix
from soft_dynamics.ros.diagnostics import Diagnostics
from soft_dynamics.ros.message_guard import LARGEST, SMALL, Refusals, subscribe
from soft_dynamics.ros.node_main import run_node
from soft_dynamics.ros.parameters import bind_config
from soft_dynamics.ros.qos import COMMAND, DESCRIPTION, SENSOR, STATE

_TIMEOUT = 1.0  # [s] the stream counts as lost after this time without a state
_TF_STATIC = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
_TF = QoSProfile(depth=100)
_SAMPLES = 7  # per segment: the cost of a marker depends on its message size


@dataclass(frozen=True)
class Config:
    """Parameters of the node."""

    robot: str = field(
        default='honeycomb_arm',
        metadata={'doc': 'name of a shipped robot, or path of a robot file', 'read_only': True},
    )
    rate: float = field(default=15.0, metadata={'doc': 'maximum rate of all outputs', 'unit': 'Hz'})
    color_by: str = field(
        default='curvature', metadata={'doc': 'quantity that colours the body: curvature or pressure'}
    )
    full_curvature: float = field(
        default=2.0,
        metadata={'doc': 'bend of the whole body that gets the brightest colour', 'unit': 'rad'},
    )
    predicted_offset: list[float] = field(
        default_factory=lambda: [0.0, 0.0, 0.0],
        metadata={'doc': 'displacement of the predicted body from the measured one', 'unit': 'm'},
    )
    force_scale: float = field(
        default=0.02, metadata={'doc': 'length of the wrench arrow per force', 'unit': 'm/N'}
    )
    publish_tf: bool = field(
        default=True,
        metadata={'doc': 'publish /tf; false if a robot_state_publisher does', 'read_only': True},
    )
    frame_prefix: str = field(
        default='',
        metadata={
            'doc': 'prefix of all frames, such as arm1/, for several robots',
            'read_only': True,
        },
    )

    def __post_init__(self) -> None:
        if self.color_by not in ('curvature', 'pressure'):
            raise ValueError(f'color_by must be curvature or pressure, got {self.color_by}')
        for name in ('rate', 'full_curvature', 'force_scale'):
            if not getattr(self, name) > 0:
                raise ValueError(f'{name} must be > 0, got {getattr(self, name)}')
        if len(self.predicted_offset) != 3:
            raise ValueError(f'predicted_offset must have 3 numbers, got {len(self.predicted_offset)}')


class ShapePublisher(Node):
    """Subscribes to `state`; publishes `robot_description`, `joint_states`, `tf`, `tf_static` and `shape/markers`."""

    config: Config

    def __init__(self) -> None:
        super().__init__('shape_publisher')
        self.config = bind_config(self, Config)
        self._robot = load(self.config.robot)
        self._model = urdf.model(self._robot)
        self._pressure = np.zeros(len(self._robot.chamber_names))
        self._states, self._refusals = RateCounter(), Refusals(self)
        self._shown_ns: dict[str, int] = {}
        self._world = self.config.frame_prefix + 'world'
        self._body = {kind: TubeMarker(kind, self._world) for kind in ('measured', 'predicted')}
        self._wrench = ArrowMarker('wrench')
        self._reference, self._plan = PathMarker('reference'), PathMarker('plan')
        self._q = self._robot.rest
        self._create_publishers()
        self._create_subscriptions()
        self._publish_description()
        self._show_rest()
        self._idle = self.create_timer(1.0, self._show_rest, clock=Clock(clock_type=ClockType.STEADY_TIME))
        Diagnostics(self, self._robot.name, {'state': self.status})

    def on_state(self, msg: Flat) -> None:
        self._idle.cancel()
        self._states.tick(self.get_clock().now().nanoseconds * 1e-9)
        self._on_shape(msg, 'measured')

    def on_predicted(self, msg: Flat) -> None:
        self._on_shape(msg, 'predicted')

    def on_pressure(self, msg: Flat) -> None:
        (_, names, *_), (pressure,) = msg.texts, msg.arrays
        measured = dict(zip(names, np.nan_to_num(pressure).tolist(), strict=False))
        self._pressure = np.array([measured.get(name, 0.0) for name in self._robot.chamber_names])

    def on_wrench(self, msg: WrenchStamped) -> None:
        if self._due('wrench', time_to_ns(msg.header.stamp)):
            force = msg.wrench.force
            marker = self._wrench.fill(
                self._placed(msg.header), (force.x, force.y, force.z), self.config.force_scale
            )
            self._markers.publish(MarkerArray(markers=[marker]))

    def on_reference(self, msg: PoseStamped) -> None:
        self._reference.add(msg.pose.position)
        if self._due('reference', time_to_ns(msg.header.stamp)):
            self._markers.publish(MarkerArray(markers=[self._reference.fill(self._placed(msg.header))]))

    def on_poses(self, msg: PoseArray) -> None:
        self._show_plan(msg.header, [pose.position for pose in msg.poses])

    def on_trajectory(self, msg: JointTrajectory) -> None:
        times = [time_to_ns(point.time_from_start) * 1e-9 for point in msg.points]
        points = np.array([point.positions for point in msg.points], np.float64)
        path = tip_path(self._robot, self._q, msg.joint_names, times, points)
        header = Header(stamp=self.get_clock().now().to_msg(), frame_id='world')
        self._show_plan(header, [Point(x=x, y=y, z=z) for x, y, z in path.tolist()])

    def _show_plan(self, header: Header, points: list[Point]) -> None:
        self._plan.clear()
        for point in points:
            self._plan.add(point)
        self._markers.publish(MarkerArray(markers=[self._plan.fill(self._placed(header))]))

    def _placed(self, header: Header) -> Header:
        """Set the name of the frame in /tf."""
        return Header(stamp=header.stamp, frame_id=self.config.frame_prefix + header.frame_id)

    def status(self) -> Status:
        t = self.get_clock().now().nanoseconds * 1e-9
        verdict = stream_status(self._states.rate(t), self._states.age(t), 0.0, _TIMEOUT)
        return verdict._replace(values={**verdict.values, **self._refusals.report()})

    def _create_publishers(self) -> None:
        self._description = self.create_publisher(String, 'robot_description', DESCRIPTION)
        self._joint_states = self.create_publisher(JointState, 'joint_states', STATE)
        self._tf = self.create_publisher(TFMessage, '/tf', _TF)
        self._tf_static = self.create_publisher(TFMessage, '/tf_static', _TF_STATIC)
        self._markers = self.create_publisher(MarkerArray, 'shape/markers', STATE)

    def _create_subscriptions(self) -> None:
        topics: list[tuple[type[Any], str, Callable[[Any], None], QoSProfile, int]] = [
            (SoftState, 'state', self.on_state, STATE, LARGEST),
            (SoftState, 'state/predicted', self.on_predicted, STATE, LARGEST),
            (ChamberPressures, 'pressure/measured', self.on_pressure, SENSOR, LARGEST),
            (WrenchStamped, 'ft/wrench', self.on_wrench, SENSOR, SMALL),
            (PoseStamped, 'reference/pose', self.on_reference, COMMAND, SMALL),
            (PoseArray, 'reference/poses', self.on_poses, COMMAND, LARGEST),
            (JointTrajectory, 'reference/configuration', self.on_trajectory, COMMAND, LARGEST),
        ]
        for kind, topic, callback, qos, most in topics:
            subscribe(self, kind, topic, callback, qos, self._refusals.add, most)

    def _publish_description(self) -> None:
        self._description.publish(String(data=urdf.to_xml(self._model)))
        if self.config.publish_tf:
            self._tf_static.publish(self._transforms(self._robot.rest, self.get_clock().now().to_msg(), True))

    def _show_rest(self) -> None:
        """Show the rest pose until the first state, also for viewers that join later."""
        self._show(self._robot.rest, 'measured', self.get_clock().now().to_msg())

    def _due(self, what: str, stamp_ns: int) -> bool:
        """Whether `what` is due; a clock that jumps back restarts the period."""
        waited = stamp_ns - self._shown_ns.get(what, -(10**18))
        if 0 <= waited < 0.999e9 / self.config.rate:
            return False
        self._shown_ns[what] = stamp_ns
        return True

    def _on_shape(self, msg: Flat, kind: str) -> None:
        _, model, names, _ = msg.texts
        if names != self._robot.coordinate_names:
            raise ValueError(
                f'expected the coordinates of {self._robot.name}, got a state of {model[:100] or "?"}'
            )
        q = as_array('q', msg.arrays[0])  # also of a state that is not due to be shown
        if self._due(kind, msg.stamp_ns):
            self._show(q, kind, time_from_ns(msg.stamp_ns))

    def _show(self, q: Array, kind: str, stamp: object) -> None:
        """Publish markers that have subscribers: they take more time than everything else in this node."""
        if self._markers.get_subscription_count():
            self._markers.publish(MarkerArray(markers=[self._tube(q, kind, stamp)]))
        if kind == 'predicted':
            return
        self._q = q
        if self._joint_states.get_subscription_count():
            joints = JointState(position=float64s(list(self._model.joint_positions(q).values())))
            joints.header.stamp, joints.name = stamp, self._model.joint_names
            self._joint_states.publish(joints)
        if self.config.publish_tf and self._tf.get_subscription_count():
            self._tf.publish(self._transforms(q, stamp, False))

    def _tube(self, q: Array, kind: str, stamp: object) -> Marker:
        body = tube(self._robot, q, _SAMPLES)
        if self.config.color_by == 'pressure':
            share = segment_pressures(self._robot.description, self._pressure)[body.segment]
        else:
            share = np.clip(body.curvature * self._robot.length / self.config.full_curvature, 0.0, 1.0)
        offset = np.array(self.config.predicted_offset) if kind == 'predicted' else np.zeros(3)
        return self._body[kind].fill(body, share, offset, stamp)

    def _transforms(self, q: Array, stamp: object, fixed: bool) -> TFMessage:
        """Transforms of the fixed joints, or of the moving joints."""
        message, parent = TFMessage(), 'world'
        X_PC = self._model.transforms(q)
        for joint, X in zip(self._model.joints, X_PC, strict=True):
            if (joint.kind == 'fixed') == fixed:
                transform = TransformStamped(child_frame_id=joint.child)
                transform.header.stamp, transform.header.frame_id = stamp, parent
                transform.transform = transform_from_matrix(X)
                message.transforms.append(transform)
            parent = joint.child
        if fixed:
            message.transforms += [
                _sensor_transform(s, stamp) for s in self._robot.description.sensors if s.kind == 'ft'
            ]
        for transform in message.transforms:
            transform.header = self._placed(transform.header)
            transform.child_frame_id = self.config.frame_prefix + transform.child_frame_id
        if fixed and self.config.frame_prefix:  # `world` is common to all robots
            join = TransformStamped(header=Header(stamp=stamp, frame_id='world'), child_frame_id=self._world)
            message.transforms.append(join)
        return message


def _sensor_transform(sensor: Sensor, stamp: object) -> TransformStamped:
    """The frame `ft_sensor` of ft_bridge, placed by the robot file."""
    transform = TransformStamped(child_frame_id='ft_sensor')
    transform.header.stamp = stamp
    transform.header.frame_id = 'base_link' if sensor.frame == 'base' else sensor.frame
    transform.transform = transform_from_matrix(pose_from_rpy(sensor.position, sensor.rpy))
    return transform


def main(args: list[str] | None = None) -> int:
    return run_node(ShapePublisher, args)
