"""A fiber along the body: points of its shape, in the frame of the sensor at the base."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from soft_dynamics.array import Array, as_array
from soft_dynamics.description.sensors import Sensor
from soft_dynamics.reader import quantity
from soft_dynamics.robot import Robot

from ...inverse_kinematics.fiber_shape import frames_along
from ...inverse_kinematics.pose_tracking import Tracking
from ..measurement import Correction, Reading
from ..process_model import Belief, Process, slopes
from .bodies import NO_NOISE, PoseNoise, PoseSet, TrackedBodies
from .sensor_kind import SensorKind, sensor_of, sensor_pose

FIBER_TWIST = 1.0  # [1/rad] of its squared bend: a fiber does not measure the twist of the body around it
LARGEST_SHAPE = 4_000_000  # [bytes] that fiber_bridge sends of the longest fiber


@dataclass(frozen=True)
class FiberNoise:
    """Parameters: noise of the points of a fiber."""

    shape_noise: float = quantity(5e-4, unit='m', doc='noise of each point of a fiber')
    shape_rotation_noise: float = quantity(
        0.05,
        unit='rad',
        doc="noise of a fiber's direction relative to the body; enlarged, since the error lasts",
    )
    shape_places: int = quantity(12, doc='points of a fiber in an update')


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


class Fibers:
    """Places of a robot's fibers, for transforming their points into the world M of its file."""

    def __init__(
        self, tracking: Tracking, noise: PoseNoise = NO_NOISE, bodies: TrackedBodies | None = None
    ) -> None:
        self._tracking, self._noise = tracking, noise
        self._bodies = bodies or TrackedBodies(tracking, noise)
        self._X_MB = tracking.robot.pose(tracking.robot.rest, 'base')
        self._fibers: dict[str, tuple[list[str], Array]] = {}

    def shape(self, t: float, name: str, s: Any, points_S: Any, noise: float, places: int) -> ShapeSample:
        """Return the measurement of points in the sensor's frame; uses `places` of them, evenly spread; NaN: lost."""
        X_MS = self._fiber_base(name)
        s, points = as_array('s', s), np.asarray(points_S, float)
        if points.shape != (s.size, 3):
            raise ValueError(f'points: expected shape ({s.size}, 3), got {points.shape}')
        kept = np.flatnonzero(np.all(np.isfinite(points), 1) & (s > 0.0) & (s <= self._tracking.robot.length))
        if not kept.size:
            raise ValueError('points: expected valid ones along the body, got none')
        kept = kept[np.unique(np.linspace(0, kept.size - 1, min(places, kept.size)).round().astype(int))]
        return ShapeSample(t, (name,), s[kept], points[kept] @ X_MS[:3, :3].T + X_MS[:3, 3], noise)

    def poses(self, t: float, name: str, s: Any, points_S: Any) -> PoseSet:
        """Return the ends of all segments as bodies: positions from fiber points, and frames carried along the fiber.

        The noise of positions and directions follows from that of a point, by the fit.
        """
        X_MS = self._fiber_base(name)
        bodies, ends = self._fiber_bodies(name)
        p_SF, R_SF, place_share, turn_share = frames_along(s, points_S, ends)
        X_SF = np.zeros((len(ends), 4, 4))
        X_SF[:, :3, :3], X_SF[:, :3, 3], X_SF[:, 3, 3] = R_SF, p_SF, 1.0
        X_WF = self._tracking.world_poses(X_MS @ X_SF)
        turn, point = np.square(self._noise.of_kind['fiber'])
        variance = np.stack([turn + turn_share * point, place_share * point], 1)
        misfit = np.array([self._noise.misfit[0], FIBER_TWIST])
        named = self._tracking.checked(dict(zip(bodies, X_WF, strict=True)))
        return self._bodies.poses(t, *named, variance)._replace(misfit=misfit)

    def _fiber_bodies(self, name: str) -> tuple[list[str], Array]:
        """Return a body for the end of every segment along the fiber, and their arc lengths."""
        if name not in self._fibers:
            segments = self._tracking.robot.description.segments
            bodies = [Sensor(name=f'{name}/{s.name}', kind='fiber', frame=s.name) for s in segments]
            for body in bodies:
                self._tracking.add_body(body)
            self._fibers[name] = [b.name for b in bodies], np.cumsum([s.length for s in segments])
        return self._fibers[name]

    def _fiber_base(self, name: str) -> Array:
        sensor = sensor_of(self._tracking.robot, name, 'fiber')
        if sensor.frame != 'base' or self._tracking.robot.description.base.moves:
            raise ValueError(f'sensor {name!r}: expected a fiber that starts at a fixed base')
        return np.asarray(self._X_MB @ sensor_pose(sensor))


def at_rest(robot: Robot, _sensor: Sensor) -> tuple[Array, Array]:
    """A straight fiber."""
    s = np.linspace(0.0, robot.length, 30, dtype=np.float64)
    points: Array = np.zeros((s.size, 3))
    points[:, 2] = s
    return s, points


def feed(estimator: Any, name: str, t: float, shape: tuple[Array, Array]) -> None:
    """Feed points (n, 3) at arc lengths (n,)."""
    estimator.feed_shape(t, name, *shape)


FIBER = SensorKind(
    message='soft_robot_suite/msg/ShapeSamples',
    topic='fiber/shape',
    feed=feed,
    noise=lambda config: (config.shape_rotation_noise, config.shape_noise),
    at_rest=at_rest,
    largest_message=LARGEST_SHAPE,
)
