"""External wrench on a frame of the robot, from its motion, its pressures and the base F/T sensor."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from soft_dynamics.array import Array, as_array
from soft_dynamics.robot import Robot

from ..kalman.process_model import force_scale
from .momentum_observer import MomentumObserver


class ExternalWrench(NamedTuple):
    """Torque [N m] and force [N] (6,) about the frame's origin, with its covariance (6, 6)."""

    wrench: Array
    covariance: Array

    def in_axes(self, R_WF: Array) -> ExternalWrench:
        """Convert a wrench from the axes of W to the axes of F."""
        turn = np.kron(np.eye(2), R_WF.T)
        return ExternalWrench(turn @ self.wrench, turn @ self.covariance @ turn.T)


class WrenchObserver:
    """Estimates a wrench w on a frame, world axes, which shows in the motion and in full at the base.

        tau_external = J^T w          W_measured - W_model = - X w

    tau_external comes from the momentum observer. X moves w to the base's origin and axes; the base holds the robot
    against it. The estimate is the weighted least squares of both equations and of w = 0 +- `usual`, so that
    undetermined directions stay near zero with that standard deviation. The model's base wrench uses accelerations from
    the rates, so that both equations have the same lag of `time_constant` [s].

    force_noise: standard deviation of tau as the model explains it, relative to the largest force of the chambers on a
    coordinate; wrench_noise: of torque [N m] and force [N] at the base; usual: of torque and force at the frame.
    """

    def __init__(
        self,
        robot: Robot,
        frame: str = 'tip',
        time_constant: float = 0.1,
        force_noise: float = 0.05,
        wrench_noise: tuple[float, float] = (0.2, 0.3),
        usual: tuple[float, float] = (2.0, 20.0),
    ) -> None:
        robot.pose(robot.rest, frame)  # rejects an unknown frame
        if not (force_noise > 0.0 and min(*wrench_noise, *usual) > 0.0):
            raise ValueError(f'noise must be > 0, got {force_noise}, {wrench_noise} and {usual}')
        self._robot, self._frame, self._time_constant = robot, frame, time_constant
        self._observer = MomentumObserver(robot, time_constant)
        self._free = slice(6 if robot.description.base.type == 'prescribed' else 0, None)
        self._force_weight = 1.0 / (force_noise * force_scale(robot)[self._free])
        self._wrench_weight = 1.0 / np.repeat(wrench_noise, 3)
        self._prior = np.diag(1.0 / np.repeat(usual, 3) ** 2)
        self._last: tuple[float, Array, Array, Array] | None = None  # t, q, qd, wrench at the base
        self._excess: Array = np.zeros(6)  # measured minus modelled base wrench
        self._is_felt = False

    def feed(self, t: float, q: Any, qd: Any, pressure: Any, wrench_B: Any = None) -> ExternalWrench:
        """Take state, pressures [Pa] and the wrench on the robot at its base, in its axes, at time t [s].

        Return the wrench on the frame in the axes of the robot file's world.
        """
        q, qd = as_array('q', q), as_array('qd', qd)
        tau = self._robot.actuation(q) @ as_array('pressure', pressure)
        force = self._observer.feed(t, q, qd, tau)[self._free]
        if wrench_B is not None:
            self._feel(t, q, qd, as_array('wrench_B', wrench_B))
        rows = self._force_weight[:, None] * self._robot.jacobian(q, self._frame)[:, self._free].T
        information, product = self._prior + rows.T @ rows, rows.T @ (self._force_weight * force)
        if self._is_felt:
            rows = self._wrench_weight[:, None] * self._to_base(q)
            information = information + rows.T @ rows
            product = product - rows.T @ (self._wrench_weight * self._excess)
        covariance = np.linalg.inv(information)
        return ExternalWrench(covariance @ product, 0.5 * (covariance + covariance.T))

    def _feel(self, t: float, q: Array, qd: Array, wrench_B: Array) -> None:
        """Update the unexplained part of the base wrench, with the lag of the momentum observer."""
        if self._last is not None and t > self._last[0]:
            t0, q0, qd0, wrench0_B = self._last
            dt = t - t0
            model_B = self._robot.base_wrench(0.5 * (q + q0), 0.5 * (qd + qd0), (qd - qd0) / dt)
            excess = 0.5 * (wrench_B + wrench0_B) - model_B
            self._excess = excess + (self._excess - excess) * math.exp(-dt / self._time_constant)
            self._is_felt = True
        self._last = t, q, qd, wrench_B

    def _to_base(self, q: Array) -> Array:
        """Return X (6, 6), which moves a wrench at the frame, world axes, to the base's origin and axes."""
        X_WB, X_WF = self._robot.pose(q, 'base'), self._robot.pose(q, self._frame)
        R_BW, (x, y, z) = X_WB[:3, :3].T, X_WF[:3, 3] - X_WB[:3, 3]
        out: Array = np.kron(np.eye(2), R_BW).astype(np.float64)
        out[:3, 3:] = R_BW @ np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        return out
