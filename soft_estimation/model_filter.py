"""Error-state Kalman filter on the robot's own dynamics, for sensors of any rate, late, lost or wrong."""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.stats import chi2

from soft_dynamics.arguments import Array, as_array
from soft_dynamics.errors import SoftRobotError
from soft_dynamics.reader import quantity
from soft_dynamics.robot import Robot

from .configuration import Tracking
from .process import Belief, Process, ProcessNoise
from .sensing import Measurement, Mounting, PoseSample

ITERATIONS, SMALL_STEP = (
    6,
    0.05,
)  # [-], [rad or m] a correction beyond it is linearised again where it leads to


@dataclass(frozen=True)
class FilterConfig:
    """Noise of the sensors and how the filter treats doubtful samples."""

    process: ProcessNoise = ProcessNoise()
    pose_rotation_noise: float = quantity(5e-3, unit='rad', doc='of a tracked body')
    pose_position_noise: float = quantity(1e-3, unit='m', doc='of a tracked body')
    shape_noise: float = quantity(1e-3, unit='m', doc='of each point of a fiber')
    shape_places: int = quantity(12, doc='points of a fiber that enter')
    torque_noise: float = quantity(0.05, unit='N m', doc='of the base force/torque sensor')
    force_noise: float = quantity(0.2, unit='N', doc='of the base force/torque sensor')
    gate_probability: float = quantity(0.9999, doc='with which a right sample passes the gate')
    history: float = quantity(0.25, unit='s', doc='samples may come this late')
    recovery_time: float = quantity(0.1, unit='s', doc='of refusals only, after which the state is lost')
    start_spread: float = quantity(1.0, unit='rad or m', doc='of the coordinates at the start')
    start_rate_spread: float = quantity(5.0, unit='rad/s or m/s', doc='of the rates at the start')

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name != 'process' and not value > 0.0:
                raise ValueError(f'{name} must be > 0, got {value}')
        if not self.gate_probability < 1.0:
            raise ValueError(f'gate_probability must be < 1, got {self.gate_probability}')


class Estimate(NamedTuple):
    """State at time t; variance holds that of q, then of qd; force is what acts and the model does not know."""

    t: float
    q: Array
    qd: Array
    qdd: Array
    variance: Array
    force: Array


@dataclass
class Innovations:
    """Statistics of one sensor: the mean of nis/dof is near 1 if model and noise are right."""

    accepted: int = 0
    rejected: int = 0
    nis: float = 0.0  # sum over accepted samples of the normalised innovation squared
    dof: int = 0

    @property
    def consistency(self) -> float:
        return self.nis / self.dof if self.dof else math.nan


@dataclass(order=True)
class _Entry:
    """A thing that happened at time t, and the belief and the pressures after it."""

    t: float
    measurement: Any = field(compare=False, default=None)  # a Measurement, pressures, or nothing
    belief: Any = field(compare=False, default=None)
    pressure: Any = field(compare=False, default=None)
    refused_since: float = field(compare=False, default=math.inf)
    begins_anew: bool = field(compare=False, default=False)


class ModelFilter:
    """Feed it in any order; ask it for the state at any time from the last sample on.

    Everything of the last `history` seconds is kept: a late sample is put in its place and what came after it is
    done again. Samples that are older are refused (`too_late`).
    """

    def __init__(self, robot: Robot, config: FilterConfig | None = None) -> None:
        self.config = config or FilterConfig()
        self.process = Process(robot, self.config.process)
        self.innovations: dict[str, Innovations] = {}
        self.too_late = self.resets = 0
        self._tracking = Tracking(robot)
        self._mounting = Mounting(self._tracking)
        self._gates: dict[int, float] = {}
        self._log: list[_Entry] = []

    # ---- what comes in -----------------------------------------------------------------------------------------------

    def feed_pose(self, t: float, sensor: str, X_WS: Any) -> None:
        """Pose of a tracked body in the world of ROS."""
        noise = (self.config.pose_rotation_noise, self.config.pose_position_noise)
        self.feed(self._mounting.pose(t, sensor, X_WS, noise))

    def feed_shape(self, t: float, sensor: str, s: Any, points_S: Any) -> None:
        """Points of a fiber at arc lengths s, in the frame of the sensor."""
        config = self.config
        self.feed(self._mounting.shape(t, sensor, s, points_S, config.shape_noise, config.shape_places))

    def feed_wrench(self, t: float, sensor: str, wrench_S: Any) -> None:
        """Wrench (torque, force) on the robot at its base, about the sensor and in its axes."""
        noise = (self.config.torque_noise, self.config.force_noise)
        self.feed(self._mounting.wrench(t, sensor, wrench_S, noise))

    def feed_pressure(self, t: float, pressure: Any) -> None:
        """Pressures [Pa] of all chambers, which act from t on."""
        p, count = as_array('pressure', pressure), len(self.process.robot.chamber_names)
        if p.shape != (count,):
            raise ValueError(f'pressure: expected shape ({count},), got {p.shape}')
        self._insert(_Entry(t, p))

    def feed(self, measurement: Measurement) -> None:
        """Any measurement."""
        self._insert(_Entry(measurement.t, measurement))

    # ---- what comes out ----------------------------------------------------------------------------------------------

    @property
    def started(self) -> bool:
        return bool(self._log)

    def estimate(self, t: float) -> Estimate:
        """The state at time t [s], not before the last sample. Raises ValueError before the first sample."""
        if not self._log:
            raise ValueError('estimate: nothing was fed yet')
        last = self._log[-1]
        if t > last.t + self.process.noise.step:  # kept, or a long silence is computed again and again
            self._insert(_Entry(t))
            last = self._log[-1]
        belief = last.belief if t <= last.t else self.process.predict(last.belief, t, last.pressure)
        n, x = self.process.n, belief.x
        qdd = self.process.acceleration(x, last.pressure)
        variance = np.diagonal(belief.P)[: 2 * n].copy()
        force = x[2 * n :] if self.process.size > 2 * n else np.zeros(n)
        return Estimate(belief.t, x[:n].copy(), x[n : 2 * n].copy(), qdd, variance, force.copy())

    def belief(self) -> Belief:
        """Mean and covariance after the last sample."""
        return self._log[-1].belief

    def smoothed(self) -> list[Belief]:
        """Beliefs at all kept times, each from everything before and after it: for recordings, `history` = inf.

        RTS smoother: x_k += C (x_next - x_predicted),  C = P_k Phi^T P_predicted^-1. A state that was lost
        and found again tells nothing about the time before.
        """
        later = self._log[-1]
        beliefs: list[Belief] = [later.belief]
        for entry in reversed(self._log[:-1]):
            belief = entry.belief
            if not later.begins_anew:
                predicted, Phi = self.process.transition(belief, later.t, entry.pressure)
                C = belief.P @ Phi.T @ _inverse(predicted.P)
                x = belief.x + C @ (beliefs[-1].x - predicted.x)
                P = belief.P + C @ (beliefs[-1].P - predicted.P) @ C.T
                belief = Belief(belief.t, x, 0.5 * (P + P.T))
            beliefs.append(belief)
            later = entry
        return beliefs[::-1]

    def report(self) -> dict[str, object]:
        """How the filter is doing, for people."""
        values: dict[str, object] = {'too late': self.too_late, 'resets': self.resets}
        for name, count in self.innovations.items():
            values[f'{name} accepted'], values[f'{name} rejected'] = count.accepted, count.rejected
            values[f'{name} NIS/dof'] = f'{count.consistency:.2f}'
        return values

    # ---- inside ------------------------------------------------------------------------------------------------------

    def _insert(self, entry: _Entry) -> None:
        if not math.isfinite(entry.t):
            raise ValueError(f't: expected a finite time, got {entry.t}')
        if not self._log:
            config = self.config
            start = self.process.start(entry.t, config.start_spread, config.start_rate_spread)
            pressure = np.zeros(len(self.process.robot.chamber_names))
            self._log.append(_Entry(entry.t, belief=start, pressure=pressure, refused_since=-math.inf))
        if entry.t < self._log[0].t:
            self.too_late += 1
            return
        at = bisect.bisect_right(self._log, entry)
        again = self._log[at:]
        self._log[at:] = []
        for item in [entry, *again]:
            self._apply(item, first=item is entry)
            self._log.append(item)
        oldest = bisect.bisect_left(self._log, self._log[-1].t - self.config.history, key=lambda e: e.t)
        del self._log[: max(0, oldest - 1)]

    def _apply(self, item: _Entry, first: bool) -> None:
        """Fill in the belief after an entry from the one before it."""
        last = self._log[-1]
        item.pressure, item.refused_since = last.pressure, last.refused_since
        item.belief, item.begins_anew = last.belief, False
        if item.t > last.t:
            try:
                item.belief = self.process.predict(last.belief, item.t, last.pressure)
            except (SoftRobotError, ValueError):  # the mean has left what the model can do
                item.belief, item.begins_anew = self._reset(item.t), True
        if isinstance(item.measurement, np.ndarray):
            item.pressure = item.measurement
        elif item.measurement is not None:
            self._correct(item, item.measurement, first)

    def _correct(self, item: _Entry, measurement: Measurement, first: bool) -> None:
        updated, nis, dof = self._update(item.belief, measurement, item.pressure)
        accepted = nis <= self._gate(dof)
        if not accepted and item.t - item.refused_since > self.config.recovery_time:
            item.belief, item.begins_anew = self._reset(item.t, item.belief.x, measurement), True
            updated, nis, dof = self._update(item.belief, measurement, item.pressure)
            accepted = nis <= self._gate(dof)
        if accepted:
            item.belief, item.refused_since = updated, math.inf
        else:
            item.refused_since = min(item.refused_since, item.t)
        if first:  # what is done again is counted once
            count = self.innovations.setdefault(measurement.sensor, Innovations())
            count.accepted, count.rejected = count.accepted + accepted, count.rejected + (not accepted)
            if accepted:
                count.nis, count.dof = count.nis + nis, count.dof + dof

    def _update(self, belief: Belief, measurement: Measurement, pressure: Array) -> tuple[Belief, float, int]:
        """Iterated update in Joseph's form, with the test value r^T S^-1 r of its last linearisation, if it settled."""
        x = belief.x
        for _ in range(ITERATIONS):
            innovation, H, variance = measurement.read(self.process, x, pressure)
            S = H @ belief.P @ H.T + np.diag(variance)
            factor = cho_factor(S)
            K = cho_solve(factor, H @ belief.P).T
            residual = innovation + H @ (x - belief.x)
            x_next = belief.x + K @ residual
            moved, x = float(np.max(np.abs((x_next - x)[: 2 * self.process.n]))), x_next
            if moved < SMALL_STEP:
                break
        nis = float(residual @ cho_solve(factor, residual)) if moved < SMALL_STEP else math.inf
        keep = np.eye(x.size) - K @ H
        P = keep @ belief.P @ keep.T + (K * variance) @ K.T
        return Belief(belief.t, x, 0.5 * (P + P.T)), nis, variance.size

    def _gate(self, dof: int) -> float:
        if dof not in self._gates:
            self._gates[dof] = float(chi2.ppf(self.config.gate_probability, dof))
        return self._gates[dof]

    def _reset(self, t: float, x: Array | None = None, measurement: Measurement | None = None) -> Belief:
        """As wide as at the start, where the last poses of all tracked bodies are, or else around x or rest."""
        self.resets += 1
        start = self.process.start(t, self.config.start_spread, self.config.start_rate_spread)
        recent = [entry.measurement for entry in self._log if t - entry.t <= self.config.recovery_time]
        poses = {m.sensor: m.X_WS for m in [*recent, measurement] if isinstance(m, PoseSample)}
        n, mean = self.process.n, start.x if x is None else x.copy()
        mean[:n] = self._tracking.configuration(poses, near=mean[:n]).q
        mean[n:] = 0.0
        return start._replace(x=mean)


def _inverse(P: Array) -> Array:
    """Of a covariance, some of whose rows may be zero: what is known for sure needs no correction."""
    sigma = np.sqrt(np.diagonal(P))
    scale = np.where(sigma > 0.0, sigma, 1.0)
    return np.asarray(
        np.linalg.pinv(P / np.outer(scale, scale), rcond=1e-12, hermitian=True) / np.outer(scale, scale)
    )
