"""References of the controllers: coordinates through way-points, or poses at a given speed.

Both start at the present reference, so that the robot does not jump, and end at rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from soft_dynamics.array import Array
from soft_dynamics.geometry import se3

from .safety.state_machine import Limits, joint_reference_fault, motion_fault, pose_reference_fault

_PER_INTERVAL = 20  # samples checked between two way-points
_CLOSE = 1e-3  # [rad or m] a way-point at time 0 may be this far from the present reference


class JointSample(NamedTuple):
    """Desired coordinates, rates and accelerations at one time."""

    q: Array
    qd: Array
    qdd: Array

    def fault(self, limits: Limits, q: Array, before: JointSample | None, dt: float) -> str:
        """Return why a robot at q cannot follow this dt seconds after the sample `before`, or ''."""
        return joint_reference_fault(limits, self.q, None if before is None else before.q, dt)


class PoseSample(NamedTuple):
    """Desired pose X_WT (4, 4) and twist (6,), angular first, world axes, at one time."""

    X_WT: Array
    V_WT: Array

    def fault(self, limits: Limits, q: Array, before: PoseSample | None, dt: float) -> str:
        """Return why a robot at q cannot follow this dt seconds after the sample `before`, or ''."""
        return pose_reference_fault(limits, q, self.X_WT, None if before is None else before.X_WT, dt)


class JointPath:
    """A motion through way-points at given times after t0.

    Positions only: a quintic spline, four times differentiable, from the rate and acceleration of the start to rest.
    With rates: cubic pieces. With rates and accelerations: quintic pieces. Rates and accelerations are always
    derivatives of the position.
    """

    expires = math.inf  # the last point is held

    def __init__(
        self,
        t0: float,
        start: JointSample,
        times: Any,
        q: Any,
        qd: Any = None,
        qdd: Any = None,
    ) -> None:
        t, points = np.asarray(times, np.float64), np.asarray(q, np.float64)
        if t.ndim != 1 or not t.size or points.shape != (t.size, start.q.size):
            raise ValueError(f'way-points: expected shape (count, {start.q.size}), got {points.shape}')
        if not (np.all(np.isfinite(t)) and t[0] >= 0.0 and np.all(np.diff(t) > 0.0)):
            raise ValueError('way-points: expected finite, rising times >= 0')
        derivatives = [_derivative(x, points) for x in (qd, qdd) if x is not None]
        if not np.all(np.isfinite(points)):
            raise ValueError('way-points: expected finite numbers')
        columns = [points, *derivatives]
        if t[0] == 0.0:
            away = float(np.max(np.abs(points[0] - start.q)))
            if away > _CLOSE or t.size == 1:
                raise ValueError(
                    f'way-point at time 0: {away:.3g} from the present reference; set a later time'
                )
            t, columns = t[1:], [x[1:] for x in columns]
        knots = np.concatenate([[0.0], t])
        self._t0, self._duration = t0, float(t[-1])
        self._last = columns[0][-1].copy()
        rows = [np.vstack([first, x]) for first, x in zip(start, columns, strict=False)]
        with np.errstate(over='ignore', invalid='ignore'):
            self._knots, self._coefficients = _pieces(knots, rows, start)
        if not np.all(np.isfinite(self._coefficients)):
            raise ValueError('way-points: too far apart for the time between them')

    def sample(self, t: float) -> JointSample:
        """Return the reference at time t; after the end, the last point at rest."""
        s = t - self._t0
        if s >= self._duration:
            return JointSample(self._last, np.zeros_like(self._last), np.zeros_like(self._last))
        n = self._last.size
        sample = JointSample(np.empty(n), np.empty(n), np.empty(n))
        _evaluate(self._knots, self._coefficients, max(s, 0.0), *sample)
        return sample

    def check(self, limits: Limits) -> None:
        """Raise ValueError if the motion exceeds the limits of the robot."""
        low, high, fastest = _extremes(self._knots, self._coefficients)
        for q in (low, high):
            fault = motion_fault(limits.plausible, q, fastest)
            if fault:
                raise ValueError(f'trajectory {fault}')


def _derivative(values: Any, points: Array) -> Array:
    array = np.asarray(values, np.float64)
    if array.shape != points.shape or not np.all(np.isfinite(array)):
        raise ValueError(f'way-points: expected finite rates and accelerations of shape {points.shape}')
    return array


def _pieces(knots: Array, columns: list[Array], start: JointSample) -> tuple[Array, Array]:
    """Return knots and coefficients (power, piece, coordinate), highest power first, of a motion from the start."""
    from scipy.interpolate import BPoly, PPoly, make_interp_spline

    if len(columns) > 1:
        motion = PPoly.from_bernstein_basis(BPoly.from_derivatives(knots, np.stack(columns, 1)))
        return motion.x, np.ascontiguousarray(motion.c)
    rest = np.zeros_like(start.q)
    ends = ([(1, start.qd), (2, start.qdd)], [(1, rest), (2, rest)])
    spline = make_interp_spline(knots, columns[0], k=5, bc_type=ends)
    inner = slice(spline.k, -spline.k)  # outer knots repeat the ends
    powers = [spline(spline.t[inner][:-1], k) / math.factorial(k) for k in range(spline.k, -1, -1)]
    return spline.t[inner], np.array(powers)


@njit(cache=True, error_model='numpy')
def _evaluate(knots: Array, coefficients: Array, s: float, q: Array, qd: Array, qdd: Array) -> None:
    """Write position, rate and acceleration at time s, by Horner's rule."""
    powers, pieces, n = coefficients.shape
    k = min(max(int(np.searchsorted(knots, s, side='right')) - 1, 0), pieces - 1)
    h = s - knots[k]
    for i in range(n):
        x, v, half_a = 0.0, 0.0, 0.0
        for power in range(powers):
            half_a = half_a * h + v
            v = v * h + x
            x = x * h + coefficients[power, k, i]
        q[i], qd[i], qdd[i] = x, v, 2.0 * half_a


@njit(cache=True)
def _extremes(knots: Array, coefficients: Array) -> tuple[Array, Array, Array]:
    """Return least position, largest position and largest rate of each coordinate, from even samples per piece."""
    powers, pieces, n = coefficients.shape
    low, high, fastest = np.full(n, np.inf), np.full(n, -np.inf), np.zeros(n)
    for k in range(pieces):
        for j in range(_PER_INTERVAL + 1):
            h = (knots[k + 1] - knots[k]) * j / _PER_INTERVAL
            for i in range(n):
                q, qd = 0.0, 0.0
                for power in range(powers):
                    qd = qd * h + q
                    q = q * h + coefficients[power, k, i]
                low[i], high[i] = min(low[i], q), max(high[i], q)
                fastest[i] = max(fastest[i], abs(qd))
    return low, high, fastest


class PosePath:
    """Straight lines and rotations at constant rate from pose to pose, at most at the given speeds.

    least_time [s]: shortest time of a piece, for even motion along a stream of poses.
    timeout [s]: the path expires this long after its start; then the stream counts as lost.
    """

    def __init__(
        self,
        t0: float,
        start: Array,
        poses: Sequence[Array],
        speed: float,
        angular_speed: float,
        least_time: float = 0.0,
        timeout: float = math.inf,
    ) -> None:
        if not poses or any(X.shape != (4, 4) or not np.all(np.isfinite(X)) for X in poses):
            raise ValueError('poses: expected at least one, all of finite numbers')
        self._poses = [start, *poses]
        self._steps = [se3.pose_error(b, a) for a, b in zip(self._poses, poses, strict=False)]
        needed = [
            max(
                float(np.linalg.norm(step[3:])) / speed,
                float(np.linalg.norm(step[:3])) / angular_speed,
                least_time,
            )
            for step in self._steps
        ]
        self._times = t0 + np.concatenate([[0.0], np.cumsum(needed)])
        self.expires = t0 + timeout

    def sample(self, t: float) -> PoseSample:
        """Return the reference at time t; after the end, the last pose at rest."""
        k = max(int(np.searchsorted(self._times, t, side='right')) - 1, 0)
        if k >= len(self._steps):
            return PoseSample(self._poses[-1], np.zeros(6))
        X_WA, step, duration = self._poses[k], self._steps[k], self._times[k + 1] - self._times[k]
        part = max((t - self._times[k]) / duration, 0.0)
        return PoseSample(se3.moved(X_WA, part * step), step / duration)
