"""Error-state Kalman filter on the robot's own dynamics, for sensors of any rate, late, lost or wrong."""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2

from soft_dynamics.arguments import Array, as_array
from soft_dynamics.description import Arc, Link, Universal
from soft_dynamics.errors import SoftRobotError
from soft_dynamics.reader import quantity
from soft_dynamics.robot import Robot

from .configuration import Tracking
from .kernels import correct, correct_all
from .process import Belief, Process, ProcessNoise
from .relocation import Relocation
from .sensing import Measurement, Mounting, PoseSet

ITERATIONS, SMALL_STEP = (
    6,
    0.05,
)  # [-], [rad or m] a correction beyond it is linearised again where it leads to


@dataclass(frozen=True)
class FilterConfig:
    """Noise of the sensors and how the filter treats doubtful samples."""

    process: ProcessNoise = ProcessNoise()
    pose_rotation_noise: float = quantity(5e-3, unit='rad', doc='of a tracked body')
    pose_position_noise: float = quantity(2e-3, unit='m', doc='of a tracked body')
    shape_noise: float = quantity(2e-3, unit='m', doc='of each point of a fiber')
    shape_rotation_noise: float = quantity(0.015, unit='rad', doc='of its direction at the end of a segment')
    shape_places: int = quantity(12, doc='points of a fiber that enter')
    torque_noise: float = quantity(0.3, unit='N m', doc='of the base force/torque sensor')
    force_noise: float = quantity(1.0, unit='N', doc='of the base force/torque sensor')
    gate_probability: float = quantity(0.9999, doc='with which a right sample passes the gate')
    misfit: float = quantity(
        3.0, doc='by which the model may miss a sample in the gate, in units of the noise'
    )
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


class Verdict(NamedTuple):
    """Of a sample: whether it was let in, its normalised innovation squared, and how many numbers it has."""

    accepted: bool
    nis: float
    dof: int


@dataclass
class Innovations:
    """Statistics of one sensor: the mean of nis/dof is near 1 if model and noise are right."""

    accepted: int = 0
    rejected: int = 0
    nis: float = 0.0  # sum over accepted samples of the normalised innovation squared
    dof: int = 0

    def count(self, verdict: Verdict) -> None:
        self.accepted, self.rejected = (
            self.accepted + verdict.accepted,
            self.rejected + (not verdict.accepted),
        )
        if verdict.accepted:
            self.nis, self.dof = self.nis + verdict.nis, self.dof + verdict.dof

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
    refused_since: dict[str, float] = field(compare=False, default_factory=dict)  # by sensor
    accepted_at: float = field(compare=False, default=-math.inf)  # the last sample of any sensor
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
        tracking = Tracking(robot)
        self._mounting = Mounting(tracking)
        spreads = self.config.start_spread, self.config.start_rate_spread
        self._pose_noise = self.config.pose_rotation_noise, self.config.pose_position_noise
        self._relocation = Relocation(self.process, tracking, spreads, self._pose_noise)
        self._is_smooth = all(isinstance(s, Arc | Universal | Link) for s in robot.description.segments)
        self._gates: dict[int, float] = {}
        self._log: list[_Entry] = []

    # ---- what comes in -----------------------------------------------------------------------------------------------

    def feed_pose(self, t: float, sensor: str, X_WS: Any) -> None:
        """Pose of a tracked body in the world of ROS."""
        self.feed_poses(t, {sensor: X_WS})

    def feed_poses(self, t: float, X_WS: Mapping[str, Any]) -> None:
        """Poses of several tracked bodies at one time: one by one they would cost more."""
        if X_WS:
            self.feed(self._mounting.poses(t, X_WS, self._pose_noise))

    def feed_shape(self, t: float, sensor: str, s: Any, points_S: Any) -> None:
        """Points of a fiber at arc lengths s, in the frame of the sensor."""
        config = self.config
        if self._is_smooth:
            noise = config.shape_rotation_noise, config.shape_noise
            self.feed(self._mounting.shape_poses(t, sensor, s, points_S, noise))
        else:
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

    @property
    def located(self) -> bool:
        """Whether a sample has been let in: before, the state is a guess."""
        return bool(self._log) and self._log[-1].accepted_at > -math.inf

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
            start = self._relocation.from_rest(entry.t)
            pressure = np.zeros(len(self.process.robot.chamber_names))
            self._log.append(_Entry(entry.t, belief=start, pressure=pressure))
        if entry.t < self._log[0].t:
            self.too_late += 1
            return
        at = bisect.bisect_right(self._log, entry)
        again = [later for later in self._log[at:] if later.measurement is not None]
        self._log[at:] = []
        for item in [entry, *again]:
            self._apply(item, first=item is entry)
            self._log.append(item)
        oldest = bisect.bisect_left(self._log, self._log[-1].t - self.config.history, key=lambda e: e.t)
        del self._log[: max(0, oldest - 1)]

    def _apply(self, item: _Entry, first: bool) -> None:
        """Fill in the belief after an entry from the one before it."""
        last = self._log[-1]
        item.pressure, item.belief, item.begins_anew = last.pressure, last.belief, False
        item.refused_since, item.accepted_at = last.refused_since, last.accepted_at
        if item.t > last.t:
            try:
                item.belief = self.process.predict(last.belief, item.t, last.pressure)
            except (SoftRobotError, ValueError):  # the mean has left what the model can do
                self._begin_anew(item, self._relocation.from_rest(item.t))
        if isinstance(item.measurement, np.ndarray):
            item.pressure = item.measurement
        elif item.measurement is not None:
            self._correct(item, item.measurement, first)

    def _correct(self, item: _Entry, measurement: Measurement, first: bool) -> None:
        belief, verdicts = self._updated(item.belief, measurement, item.pressure)
        found = self._relocated(item, measurement, verdicts)
        if found is not None:
            self._begin_anew(item, found)
            if isinstance(measurement, PoseSet):  # the base may have been found elsewhere
                X_WS = dict(zip(measurement.sensors, measurement.X_WS, strict=True))
                item.measurement = measurement = self._mounting.poses(item.t, X_WS, self._pose_noise)
            belief, verdicts = self._updated(item.belief, measurement, item.pressure)
        item.belief, refused = belief, dict(item.refused_since)
        for sensor, verdict in zip(measurement.sensors, verdicts, strict=True):
            if verdict.accepted:
                refused.pop(sensor, None)
                item.accepted_at = item.t
            else:
                refused.setdefault(sensor, item.t)
            if first:  # what is done again is counted once
                self.innovations.setdefault(sensor, Innovations()).count(verdict)
        item.refused_since = refused

    def _updated(
        self, belief: Belief, measurement: Measurement, pressure: Array
    ) -> tuple[Belief, list[Verdict]]:
        """The belief after all sensors of a measurement, one after the other, each past its gate.

        One linearisation serves them all, as long as none of them is refused by it or moves the state away from it.
        """
        verdicts: list[Verdict] = []
        while len(verdicts) < len(measurement.sensors):
            is_refused = bool(verdicts) and not verdicts[-1].accepted
            rest = measurement.behind(len(verdicts), is_refused)
            innovation, H, variance = rest.read(self.process, belief.x, pressure)
            dof = len(variance) // len(rest.sensors)
            rule = np.array([dof, self._gate(dof), self.config.misfit, self.process.n, SMALL_STEP])
            x, P, nis, count = correct_all(belief.x, belief.P, innovation, H, variance, rule)
            belief = Belief(belief.t, x, P)
            verdicts += [Verdict(True, value, dof) for value in nis[:count].tolist()]
            if count < len(rest.sensors):
                belief, verdict = self._doubtful(belief, rest.only(count), pressure, float(nis[count]))
                verdicts.append(verdict)
        return belief, verdicts

    def _doubtful(
        self, belief: Belief, measurement: Measurement, pressure: Array, nis: float
    ) -> tuple[Belief, Verdict]:
        """Iterated update with one sensor that is refused, or moves the state far, where it is linearised first.

        It is let in if the iteration settles and its last linearisation passes the gate. Where the state is known so
        well that the linearisation cannot be what is wrong, there is none.
        """
        n, dof, x_linear = self.process.n, 0, belief.x
        if np.diagonal(belief.P)[:n].max() < (SMALL_STEP / 5.0) ** 2:
            return belief, Verdict(False, nis, dof)
        for _ in range(ITERATIONS):
            innovation, H, variance = measurement.read(self.process, x_linear, pressure)
            residual = innovation + H @ (x_linear - belief.x)
            x, P, nis, test = correct(belief.x, belief.P, residual, H, variance, self.config.misfit)
            moved, x_linear, dof = float(np.abs((x - x_linear)[:n]).max()), x, len(variance)
            if moved < SMALL_STEP:
                break
        accepted = moved < SMALL_STEP and test <= self._gate(dof)
        return Belief(belief.t, x, P) if accepted else belief, Verdict(accepted, nis, dof)

    def _gate(self, dof: int) -> float:
        if dof not in self._gates:
            self._gates[dof] = float(chi2.ppf(self.config.gate_probability, dof))
        return self._gates[dof]

    def _relocated(self, item: _Entry, measurement: Measurement, verdicts: list[Verdict]) -> Belief | None:
        """Where to begin anew, if samples have been refused for long enough and tell where."""
        known, patience = item.accepted_at > -math.inf, self.config.recovery_time
        since = [
            item.refused_since.get(sensor, item.t)
            for sensor, verdict in zip(measurement.sensors, verdicts, strict=True)
            if not verdict.accepted
        ]
        if not since or (known and not item.t - min(since) > patience):
            return None
        if isinstance(measurement, PoseSet):
            before = (entry.measurement for entry in self._log)
            sets = [*(m for m in before if isinstance(m, PoseSet)), measurement]
            return self._relocation.from_poses(sets, item.belief.x, item.pressure, known)
        silent = item.t - item.accepted_at > patience
        return self._relocation.from_rest(item.t, item.belief.x) if silent else None

    def _begin_anew(self, item: _Entry, belief: Belief) -> None:
        self.resets += 1
        item.belief, item.begins_anew = belief._replace(t=item.t), True
        item.refused_since, item.accepted_at = {}, -math.inf


def _inverse(P: Array) -> Array:
    """Of a covariance, some of whose rows may be zero: what is known for sure needs no correction."""
    sigma = np.sqrt(np.diagonal(P))
    scale = np.where(sigma > 0.0, sigma, 1.0)
    return np.asarray(
        np.linalg.pinv(P / np.outer(scale, scale), rcond=1e-12, hermitian=True) / np.outer(scale, scale)
    )
