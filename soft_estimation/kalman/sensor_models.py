"""Sensor models: innovation, Jacobian and noise of each sensor."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from soft_dynamics.array import Array, as_array
from soft_dynamics.description.sensors import Sensor
from soft_dynamics.geometry.se3 import pose_from_rpy

from ..inverse_kinematics.fiber_shape import frames_along
from ..inverse_kinematics.pose_tracking import Tracking, frame_index
from .measurement import Correction, Reading
from .pose_kernels import correct_by_poses, pose_reading
from .process_model import Belief, Process
from .process_model import slopes as slopes  # also for those who have no process

FIBER_TWIST = 1.0  # [1/rad] of its squared bend: a fiber does not measure the twist of the body around it

OPEN_PLACE = 1.0  # [m] noise of an uninformative position
LARGEST_WRENCH = 1e5  # [N m], [N] no sensor reads more


class Places(NamedTuple):
    """Places of k tracked frames, base to tip.

    frames (k, 4): index of the frame and number of coordinates before it, then the same of its reference frame
    (-1, 0: the world). parent (k,): which of the k is the reference, negative if none.
    """

    frames: npt.NDArray[np.int64]
    parent: npt.NDArray[np.int64]
    p_FS: Array  # [m] position of each sensor on its frame
    p_ref: Array  # [m] the same for its reference sensor
    starts: npt.NDArray[np.int64]  # number of coordinates before each frame of the robot


class PoseSet(NamedTuple):
    """Poses X_MF (k, 4, 4) of frames at one time, in the world of the robot file.

    Each refers to the seen frame before it, so that a model error of one segment (twist, length) does not look like a
    bend of all segments behind it.
    """

    t: float
    sensors: tuple[str, ...]
    X_WS: Array  # as measured
    X_MF: Array
    X_ref: Array  # poses of the reference frames
    place: Places
    variance: Array  # (k, 4) of rotation and position, of the pose and of its reference
    misfit: Array  # (2,) see pose_kernels.add_misfit
    samples: float  # samples that share a misfit

    @property
    def doubt(self) -> tuple[Array, Array, float]:
        return self.variance, self.misfit, self.samples

    @property
    def showing(self) -> int:
        """Number of bodies behind the base."""
        return int(np.count_nonzero(self.place.frames[:, 1] > self.place.starts[0]))

    @property
    def dof(self) -> int:
        return 6

    @property
    def content(self) -> Array:
        return self.X_WS

    def read(self, process: Process, x: Array, pressure: Array) -> Reading:
        """Return white innovations (log R_meas R^T, p_MS_meas - p_MS), world axes: see pose_kernels.pose_reading."""
        X_M, J_tip = process.robot.frames_and_jacobian(x[: process.n])
        measured = self.X_MF, self.X_ref
        white, white_H, *check = pose_reading(X_M, J_tip, measured, self.place, self.doubt, process.size)
        return Reading(white, white_H, np.ones(white.size), tuple(check))

    def correct(self, process: Process, belief: Belief, _pressure: Array, rule: Array) -> Correction:
        """Read and correct in one call."""
        frames, measured = process.robot.frames_and_jacobian(belief.x[: process.n]), (self.X_MF, self.X_ref)
        after = np.empty_like(belief.x), np.empty_like(belief.P), np.empty(len(self.sensors))
        let_in = correct_by_poses(belief[1:], frames, measured, self.place, self.doubt, rule, after)
        return Correction(*after, let_in)

    def with_open_places(self, bodies: Collection[str]) -> PoseSet:
        """Return the same set, with only the directions of these bodies."""
        variance = self.variance.copy()
        for k, (sensor, parent) in enumerate(zip(self.sensors, self.place.parent, strict=True)):
            if sensor in bodies:
                variance[k, 1] = OPEN_PLACE**2
            if parent >= 0 and self.sensors[parent] in bodies:
                variance[k, 3] = OPEN_PLACE**2
        return self._replace(variance=variance)

    def only(self, k: int) -> PoseSet:
        return self._part(np.array([k]))

    def behind(self, k: int) -> PoseSet:
        return self._part(np.arange(k, len(self.sensors))) if k else self

    def without(self, k: int) -> PoseSet:
        """Return the set without k; what referred to k then refers to k's reference."""
        frames, parent, p_ref = self.place.frames.copy(), self.place.parent.copy(), self.place.p_ref.copy()
        X_ref, variance, orphan = self.X_ref.copy(), self.variance.copy(), parent == k
        frames[orphan, 2:], parent[orphan], p_ref[orphan] = frames[k, 2:], parent[k], p_ref[k]
        X_ref[orphan], variance[orphan, 2:] = X_ref[k], variance[k, 2:]
        place = self.place._replace(frames=frames, parent=parent, p_ref=p_ref)
        whole = self._replace(place=place, X_ref=X_ref, variance=variance)
        return whole._part(np.delete(np.arange(len(parent)), k))

    def _part(self, rows: npt.NDArray[np.int64]) -> PoseSet:
        """Return a part of the set. A pose whose reference is not in it no longer shares its noise."""
        index = np.full(len(self.sensors) + 1, -1)  # the last entry stands for no parent
        index[rows] = np.arange(rows.size)
        frames, parent, p_FS, p_ref, starts = self.place
        place = Places(frames[rows], index[parent[rows]], p_FS[rows], p_ref[rows], starts)
        arrays = self.X_WS[rows], self.X_MF[rows], self.X_ref[rows], place, self.variance[rows]
        return PoseSet(self.t, tuple(self.sensors[k] for k in rows), *arrays, self.misfit, self.samples)


class PoseNoise(NamedTuple):
    """Standard deviations of rotation [rad] and position [m] by kind of sensor, and the model misfit."""

    of_kind: Mapping[str, tuple[float, float]]  # of a fiber: of its direction, and of each point
    misfit: tuple[float, float]  # see pose_kernels.add_misfit
    samples: float = 1.0  # samples that share a misfit


NO_NOISE = PoseNoise({'mocap': (0.0, 0.0), 'vive': (0.0, 0.0), 'fiber': (0.0, 0.0)}, (0.0, 0.0))


class _Bodies(NamedTuple):
    """Tracked bodies that come together, base to tip: places, names, and variances as in PoseSet."""

    order: list[int]  # order in which they arrive, or None if it is this one
    place: Places
    sensors: tuple[str, ...]
    variance: Array


class ShapeSample(NamedTuple):
    """Points p_MC (n, 3) of the body at the arc lengths s, in the world of the robot file."""

    t: float
    sensors: tuple[str, ...]
    s: Array
    points: Array
    noise: float  # [m]

    @property
    def showing(self) -> int:
        return 1

    @property
    def dof(self) -> int:
        return self.points.size

    @property
    def content(self) -> Array:
        return self.points

    def read(self, process: Process, x: Array, pressure: Array) -> Reading:
        def points(q: Array) -> Array:
            return process.robot.centerline(q, self.s).reshape(*q.shape[:-1], -1)

        q = x[: process.n]
        H = np.zeros((self.points.size, process.size))
        H[:, : process.n] = slopes(points, q)
        return Reading.plain(self.points.reshape(-1) - points(q), H, np.full(self.points.size, self.noise**2))

    def correct(self, process: Process, belief: Belief, pressure: Array, rule: Array) -> Correction:
        return self.read(process, belief.x, pressure).correct(belief, rule)

    def only(self, _k: int) -> ShapeSample:
        return self

    def behind(self, _k: int) -> ShapeSample:
        return self

    def without(self, _k: int) -> ShapeSample:
        return self._replace(sensors=())


class WrenchSample(NamedTuple):
    """Wrench (torque, force) on the robot at its base, in its axes."""

    t: float
    sensors: tuple[str, ...]
    wrench: Array
    noise: tuple[float, float]  # [N m], [N]

    @property
    def showing(self) -> int:
        return 0

    @property
    def dof(self) -> int:
        return 6

    @property
    def content(self) -> Array:
        return self.wrench

    def read(self, process: Process, x: Array, pressure: Array) -> Reading:
        """Return the reading: the base carries what moves, h = W(q, qd, qdd), qdd from the model.   [Mehl, eq. 28]"""
        wrench, H = process.base_wrench(x, pressure)
        return Reading.plain(self.wrench - wrench, H, np.repeat(np.square(self.noise), 3))

    def correct(self, process: Process, belief: Belief, pressure: Array, rule: Array) -> Correction:
        return self.read(process, belief.x, pressure).correct(belief, rule)

    def only(self, _k: int) -> WrenchSample:
        return self

    def behind(self, _k: int) -> WrenchSample:
        return self

    def without(self, _k: int) -> WrenchSample:
        return self._replace(sensors=())


@functools.lru_cache(maxsize=64)
def sensor_pose(sensor: Sensor) -> Array:
    """Return X_FS of a sensor on its frame; read-only."""
    return pose_from_rpy(sensor.position, sensor.rpy)


@functools.lru_cache(maxsize=64)
def _wrench_map(sensor: Sensor) -> Array:
    """Return the matrix (6, 6) from torque and force about a sensor to those about its frame; read-only."""
    X_FS = sensor_pose(sensor)
    out = np.zeros((6, 6))
    out[:3, :3] = out[3:, 3:] = X_FS[:3, :3]
    out[:3, 3:] = np.cross(X_FS[:3, 3], X_FS[:3, :3].T).T
    return out


def wrench_at_base(sensor: Sensor, wrench_S: Array) -> Array:
    """Return torque and force about the base and in its axes, from those about a sensor on it, in the sensor's axes."""
    return np.asarray(_wrench_map(sensor) @ wrench_S)


class Mounting:
    """Places of a robot's sensors, for transforming raw data into the world M of its file."""

    def __init__(self, tracking: Tracking, noise: PoseNoise = NO_NOISE) -> None:
        description = tracking.robot.description
        self._tracking = tracking
        self._sensors = {s.name: s for s in description.sensors}
        self._length = tracking.robot.length
        self._X_MB = tracking.robot.pose(tracking.robot.rest, 'base')
        self._variance = {kind: (turn**2, place**2) for kind, (turn, place) in noise.of_kind.items()}
        self._misfit, self._samples = np.array(noise.misfit), noise.samples
        self._places: dict[tuple[str, ...], _Bodies] = {}
        self._fibers: dict[str, tuple[list[str], Array]] = {}

    def poses(self, t: float, poses: Mapping[str, Any], variance: Array | None = None) -> PoseSet:
        """Return the set of poses X_WS of one time, by sensor; variance (k, 2) overrides that of the kind."""
        names = tuple(poses)
        X_WS, X_MF = self._tracking.frame_poses(poses)
        if names not in self._places:
            self._places[names] = self._bodies(names)
        order, place, sensors, usual = self._places[names]
        if order:
            X_WS, X_MF = X_WS[order], X_MF[order]
        if variance is not None:
            variance = variance[order] if order else variance
            usual = np.concatenate([variance, variance[place.parent]], 1)
        X_ref = X_MF[place.parent]
        return PoseSet(t, sensors, X_WS, X_MF, X_ref, place, usual, self._misfit, self._samples)

    def _bodies(self, names: tuple[str, ...]) -> _Bodies:
        tracking, sensors = self._tracking, [self._sensors[name] for name in names]
        indices = [frame_index(tracking.robot, sensor) for sensor in sensors]
        order = sorted(range(len(names)), key=indices.__getitem__)
        moves = tracking.robot.description.base.moves
        frames, parent = np.full((len(names), 4), [0, 0, -1, 0]), np.full(len(names), -1)
        last = -1
        for k, i in enumerate(order):
            frames[k, :2] = indices[i], tracking.coordinates_before(indices[i])
            if k and indices[i] > indices[order[k - 1]]:
                last = k - 1
            if last >= 0 and (
                moves or frames[last, 0] > 0
            ):  # a fixed base is known better than it is measured
                frames[k, 2:], parent[k] = frames[last, :2], last
        p_FS = np.array([sensors[i].position for i in order])
        starts = np.array([tracking.coordinates_before(k) for k in range(len(tracking.robot.frame_names))])
        place = Places(frames, parent, p_FS, p_FS[parent], starts)
        variance = np.array([self._variance[sensors[i].kind] for i in order])
        usual = np.concatenate([variance, variance[parent]], 1)
        in_order = tuple(names[i] for i in order)
        return _Bodies([] if in_order == names else order, place, in_order, usual)

    def wrench(self, t: float, name: str, wrench_S: Any, noise: tuple[float, float]) -> WrenchSample:
        """Return the measurement of a wrench about the sensor, in its axes."""
        sensor = self._sensor(name, 'ft')
        w = as_array('wrench', wrench_S)
        if w.shape != (6,):
            raise ValueError(f'wrench: expected shape (6,), got {w.shape}')
        if np.abs(w).max() > LARGEST_WRENCH:
            raise ValueError(
                f'wrench: expected at most {LARGEST_WRENCH:g} N m and N, got {np.abs(w).max():.3g}'
            )
        return WrenchSample(t, (name,), wrench_at_base(sensor, w), noise)

    def shape(self, t: float, name: str, s: Any, points_S: Any, noise: float, places: int) -> ShapeSample:
        """Return the measurement of points in the sensor's frame; uses `places` of them, evenly spread; NaN: lost."""
        X_MS = self._fiber_base(name)
        s, points = as_array('s', s), np.asarray(points_S, float)
        if points.shape != (s.size, 3):
            raise ValueError(f'points: expected shape ({s.size}, 3), got {points.shape}')
        kept = np.flatnonzero(np.all(np.isfinite(points), 1) & (s > 0.0) & (s <= self._length))
        if not kept.size:
            raise ValueError('points: expected valid ones along the body, got none')
        kept = kept[np.unique(np.linspace(0, kept.size - 1, min(places, kept.size)).round().astype(int))]
        return ShapeSample(t, (name,), s[kept], points[kept] @ X_MS[:3, :3].T + X_MS[:3, 3], noise)

    def shape_poses(self, t: float, name: str, s: Any, points_S: Any) -> PoseSet:
        """Return the ends of all segments as bodies: positions from fiber points, and frames carried along the fiber.

        The noise of positions and directions follows from that of a point, by the fit.
        """
        X_MS = self._fiber_base(name)
        bodies, ends = self._fiber_bodies(name)
        p_SF, R_SF, place_share, turn_share = frames_along(s, points_S, ends)
        X_SF = np.zeros((len(ends), 4, 4))
        X_SF[:, :3, :3], X_SF[:, :3, 3], X_SF[:, 3, 3] = R_SF, p_SF, 1.0
        X_WF = self._tracking.world_poses(X_MS @ X_SF)
        turn, point = self._variance['fiber']
        variance = np.stack([turn + turn_share * point, place_share * point], 1)
        misfit = np.array([self._misfit[0], FIBER_TWIST])
        return self.poses(t, dict(zip(bodies, X_WF, strict=True)), variance)._replace(misfit=misfit)

    def _fiber_bodies(self, name: str) -> tuple[list[str], Array]:
        """Return a body for the end of every segment along the fiber, and their arc lengths."""
        if name not in self._fibers:
            segments = self._tracking.robot.description.segments
            bodies = [Sensor(name=f'{name}/{s.name}', kind='fiber', frame=s.name) for s in segments]
            for body in bodies:
                self._sensors[body.name] = body
                self._tracking.add_body(body)
            self._fibers[name] = [b.name for b in bodies], np.cumsum([s.length for s in segments])
        return self._fibers[name]

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
