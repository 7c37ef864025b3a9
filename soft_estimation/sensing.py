"""What each sensor says about the state: innovation, Jacobian and noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from soft_dynamics.arguments import Array, as_array

from .configuration import Tracking, frame_index
from .kernels import pose_innovations
from .poses import pose_from_rpy
from .process import Process
from .process import slopes as slopes  # also for those who have no process


class Reading(NamedTuple):
    """z - h(x), dh/dx (m, size) and the variance (m,) of the noise."""

    innovation: Array
    H: Array
    variance: Array


class Measurement(Protocol):
    """Something measured at time t by `sensors`, each of which has its share of the rows of a reading."""

    @property
    def t(self) -> float: ...

    @property
    def sensors(self) -> tuple[str, ...]: ...

    def read(self, process: Process, x: Array, pressure: Array) -> Reading: ...

    def only(self, k: int) -> Measurement:
        """What sensor k measured."""

    def behind(self, k: int) -> Measurement:
        """What the sensors from k on measured."""


class Places(NamedTuple):
    """Of tracked frames: their index, how many coordinates lie before them, and where on them the sensors sit."""

    frame: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int64]
    p_FS: Array  # [m]


class PoseSet(NamedTuple):
    """Poses X_MF (k, 4, 4) of frames at one time, in the world of the robot file; sensors S sit at p_FS on them."""

    t: float
    sensors: tuple[str, ...]
    X_WS: Array  # as they were measured
    X_MF: Array
    place: Places
    noise: tuple[float, float]  # [rad], [m]

    def read(self, process: Process, x: Array, pressure: Array) -> Reading:
        """Innovation (log R_meas R^T, p_MS_meas - p_MS), world axes: the noise is that of the sensor's own place."""
        robot, rows = process.robot, 6 * len(self.sensors)
        q = x[: process.n]
        innovation, H = np.empty(rows), np.empty((rows, process.size))
        J_tip, X_M = robot.jacobian(q, 'tip'), robot.forward_kinematics(q)
        pose_innovations(X_M, J_tip, *self.place[:2], self.X_MF, self.place.p_FS, innovation, H)
        return Reading(innovation, H, np.tile(np.repeat(np.square(self.noise), 3), len(self.sensors)))

    def only(self, k: int) -> PoseSet:
        return self._part(slice(k, k + 1))

    def behind(self, k: int) -> PoseSet:
        return self._part(slice(k, None)) if k else self

    def _part(self, part: slice) -> PoseSet:
        place = Places(self.place.frame[part], self.place.columns[part], self.place.p_FS[part])
        return PoseSet(self.t, self.sensors[part], self.X_WS[part], self.X_MF[part], place, self.noise)


class ShapeSample(NamedTuple):
    """Points p_MC (n, 3) of the body at the arc lengths s, in the world of the robot file."""

    t: float
    sensors: tuple[str, ...]
    s: Array
    points: Array
    noise: float  # [m]

    def read(self, process: Process, x: Array, pressure: Array) -> Reading:
        def points(q: Array) -> Array:
            return process.robot.centerline(q, self.s).reshape(*q.shape[:-1], -1)

        q = x[: process.n]
        H = np.zeros((self.points.size, process.size))
        H[:, : process.n] = slopes(points, q)
        return Reading(self.points.reshape(-1) - points(q), H, np.full(self.points.size, self.noise**2))

    def only(self, _k: int) -> ShapeSample:
        return self

    def behind(self, _k: int) -> ShapeSample:
        return self


class WrenchSample(NamedTuple):
    """Wrench (torque, force) on the robot at its base, in its axes."""

    t: float
    sensors: tuple[str, ...]
    wrench: Array
    noise: tuple[float, float]  # [N m], [N]

    def read(self, process: Process, x: Array, pressure: Array) -> Reading:
        """The base carries what moves: h = W(q, qd, qdd) with qdd from the model.                 [Mehl, eq. 28]"""
        wrench, H = process.base_wrench(x, pressure)
        return Reading(self.wrench - wrench, H, np.repeat(np.square(self.noise), 3))

    def only(self, _k: int) -> WrenchSample:
        return self

    def behind(self, _k: int) -> WrenchSample:
        return self


class Mounting:
    """Where the sensors of a robot file are, to bring raw data into the world M of that file."""

    def __init__(self, tracking: Tracking) -> None:
        description = tracking.robot.description
        self._tracking = tracking
        self._sensors = {s.name: s for s in description.sensors}
        self._length = tracking.robot.length
        self._places: dict[tuple[str, ...], Places] = {}

    def poses(self, t: float, poses: Mapping[str, Any], noise: tuple[float, float]) -> PoseSet:
        """From poses X_WS of one time, by sensor."""
        names = tuple(poses)
        X_WS, X_MF = self._tracking.frame_poses(poses)
        place = self._places.get(names)
        if place is None:
            place = self._places[names] = self._tracking_places(names)
        return PoseSet(t, names, X_WS, X_MF, place, noise)

    def _tracking_places(self, names: tuple[str, ...]) -> Places:
        robot, sensors = self._tracking.robot, [self._sensors[name] for name in names]
        frames = [frame_index(robot, sensor) for sensor in sensors]
        columns = [self._tracking.coordinates_before(frame) for frame in frames]
        return Places(np.array(frames), np.array(columns), np.array([s.position for s in sensors]))

    def wrench(self, t: float, name: str, wrench_S: Any, noise: tuple[float, float]) -> WrenchSample:
        """From the wrench about the sensor, in its axes."""
        sensor = self._sensor(name, 'ft')
        w = as_array('wrench', wrench_S)
        if w.shape != (6,):
            raise ValueError(f'wrench: expected shape (6,), got {w.shape}')
        X_BS = pose_from_rpy(sensor.position, sensor.rpy)
        force_B = X_BS[:3, :3] @ w[3:]
        torque_B = X_BS[:3, :3] @ w[:3] + np.cross(X_BS[:3, 3], force_B)
        return WrenchSample(t, (name,), np.concatenate([torque_B, force_B]), noise)

    def shape(self, t: float, name: str, s: Any, points_S: Any, noise: float, places: int) -> ShapeSample:
        """From points in the sensor's frame, of which as many as `places`, evenly spread, are used; NaN are lost."""
        sensor = self._sensor(name, 'fiber')
        if sensor.frame != 'base' or self._tracking.robot.description.base.type != 'fixed':
            raise ValueError(f'sensor {name!r}: expected a fiber that starts at a fixed base')
        s, points = as_array('s', s), np.asarray(points_S, float)
        if points.shape != (s.size, 3):
            raise ValueError(f'points: expected shape ({s.size}, 3), got {points.shape}')
        kept = np.flatnonzero(np.all(np.isfinite(points), 1) & (s > 0.0) & (s <= self._length))
        if not kept.size:
            raise ValueError('points: expected some along the body that are not lost, got none')
        kept = kept[np.unique(np.linspace(0, kept.size - 1, min(places, kept.size)).round().astype(int))]
        base = self._tracking.robot.pose(self._tracking.robot.rest, 'base')
        X_MS = base @ pose_from_rpy(sensor.position, sensor.rpy)
        return ShapeSample(t, (name,), s[kept], points[kept] @ X_MS[:3, :3].T + X_MS[:3, 3], noise)

    def _sensor(self, name: str, kind: str) -> Any:
        sensor = self._sensors.get(name)
        if sensor is None or sensor.kind != kind:
            known = ', '.join(s.name for s in self._sensors.values() if s.kind == kind) or 'none'
            raise ValueError(f'expected a sensor of kind {kind} ({known}), got {name!r}')
        return sensor
