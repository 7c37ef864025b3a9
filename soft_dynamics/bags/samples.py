"""Write samples of sensors and states to a bag from plain numbers, without ROS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .message_types import standard_types
from .writing import BagWriter

POSE, WRENCH = 'geometry_msgs/msg/PoseStamped', 'geometry_msgs/msg/WrenchStamped'
PRESSURES, STATE = 'soft_robot_suite/msg/ChamberPressures', 'soft_robot_suite/msg/SoftState'
POINT, JOINTS = 'geometry_msgs/msg/PointStamped', 'sensor_msgs/msg/JointState'
SHAPE, BODIES = 'soft_robot_suite/msg/ShapeSamples', 'soft_robot_suite/msg/BodyPoses'


class SampleWriter:
    """Writes messages with stamp and recording time t_ns, in time order."""

    def __init__(self, bag: BagWriter, frame_id: str = 'world') -> None:
        self._bag, self._frame_id = bag, frame_id
        self._store = standard_types()
        self._types = self._store.types

    def pose(self, topic: str, t_ns: int, quat_WB: Sequence[float], p_WB: Sequence[float]) -> None:
        """Quaternion (x, y, z, w) and position [m] of a tracked body."""
        orientation = self._make('geometry_msgs/msg/Quaternion', *map(float, quat_WB))
        position = self._make('geometry_msgs/msg/Point', *map(float, p_WB))
        self._write(topic, POSE, t_ns, self._make('geometry_msgs/msg/Pose', position, orientation))

    def bodies(self, topic: str, t_ns: int, names: Sequence[str], quat_WB: Any, p_WB: Any) -> None:
        """Quaternions (n, 4) and positions (n, 3) [m] of all bodies in one frame."""
        position, orientation = (np.asarray(x, np.float64).reshape(-1) for x in (p_WB, quat_WB))
        self._write(topic, BODIES, t_ns, list(names), position, orientation)

    def point(self, topic: str, t_ns: int, p_WB: Sequence[float]) -> None:
        """Position [m] of a tracked point."""
        self._write(topic, POINT, t_ns, self._make('geometry_msgs/msg/Point', *map(float, p_WB)))

    def joints(self, topic: str, t_ns: int, names: Sequence[str], angle: Any) -> None:
        """Angles [rad] of motors or other joints."""
        self._write(topic, JOINTS, t_ns, list(names), np.asarray(angle, np.float64), np.zeros(0), np.zeros(0))

    def wrench(self, topic: str, t_ns: int, wrench: Sequence[float]) -> None:
        """Torque [N m], then force [N]."""
        torque = self._make('geometry_msgs/msg/Vector3', *map(float, wrench[:3]))
        force = self._make('geometry_msgs/msg/Vector3', *map(float, wrench[3:]))
        self._write(topic, WRENCH, t_ns, self._make('geometry_msgs/msg/Wrench', force, torque))

    def pressures(self, topic: str, t_ns: int, names: Sequence[str], pressure: Any) -> None:
        """Gauge pressures [Pa] of the named chambers."""
        self._write(topic, PRESSURES, t_ns, list(names), np.asarray(pressure, np.float64), '', False)

    def state(self, topic: str, t_ns: int, model: str, names: Sequence[str], motion: Sequence[Any]) -> None:
        """Coordinates, rates and optionally accelerations of the robot `model`."""
        q, qd, qdd = (np.asarray(x, np.float64) for x in (*motion, ())[:3])
        self._write(topic, STATE, t_ns, model, list(names), q, qd, qdd, np.zeros(0), [])

    def shape(self, topic: str, t_ns: int, arc_length: Any, points: Any) -> None:
        """Points (n, 3) [m] of a fiber at arc lengths (n,) [m]."""
        flat = np.asarray(points, np.float64).reshape(-1)
        self._write(topic, SHAPE, t_ns, np.asarray(arc_length, np.float64), flat, np.zeros(0))

    def _make(self, msgtype: str, *fields: Any) -> Any:
        return self._types[msgtype](*fields)

    def _write(self, topic: str, msgtype: str, t_ns: int, *fields: Any) -> None:
        stamp = self._make('builtin_interfaces/msg/Time', *divmod(t_ns, 1_000_000_000))
        header = self._make('std_msgs/msg/Header', stamp, self._frame_id)
        data = self._store.serialize_cdr(self._make(msgtype, header, *fields), msgtype)
        self._bag.write(topic, msgtype, bytes(data), t_ns)
