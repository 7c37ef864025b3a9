"""What each sensor says about the state: innovation, Jacobian and noise."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from soft_dynamics.arguments import Array, as_array
from soft_dynamics.description import Disc, Link, Sensor

from .configuration import Tracking, frame_index
from .fiber import frames_along
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

    def behind(self, k: int, is_refused: bool) -> Measurement:
        """What the sensors from k on measured; is_refused: the one before them was wrong."""


class Places(NamedTuple):
    """Of k tracked frames, base to tip.

    frames (k, 4): index of the frame and how many coordinates lie before it, then the same of the frame it refers to
    (-1, 0: the world). parent (k,): which of the k that is, -1 if none.
    """

    frames: npt.NDArray[np.int64]
    parent: npt.NDArray[np.int64]
    p_FS: Array  # [m] where on its frame each sensor sits
    span: Array  # (k,) soft segments between the two frames, at least 1: what the model misses adds up


class PoseSet(NamedTuple):
    """Poses X_MF (k, 4, 4) of frames at one time, in the world of the robot file.

    Each refers to the seen frame before it, so that what the model does not explain of one segment (twist, length) does
    not look like a bend of all those behind it.
    """

    t: float
    sensors: tuple[str, ...]
    X_WS: Array  # as they were measured
    X_MF: Array
    X_ref: Array  # of the frames they refer to
    place: Places
    variance: Array  # (k, 6)

    def read(self, process: Process, x: Array, pressure: Array) -> Reading:
        """Innovation (log R_meas R^T, p_MS_meas - p_MS), world axes: the noise is that of the sensor's own place."""
        q, robot, place = x[: process.n], process.robot, self.place
        X_M, J_tip, measured = robot.forward_kinematics(q), robot.jacobian(q, 'tip'), (self.X_MF, self.X_ref)
        innovation, H = pose_innovations(X_M, J_tip, measured, place.p_FS, place.frames, process.size)
        return Reading(innovation, H, self.variance.ravel())

    def only(self, k: int) -> PoseSet:
        return self._part(slice(k, k + 1))

    def behind(self, k: int, is_refused: bool) -> PoseSet:
        """is_refused: nobody refers to the last of those before k any more, but to what that one refers to."""
        if is_refused and np.any(self.place.parent == k - 1):
            orphan = self.place.parent == k - 1
            frames, parent, X_ref = self.place.frames.copy(), self.place.parent.copy(), self.X_ref.copy()
            frames[orphan, 2:], parent[orphan] = frames[k - 1, 2:], parent[k - 1]
            X_ref[orphan] = X_ref[k - 1]
            whole = self._replace(place=self.place._replace(frames=frames, parent=parent), X_ref=X_ref)
            return whole._part(slice(k, None))
        return self._part(slice(k, None)) if k else self

    def _part(self, part: slice) -> PoseSet:
        frames, parent, p_FS, span = self.place
        place = Places(frames[part], parent[part] - part.start, p_FS[part], span[part])
        arrays = self.X_WS[part], self.X_MF[part], self.X_ref[part]
        return PoseSet(self.t, self.sensors[part], *arrays, place, self.variance[part])


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

    def behind(self, _k: int, _is_refused: bool) -> ShapeSample:
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

    def behind(self, _k: int, _is_refused: bool) -> WrenchSample:
        return self


@functools.lru_cache(maxsize=64)
def sensor_pose(sensor: Sensor) -> Array:
    """X_FS of a sensor on its frame; not to be written to."""
    return pose_from_rpy(sensor.position, sensor.rpy)


def wrench_at_base(sensor: Sensor, wrench_S: Array) -> Array:
    """Torque and force about the base and in its axes, from those about a sensor on it, in the sensor's."""
    X_BS = sensor_pose(sensor)
    force_B = X_BS[:3, :3] @ wrench_S[3:]
    torque_B = X_BS[:3, :3] @ wrench_S[:3] + np.cross(X_BS[:3, 3], force_B)
    return np.concatenate([torque_B, force_B])


class Mounting:
    """Where the sensors of a robot file are, to bring raw data into the world M of that file."""

    def __init__(self, tracking: Tracking) -> None:
        description = tracking.robot.description
        self._tracking = tracking
        self._sensors = {s.name: s for s in description.sensors}
        self._length = tracking.robot.length
        self._X_MB = tracking.robot.pose(tracking.robot.rest, 'base')
        self._places: dict[tuple[str, ...], tuple[list[int], Places]] = {}

    def poses(self, t: float, poses: Mapping[str, Any], noise: tuple[float, float]) -> PoseSet:
        """From poses X_WS of one time, by sensor."""
        names = tuple(poses)
        X_WS, X_MF = self._tracking.frame_poses(poses)
        if names not in self._places:
            self._places[names] = self._tracking_places(names)
        order, place = self._places[names]
        X_WS, X_MF = X_WS[order], X_MF[order]
        X_ref, is_seen = X_MF[place.parent], place.parent >= 0
        distance = np.linalg.norm(X_MF[:, :3, 3] - X_ref[:, :3, 3], axis=1)[:, None] * is_seen[:, None]
        variance = np.empty((len(names), 6))
        variance[:, :3] = noise[0] ** 2 * (1.0 + is_seen[:, None])
        variance[:, 3:] = noise[1] ** 2 * (1.0 + is_seen[:, None]) + (noise[0] * distance) ** 2
        variance *= place.span[:, None] ** 2
        return PoseSet(t, tuple(names[k] for k in order), X_WS, X_MF, X_ref, place, variance)

    def _tracking_places(self, names: tuple[str, ...]) -> tuple[list[int], Places]:
        """The order from base to tip, and the places in that order."""
        tracking, sensors = self._tracking, [self._sensors[name] for name in names]
        indices = [frame_index(tracking.robot, sensor) for sensor in sensors]
        order = sorted(range(len(names)), key=indices.__getitem__)
        moves = tracking.robot.description.base.type != 'fixed'
        frames, parent = np.full((len(names), 4), [0, 0, -1, 0]), np.full(len(names), -1)
        last = -1
        for k, i in enumerate(order):
            frames[k, :2] = indices[i], tracking.coordinates_before(indices[i])
            if k and indices[i] > indices[order[k - 1]]:
                last = k - 1
            if last >= 0 and (moves or frames[last, 0] > 0):  # a fixed base is known better than it is seen
                frames[k, 2:], parent[k] = frames[last, :2], last
        soft = np.cumsum([0, *(not isinstance(s, Link) for s in tracking.robot.description.segments)])
        span = np.maximum(soft[frames[:, 0]] - soft[np.maximum(frames[:, 2], 0)], 1).astype(float)
        return order, Places(frames, parent, np.array([sensors[i].position for i in order]), span)

    def wrench(self, t: float, name: str, wrench_S: Any, noise: tuple[float, float]) -> WrenchSample:
        """From the wrench about the sensor, in its axes."""
        sensor = self._sensor(name, 'ft')
        w = as_array('wrench', wrench_S)
        if w.shape != (6,):
            raise ValueError(f'wrench: expected shape (6,), got {w.shape}')
        return WrenchSample(t, (name,), wrench_at_base(sensor, w), noise)

    def shape(self, t: float, name: str, s: Any, points_S: Any, noise: float, places: int) -> ShapeSample:
        """From points in the sensor's frame, of which as many as `places`, evenly spread, are used; NaN are lost."""
        X_MS = self._fiber_base(name)
        s, points = as_array('s', s), np.asarray(points_S, float)
        if points.shape != (s.size, 3):
            raise ValueError(f'points: expected shape ({s.size}, 3), got {points.shape}')
        kept = np.flatnonzero(np.all(np.isfinite(points), 1) & (s > 0.0) & (s <= self._length))
        if not kept.size:
            raise ValueError('points: expected some along the body that are not lost, got none')
        kept = kept[np.unique(np.linspace(0, kept.size - 1, min(places, kept.size)).round().astype(int))]
        return ShapeSample(t, (name,), s[kept], points[kept] @ X_MS[:3, :3].T + X_MS[:3, 3], noise)

    def shape_poses(self, t: float, name: str, s: Any, points_S: Any, noise: tuple[float, float]) -> PoseSet:
        """The ends of all segments as bodies, from points of a fiber: their places, and frames carried along it."""
        X_MS = self._fiber_base(name)
        segments = [s for s in self._tracking.robot.description.segments if not isinstance(s, Disc)]
        lengths = [segment.length for segment in segments]
        p_SF, R_SF = frames_along(s, points_S, np.cumsum(lengths))
        X_SF = np.tile(np.eye(4), (len(lengths), 1, 1))
        X_SF[:, :3, :3], X_SF[:, :3, 3] = R_SF, p_SF
        X_WF, bodies = self._tracking.world_poses(X_MS @ X_SF), []
        for segment in segments:
            body = Sensor(name=f'{name}/{segment.name}', kind='fiber', frame=segment.name)
            if body.name not in self._sensors:
                self._sensors[body.name] = body
                self._tracking.add_body(body)
            bodies.append(body.name)
        return self.poses(t, dict(zip(bodies, X_WF, strict=True)), noise)

    def _fiber_base(self, name: str) -> Array:
        sensor = self._sensor(name, 'fiber')
        if sensor.frame != 'base' or self._tracking.robot.description.base.type != 'fixed':
            raise ValueError(f'sensor {name!r}: expected a fiber that starts at a fixed base')
        return np.asarray(self._X_MB @ sensor_pose(sensor))

    def _sensor(self, name: str, kind: str) -> Any:
        sensor = self._sensors.get(name)
        if sensor is None or sensor.kind != kind:
            known = ', '.join(s.name for s in self._sensors.values() if s.kind == kind) or 'none'
            raise ValueError(f'expected a sensor of kind {kind} ({known}), got {name!r}')
        return sensor
