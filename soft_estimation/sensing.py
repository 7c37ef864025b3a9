"""What each sensor says about the state: innovation, Jacobian and noise."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from soft_dynamics.arguments import Array, as_array

from .configuration import Tracking
from .poses import pose_from_rpy, rotation_vector, skew
from .process import Process


class Reading(NamedTuple):
    """z - h(x), dh/dx (m, size) and the variance (m,) of the noise."""

    innovation: Array
    H: Array
    variance: Array


class Measurement(Protocol):
    """Something measured at time t by `sensor`."""

    @property
    def t(self) -> float: ...

    @property
    def sensor(self) -> str: ...

    def read(self, process: Process, x: Array, pressure: Array) -> Reading: ...


class PoseSample(NamedTuple):
    """Pose X_MF of frame `frame` in the world of the robot file; the sensor S sits at p_FS on it."""

    t: float
    sensor: str
    frame: str
    X_WS: Array  # as it was measured
    X_MF: Array
    p_FS: Array
    noise: tuple[float, float]  # [rad], [m]

    def read(self, process: Process, x: Array, pressure: Array) -> Reading:
        """Innovation (log R_meas R^T, p_MS_meas - p_MS), world axes: the noise is that of the sensor's own place."""
        q = x[: process.n]
        X_MF = process.robot.pose(q, self.frame)
        J = process.robot.jacobian(q, self.frame)
        arm_M = X_MF[:3, :3] @ self.p_FS
        p_MS = self.X_MF[:3, :3] @ self.p_FS + self.X_MF[:3, 3]
        innovation = np.concatenate(
            [rotation_vector(self.X_MF[:3, :3] @ X_MF[:3, :3].T), p_MS - X_MF[:3, 3] - arm_M]
        )
        H = np.zeros((6, process.size))
        H[:3, : process.n], H[3:, : process.n] = J[:3], J[3:] - skew(arm_M) @ J[:3]
        return Reading(innovation, H, np.repeat(np.square(self.noise), 3))


class ShapeSample(NamedTuple):
    """Points p_MC (n, 3) of the body at the arc lengths s, in the world of the robot file."""

    t: float
    sensor: str
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


class WrenchSample(NamedTuple):
    """Wrench (torque, force) on the robot at its base, in its axes."""

    t: float
    sensor: str
    wrench: Array
    noise: tuple[float, float]  # [N m], [N]

    def read(self, process: Process, x: Array, pressure: Array) -> Reading:
        """The base carries what moves: h = W(q, qd, qdd) with qdd from the model.                 [Mehl, eq. 28]"""

        def wrench(x: Array) -> Array:
            n = process.n
            qdd = process.acceleration(x, pressure)
            return process.robot.base_wrench(x[..., :n], x[..., n : 2 * n], qdd)

        return Reading(self.wrench - wrench(x), slopes(wrench, x), np.repeat(np.square(self.noise), 3))


def slopes(function: Any, x: Array, eps: float = 1e-6) -> Array:
    """Jacobian (m, n) by central differences of a function that takes many rows at once."""
    steps = eps * np.eye(x.size)
    rows = function(np.concatenate([x + steps, x - steps]))
    return np.asarray((rows[: x.size] - rows[x.size :]).T / (2.0 * eps))


class Mounting:
    """Where the sensors of a robot file are, to bring raw data into the world M of that file."""

    def __init__(self, tracking: Tracking) -> None:
        description = tracking.robot.description
        self._tracking = tracking
        self._sensors = {s.name: s for s in description.sensors}
        self._length = tracking.robot.length

    def pose(self, t: float, name: str, X_WS: Any, noise: tuple[float, float]) -> PoseSample:
        X_MF = self._tracking.frame_pose(name, X_WS)
        sensor = self._sensors[name]
        return PoseSample(
            t, name, sensor.frame, as_array('X_WS', X_WS), X_MF, np.array(sensor.position), noise
        )

    def wrench(self, t: float, name: str, wrench_S: Any, noise: tuple[float, float]) -> WrenchSample:
        """From the wrench about the sensor, in its axes."""
        sensor = self._sensor(name, 'ft')
        w = as_array('wrench', wrench_S)
        if w.shape != (6,):
            raise ValueError(f'wrench: expected shape (6,), got {w.shape}')
        X_BS = pose_from_rpy(sensor.position, sensor.rpy)
        force_B = X_BS[:3, :3] @ w[3:]
        torque_B = X_BS[:3, :3] @ w[:3] + np.cross(X_BS[:3, 3], force_B)
        return WrenchSample(t, name, np.concatenate([torque_B, force_B]), noise)

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
        return ShapeSample(t, name, s[kept], points[kept] @ X_MS[:3, :3].T + X_MS[:3, 3], noise)

    def _sensor(self, name: str, kind: str) -> Any:
        sensor = self._sensors.get(name)
        if sensor is None or sensor.kind != kind:
            known = ', '.join(s.name for s in self._sensors.values() if s.kind == kind) or 'none'
            raise ValueError(f'expected a sensor of kind {kind} ({known}), got {name!r}')
        return sensor
