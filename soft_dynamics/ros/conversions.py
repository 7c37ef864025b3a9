"""Convert messages to NumPy and back; only this module uses the ROS order (force, torque) and (linear, angular).

Inside the suite, wrenches and twists are angular first, quaternions (x, y, z, w), and times float seconds, or integer
nanoseconds for exact stamps. A quaternion without unit length raises ValueError.

Rotations of single poses use tf_transformations, like other ROS nodes; without a ROS installation, the functions of
transforms3d that it calls.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import (
    Point,
    Pose,
    PoseStamped,
    Quaternion,
    Transform,
    Twist,
    Vector3,
    Wrench,
    WrenchStamped,
)
from numpy.typing import ArrayLike, NDArray
from rclpy.serialization import serialize_message
from soft_robot_suite.msg import ShapeSamples

from soft_dynamics.geometry import quaternion
from soft_dynamics.messages.body_frame import BodyFrame
from soft_dynamics.messages.flat_messages import FIELDS, Flat, FlatReader, FlatWriter

try:
    from tf_transformations import quaternion_from_matrix, quaternion_matrix
except ImportError:
    from transforms3d.quaternions import mat2quat, quat2mat

    def quaternion_matrix(quaternion: Array) -> Array:
        x, y, z, w = quaternion.tolist()
        X = np.eye(4)
        X[:3, :3] = quat2mat((w, x, y, z))
        return X

    def quaternion_from_matrix(matrix: Array) -> Array:
        return np.roll(mat2quat(matrix[:3, :3]), -1)


Array = NDArray[np.float64]

_NS = 1_000_000_000  # [ns/s]


def pose_to_arrays(pose: Pose) -> tuple[Array, Array]:
    """Return (quat_WB, p_WB) of a pose."""
    return _quat_to_array(pose.orientation), _vector_to_array(pose.position)


def pose_from_arrays(quat_WB: ArrayLike, p_WB: ArrayLike) -> Pose:
    """Return the pose of frame B in W."""
    return Pose(orientation=_quat_from_array(quat_WB), position=Point(**_xyz(p_WB)))


def pose_to_matrix(pose: Pose) -> Array:
    """Return X_WB (4, 4) of a pose."""
    X_WB = quaternion_matrix(_quat_to_array(pose.orientation))
    X_WB[:3, 3] = _vector_to_array(pose.position)
    return X_WB


def pose_from_matrix(X_WB: Array) -> Pose:
    """Return the pose of frame B in W, from X_WB (4, 4)."""
    return pose_from_arrays(quaternion_from_matrix(X_WB), X_WB[:3, 3])


def body_frame(msg: Flat) -> BodyFrame:
    """Return the frame of a BodyPoses; ValueError unless each body has 3 and 4 numbers."""
    (_, names), (p_WB, quat_WB) = msg.texts, msg.arrays
    return BodyFrame.from_flat(msg.stamp_ns, names, p_WB, quat_WB)


def body_frame_of_pose(name: str, msg: PoseStamped) -> BodyFrame:
    """Return the frame of a single body."""
    p, quat = msg.pose.position, msg.pose.orientation
    body = name, (p.x, p.y, p.z), (quat.x, quat.y, quat.z, quat.w)
    return BodyFrame.of(time_to_ns(msg.header.stamp), [body])


def transform_to_arrays(transform: Transform) -> tuple[Array, Array]:
    """Return (quat_WB, p_WB) of a transform."""
    return _quat_to_array(transform.rotation), _vector_to_array(transform.translation)


def transform_from_arrays(quat_WB: ArrayLike, p_WB: ArrayLike) -> Transform:
    """Return the transform from W (header.frame_id) to B (child_frame_id)."""
    return Transform(rotation=_quat_from_array(quat_WB), translation=Vector3(**_xyz(p_WB)))


def transform_from_matrix(X_WB: Array) -> Transform:
    """Return the transform from W (header.frame_id) to B (child_frame_id), from X_WB (4, 4)."""
    return transform_from_arrays(quaternion_from_matrix(X_WB), X_WB[:3, 3])


def wrench_to_array(wrench: Wrench) -> Array:
    """Return (torque [N m], force [N]), six numbers."""
    return _six_to_array(wrench.torque, wrench.force)


def wrench_from_array(wrench: ArrayLike) -> Wrench:
    """Return the message of (torque [N m], force [N])."""
    torque, force = np.asarray(wrench, dtype=np.float64).reshape(2, 3)
    return Wrench(force=Vector3(**_xyz(force)), torque=Vector3(**_xyz(torque)))


def twist_to_array(twist: Twist) -> Array:
    """Return (angular [rad/s], linear [m/s]), six numbers."""
    return _six_to_array(twist.angular, twist.linear)


def twist_from_array(twist: ArrayLike) -> Twist:
    """Return the message of (angular [rad/s], linear [m/s])."""
    angular, linear = np.asarray(twist, dtype=np.float64).reshape(2, 3)
    return Twist(linear=Vector3(**_xyz(linear)), angular=Vector3(**_xyz(angular)))


def time_to_ns(stamp: Time) -> int:
    """Return the stamp in integer nanoseconds, exactly."""
    return int(stamp.sec) * _NS + int(stamp.nanosec)


def time_from_ns(ns: int) -> Time:
    """Return the stamp of integer nanoseconds, exactly."""
    sec, nanosec = divmod(ns, _NS)
    return Time(sec=sec, nanosec=nanosec)


def time_to_seconds(stamp: Time) -> float:
    """Return the stamp in seconds. A float64 resolves today's date to 0.24 us: compare stamps in nanoseconds."""
    return time_to_ns(stamp) / _NS


def time_from_seconds(t: float) -> Time:
    """Return the stamp of a time in seconds, to the nearest nanosecond."""
    return time_from_ns(round(t * _NS))


def shape_to_arrays(msg: ShapeSamples) -> tuple[Array, Array]:
    """Return arc lengths (n,) and points (n, 3) [m] of a fiber."""
    s, points = np.array(msg.arc_length), np.array(msg.points)
    if points.size != 3 * s.size:
        raise ValueError(f'expected {s.size} points, got {points.size} numbers')
    return s, points.reshape(-1, 3)


_RECORDS: dict[type[Any], Callable[[Any], Any]] = {
    Flat: body_frame,
    ShapeSamples: shape_to_arrays,
    WrenchStamped: lambda msg: wrench_to_array(msg.wrench),
}


def record(msg: Any) -> Any:
    """Return the record of a sensor's message for the cores; the message itself if its type is not listed."""
    convert = _RECORDS.get(type(msg))
    return convert(msg) if convert else msg


def message_class(kind: str) -> type[Any]:
    """Return the class of a message type such as geometry_msgs/msg/WrenchStamped."""
    package, _, name = kind.split('/')
    found: type[Any] = getattr(import_module(f'{package}.msg'), name)
    return found


def float64s(values: ArrayLike) -> array[float]:
    """Return a flat array that a `float64[]` field accepts without checking each number."""
    return array('d', np.asarray(values, dtype=np.float64).tobytes())


def flat_writer(message: Any) -> FlatWriter:
    """Create a writer of messages that differ from this one in stamp and numbers only; publishers accept its bytes."""
    return FlatWriter(serialize_message(message), FIELDS[type(message).__name__])


def flat_reader(kind: type[Any]) -> FlatReader:
    """Create a reader of messages of a raw subscription."""
    return FlatReader(FIELDS[kind.__name__])


def _quat_to_array(quat_WB: Quaternion) -> Array:
    return quaternion.unit((quat_WB.x, quat_WB.y, quat_WB.z, quat_WB.w))


def _quat_from_array(quat_WB: ArrayLike) -> Quaternion:
    x, y, z, w = quaternion.unit(quat_WB).tolist()
    return Quaternion(x=x, y=y, z=z, w=w)


def _vector_to_array(vector: Vector3 | Point) -> Array:
    return np.array((vector.x, vector.y, vector.z))


def _six_to_array(first: Vector3, second: Vector3) -> Array:
    return np.array((first.x, first.y, first.z, second.x, second.y, second.z))


def _xyz(vector: ArrayLike) -> dict[str, float]:
    x, y, z = np.asarray(vector, dtype=np.float64).tolist()
    return {'x': x, 'y': y, 'z': z}
