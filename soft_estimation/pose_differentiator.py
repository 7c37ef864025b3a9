"""State from poses alone: coordinates by the inverses of the models, rates by the differentiator."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from soft_dynamics.arguments import Array
from soft_dynamics.robot import Robot

from .configuration import Tracking
from .differentiator import Differentiator, DifferentiatorConfig, Motion


class PoseDifferentiator:
    """For robots without a trusted model. Poses of one time belong together; what comes later than others is left out.

    max_residual [m]: a set of poses that the kinematics miss by more is left out too, and counted in `unexplained`.
    """

    def __init__(
        self, robot: Robot, config: DifferentiatorConfig | None = None, max_residual: float = 0.05
    ) -> None:
        self._tracking = Tracking(robot)
        self._differentiator = Differentiator(robot.nq, config)
        self._max_residual = max_residual
        self._q: Array = robot.rest
        self._poses: dict[str, Array] = {}
        self._t = -math.inf
        self.too_late = self.unexplained = 0

    @property
    def started(self) -> bool:
        return math.isfinite(self._t)

    located = started

    def feed_pose(self, t: float, sensor: str, X_WS: Any) -> None:
        """Pose of a tracked body in the world of ROS."""
        if not math.isfinite(t):
            raise ValueError(f't: expected a finite time, got {t}')
        self._tracking.frame_pose(sensor, X_WS)  # refuses what is no pose of this robot
        if t < self._t:
            self.too_late += 1
            return
        if t > self._t:
            self._flush()
        self._t = t
        self._poses[sensor] = X_WS

    def feed_poses(self, t: float, X_WS: Mapping[str, Any]) -> None:
        """Poses of several tracked bodies at one time."""
        for sensor, X in X_WS.items():
            self.feed_pose(t, sensor, X)

    def estimate(self, t: float) -> Motion:
        """The motion at time t [s], or at that of the last poses if it is later. ValueError before the first."""
        if not self.started:
            raise ValueError('estimate: nothing was fed yet')
        self._flush()
        return self._differentiator.estimate(max(t, self._t))

    def report(self) -> dict[str, object]:
        """How the estimate is doing, for people."""
        rejected = self._differentiator.rejected
        return {'too late': self.too_late, 'unexplained': self.unexplained, 'rejected': rejected}

    def _flush(self) -> None:
        if not self._poses:
            return
        poses, self._poses = self._poses, {}
        found = self._tracking.configuration(poses, near=self._q)
        moved = {
            name: r for name, r in found.residuals.items() if self._tracking.sensors[name].frame != 'base'
        }
        if any(r.position > self._max_residual for r in moved.values()):
            self.unexplained += 1
            return
        self._q = np.where(found.observed, found.q, self._q)
        self._differentiator.feed(self._t, found.q, found.observed)
