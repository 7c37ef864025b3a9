"""State from poses alone: coordinates by inverse kinematics, rates by the differentiator."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from soft_dynamics.array import Array
from soft_dynamics.messages.body_frame import BodyFrame
from soft_dynamics.robot import Robot

from ..inverse_kinematics.pose_tracking import MISFIT, MISTURN, Tracking, frame_index
from ..inverse_kinematics.poses import accepted
from ..kalman.sensor_faults import MisplacedBodies
from .differentiator import Differentiator, DifferentiatorConfig, Motion


class PoseDifferentiator:
    """Estimates the state of robots without a trusted model. Poses of one time belong together; late poses are dropped.

    max_residual [m]: drop a set of poses that the kinematics miss by more, or by half a radian, and list its bodies in
    `unexplained`.
    Segments without a body at both ends are not estimated: one pose across two segments determines their bends badly,
    and near the straight pose not at all. sensors: the bodies that will be fed, if not all of the robot file;
    ValueError if they leave such segments.
    """

    def __init__(
        self,
        robot: Robot,
        config: DifferentiatorConfig | None = None,
        max_residual: float = MISFIT,
        sensors: Iterable[str] | None = None,
    ) -> None:
        self._tracking = Tracking(robot)
        self.bodies = MisplacedBodies(self._tracking)
        self._spans: dict[tuple[str, ...], npt.NDArray[np.bool_]] = {}
        bodies = tuple(self._tracking.sensors if sensors is None else sensors)
        open_coordinates = np.flatnonzero(~self._determined(bodies))
        if open_coordinates.size:
            raise ValueError(
                f'{robot.name}: the differentiator needs a tracked body at the end of every soft segment; '
                f'{", ".join(bodies) or "no body"} cannot determine {robot.coordinate_names[open_coordinates[0]]}'
            )
        self._differentiator = Differentiator(robot.nq, config)
        self._max_residual = max_residual
        self._q: Array = robot.rest
        self._poses: dict[str, Array] = {}
        self._t = -math.inf
        self.too_late = self.unexplained = self._let_in = 0

    @property
    def started(self) -> bool:
        return math.isfinite(self._t)

    @property
    def located(self) -> bool:
        """Whether accepted poses determine all coordinates."""
        self._flush()
        return self._differentiator.is_complete

    @property
    def shown_at(self) -> float:
        """Time of measurement of the last accepted poses, or -inf."""
        self._flush()
        return self._differentiator.taken_at

    accepted_at = shown_at

    is_explained = True  # others were dropped

    @property
    def tally(self) -> tuple[int, int]:
        """How many poses were accepted, and how many were late or unexplained."""
        return self._let_in, self.too_late + self.unexplained

    def feed_pose(self, t: float, sensor: str, X_WS: Any) -> None:
        """Take the pose of a tracked body in the ROS world."""
        self.feed_poses(t, {sensor: X_WS})

    def feed_poses(self, t: float, X_WS: Mapping[str, Any]) -> None:
        """Take the poses of several tracked bodies at one time."""
        self._feed_bodies(t, *self._tracking.checked(X_WS))

    def feed_frame(self, t: float, frame: BodyFrame) -> dict[str, ValueError]:
        """Take a frame of tracked bodies at time t [s]. Returns the rejected bodies with the reason."""
        names, X_WS, refused = accepted(frame)
        self._tracking.offsets(names)  # rejects bodies of other robots
        self._feed_bodies(t, names, X_WS)
        return refused

    def estimate(self, t: float) -> Motion:
        """Return the motion at time t [s], or at the last poses if later. ValueError until all are known."""
        if not self.located:
            raise ValueError('estimate: the accepted poses do not determine all coordinates yet')
        return self._differentiator.estimate(max(t, self._t))

    def report(self) -> dict[str, object]:
        """Return statistics for diagnostics."""
        rejected = self._differentiator.rejected
        return {'too late': self.too_late, 'unexplained': self.unexplained, 'rejected': rejected}

    def _feed_bodies(self, t: float, names: tuple[str, ...], X_WS: Array) -> None:
        if not math.isfinite(t):
            raise ValueError(f't: expected a finite time, got {t}')
        if t < self._t:
            self.too_late += len(names)
            return
        if t > self._t:
            self._flush()
        self._t = t
        self._poses.update(zip(names, X_WS, strict=True))

    def _flush(self) -> None:
        if not self._poses:
            return
        poses, self._poses = self._poses, {}
        self.bodies.feed(self._t, tuple(poses), np.array(list(poses.values())))
        found = self._tracking.configuration(poses, near=self._q)
        moved = {
            name: r for name, r in found.residuals.items() if self._tracking.sensors[name].frame != 'base'
        }
        if any(r.position > self._max_residual or r.rotation > MISTURN for r in moved.values()):
            self.unexplained += len(poses)
            return
        observed = found.observed & self._determined(tuple(poses))
        self._q = np.where(observed, found.q, self._q)
        self._differentiator.feed(self._t, found.q, observed)
        self._let_in += len(poses) * (self._differentiator.taken_at == self._t)

    def _determined(self, bodies: tuple[str, ...]) -> npt.NDArray[np.bool_]:
        """Return which coordinates these bodies determine: of each soft segment alone between two of them."""
        if bodies not in self._spans:
            robot, start = self._tracking.robot, self._tracking.coordinates_before
            known = np.zeros(robot.nq, dtype=bool)
            known[: start(0)] = True  # of a moving base: seen or given
            frames = sorted({0, *(frame_index(robot, self._tracking.sensors[name]) for name in bodies)})
            for first, last in itertools.pairwise(frames):
                soft = [s for s in robot.description.segments[first:last] if s.moves]
                known[start(first) : start(last)] = len(soft) == 1
            self._spans[bodies] = known
        return self._spans[bodies]
