"""Rates and accelerations from coordinates alone, causal and without a model of the robot."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from soft_dynamics.array import Array, as_array
from soft_dynamics.reader import quantity

ORDER = 3  # coordinate, rate, acceleration
START = 100.0  # [-] how much faster than the noise at the cut-off the robot may move at the first sample
SECOND = (
    12.0  # [-] how much narrower the gate is from the first to the second sample, where START dominates P
)


class Motion(NamedTuple):
    """Estimate at time t: coordinates, rates, accelerations, and variances of coordinates, then of rates."""

    t: float
    q: Array
    qd: Array
    qdd: Array
    variance: Array


@dataclass(frozen=True)
class DifferentiatorConfig:
    """Bandwidth, noise and gate."""

    bandwidth: float = quantity(10.0, unit='Hz', doc='cut-off; faster motion counts as noise')
    noise: float = quantity(1e-3, unit='rad or m', doc='standard deviation of a sample')
    gate: float = quantity(
        60.0,
        doc='drop samples further off than this many standard deviations; releasing a light tip reaches 50',
    )
    timeout: float = quantity(
        0.25,
        unit='s',
        doc='without an accepted sample, restart at the next one',
    )

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not (math.isfinite(value) and value > 0.0):
                raise ValueError(f'{name} must be > 0, got {value}')


class Differentiator:
    """Kalman filter with white jerk, one per coordinate.

    The jerk is tied to the noise and the sampling interval, S = noise^2 dt w^6, so that at every sampling rate it is
    the same third-order Butterworth filter with cut-off w: no lag of a ramp or a parabola, and a delay of 2/w for
    faster motion. Coordinates without a sample coast with growing variance; after `timeout` they stand still. If no
    motion connects the first two samples, the filter starts at the second.
    """

    def __init__(self, n: int, config: DifferentiatorConfig | None = None) -> None:
        config = config or DifferentiatorConfig()
        w, noise = 2.0 * math.pi * config.bandwidth, config.noise
        self._w6 = w**6
        self._noise2, self._gate2, self._timeout = noise**2, config.gate**2, config.timeout
        self._x: Array = np.zeros((n, ORDER))
        self._P0 = noise**2 * np.diag([1.0, (START * w) ** 2, (START * w * w) ** 2])
        self._P = np.tile(self._P0, (n, 1, 1))
        self._t = -math.inf
        self._last = np.full(n, -math.inf)  # time of the last sample of each coordinate
        self._only_begun: npt.NDArray[np.bool_] = np.zeros(n, bool)  # after one sample
        self.rejected = 0  # single coordinates

    def feed(self, t: float, q: Any, observed: npt.NDArray[np.bool_] | None = None) -> None:
        """Take coordinates at time t [s]; `observed` marks the measured ones. Raises ValueError for a late sample."""
        z = as_array('q', q)
        if z.shape != self._last.shape:
            raise ValueError(f'q: expected shape {self._last.shape}, got {z.shape}')
        if not t >= self._t:
            raise ValueError(f't: expected at least {self._t:.6f} s, got {t:.6f}')
        seen = np.ones(z.shape, bool) if observed is None else np.asarray(observed, bool)
        x, P = self._predicted(t)
        lost = t - self._last > self._timeout
        innovation, S = z - x[:, 0], P[:, 0, 0] + self._noise2
        near = innovation**2 <= self._gate2 / np.where(self._only_begun, SECOND**2, 1.0) * S
        self.rejected += int(np.count_nonzero(seen & ~near & ~lost))
        begin, taken = seen & (lost | self._only_begun & ~near), seen & near & ~lost
        gain = np.where(taken, 1.0, 0.0)[:, None] * P[:, :, 0] / S[:, None]
        self._x = x + gain * innovation[:, None]
        P = P - gain[:, :, None] * P[:, None, 0, :]
        self._x[begin] = np.stack([z, 0.0 * z, 0.0 * z], 1)[begin]
        P[begin] = self._P0
        self._P = 0.5 * (P + P.transpose(0, 2, 1))
        self._last[begin | taken], self._t = t, t
        self._only_begun = begin | self._only_begun & ~taken

    @property
    def taken_at(self) -> float:
        """Time of the last accepted sample of any coordinate, or -inf."""
        return float(self._last.max())

    @property
    def is_complete(self) -> bool:
        """Whether every coordinate has had an accepted sample."""
        return bool(np.all(np.isfinite(self._last)))

    def estimate(self, t: float) -> Motion:
        """Return the motion at time t [s], which must not be before the last sample."""
        if not t >= self._t:
            raise ValueError(f't: expected at least {self._t:.6f} s, got {t:.6f}')
        x, P = self._predicted(t)
        return Motion(t, x[:, 0], x[:, 1], x[:, 2], np.concatenate([P[:, 0, 0], P[:, 1, 1]]))

    def follow(self, t: Any, q: Any, times: Any) -> tuple[Array, Array]:
        """Return (q, qd) at rising times from samples (n, nq) at t (n,), each from the samples up to then."""
        found, k = [], 0
        for now in times:
            while k < len(t) and t[k] <= now:
                self.feed(t[k], q[k])
                k += 1
            found.append(self.estimate(now))
        return np.array([motion.q for motion in found]), np.array([motion.qd for motion in found])

    def _predicted(self, t: float) -> tuple[Array, Array]:
        dt = t - self._t
        if not 0.0 < dt < math.inf:
            return self._x, self._P
        F, Q = white_jerk(dt)
        x = self._x @ F.T
        lost = t - self._last > self._timeout
        if lost.any():  # position at the time-out
            rest = np.clip(self._last + self._timeout - self._t, 0.0, dt)[:, None]
            stopped = self._x[:, :1] + rest * (self._x[:, 1:2] + 0.5 * rest * self._x[:, 2:])
            x[lost] = (stopped * [1.0, 0.0, 0.0])[lost]
        return x, F @ self._P @ F.T + self._noise2 * dt * self._w6 * Q


def white_jerk(dt: float) -> tuple[Array, Array]:
    """Return (F, Q): transition of coordinate, rate and acceleration over dt, and noise of white jerk of density 1."""
    F = np.array([[1.0, dt, 0.5 * dt * dt], [0.0, 1.0, dt], [0.0, 0.0, 1.0]])
    Q = np.array(
        [
            [dt**5 / 20.0, dt**4 / 8.0, dt**3 / 6.0],
            [dt**4 / 8.0, dt**3 / 3.0, dt**2 / 2.0],
            [dt**3 / 6.0, dt**2 / 2.0, dt],
        ]
    )
    return F, Q
