"""Error-state Kalman filter on the robot's own dynamics, for sensors of any rate, late, lost or wrong."""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import chdtri

from soft_dynamics.array import Array, as_array
from soft_dynamics.errors import SoftRobotError
from soft_dynamics.messages.body_frame import BodyFrame
from soft_dynamics.robot import Robot

from ..inverse_kinematics.pose_tracking import Tracking
from ..inverse_kinematics.poses import accepted
from .config import FilterConfig as FilterConfig
from .gating import REFUSED, Innovations, Verdict, are_explained, tally
from .kernels import correct, surprise
from .measurement import Measurement
from .measurement_log import Entry, smoothed, time_of
from .process_model import Belief, Estimate, Process
from .relocalization import Relocation
from .sensor_faults import MisplacedBodies, SampleWatch
from .sensors.bodies import PoseSet, TrackedBodies
from .sensors.fiber import Fibers
from .sensors.wrench import wrench_sample

ITERATIONS = 6
AHEAD = (
    5.0  # steps that the current state may be ahead of the last belief, so that late sensors do not cost more
)
LARGEST_PRESSURE = 10.0  # [-] relative to the limit of the robot file; no sensor reads more
SMALL_STEP = 0.05  # [rad or m] after a larger correction, linearise again


class ModelFilter:
    """Feed samples in any order; ask for the state at any time from the last sample on.

    The filter keeps everything of the last `history` seconds. It inserts a late sample at its time and repeats the
    steps after it. It rejects older samples (`too_late`).
    """

    def __init__(self, robot: Robot, config: FilterConfig | None = None) -> None:
        self.config = config or FilterConfig()
        self.process = Process(robot, self.config.process)
        self.too_late = self._resets = 0
        self._innovations: dict[str, Innovations] = {}
        self._tracking = tracking = Tracking(robot)
        noise = self.config.pose_noise
        self._tracked_bodies = TrackedBodies(tracking, noise)
        self._fibers = Fibers(tracking, noise, self._tracked_bodies)
        self._watch = SampleWatch(tracking)
        self.bodies = MisplacedBodies(tracking)  # bodies of which only the directions count
        spreads = self.config.start_spread, self.config.start_rate_spread
        self._relocation = Relocation(self.process, tracking, spreads, noise.of_kind)
        self._is_smooth = all(s.smooth for s in robot.description.segments)
        ahead = AHEAD * self.process.noise.step
        self._ahead = ahead if self.config.history < math.inf else 0.0  # recordings: a belief at each sample
        self._largest_pressure = LARGEST_PRESSURE * self._watch.largest_pressure
        self._rules: dict[int, Array] = {}
        self._log: list[Entry] = []
        self._done = 0  # log entries whose belief is up to date

    # ---- input -------------------------------------------------------------------------------------------------------

    def feed_pose(self, t: float, sensor: str, X_WS: Any) -> None:
        """Take the pose of a tracked body in the ROS world."""
        self.feed_poses(t, {sensor: X_WS})

    def feed_poses(self, t: float, X_WS: Mapping[str, Any]) -> None:
        """Take the poses of several tracked bodies at one time; this is cheaper than one by one."""
        self._feed_bodies(t, *self._tracking.checked(X_WS))

    def feed_frame(self, t: float, frame: BodyFrame) -> dict[str, ValueError]:
        """Take a frame of tracked bodies at time t [s]. Returns the rejected bodies with the reason."""
        names, X_WS, refused = accepted(frame)
        self._feed_bodies(t, names, X_WS)
        return refused

    def feed_shape(self, t: float, sensor: str, s: Any, points_S: Any) -> None:
        """Take points of a fiber at arc lengths s, in the frame of the sensor."""
        config = self.config
        if self._is_smooth:
            self.feed(self._fibers.poses(t, sensor, s, points_S))
        else:
            self.feed(self._fibers.shape(t, sensor, s, points_S, config.shape_noise, config.shape_places))

    def feed_wrench(self, t: float, sensor: str, wrench_S: Any) -> None:
        """Take the wrench (torque, force) on the robot at its base, about the sensor and in its axes."""
        noise = (self.config.torque_noise, self.config.force_noise)
        self.feed(wrench_sample(self.process.robot, t, sensor, wrench_S, noise))

    def feed_pressure(self, t: float, pressure: Any) -> None:
        """Take the pressures [Pa] of all chambers, which act from t on."""
        p, count = as_array('pressure', pressure), len(self.process.robot.chamber_names)
        if p.shape != (count,):
            raise ValueError(f'pressure: expected shape ({count},), got {p.shape}')
        if np.abs(p).max(initial=0.0) > self._largest_pressure:
            largest = f'{self._largest_pressure:g} Pa, {LARGEST_PRESSURE:g} times the limit of the robot file'
            raise ValueError(f'pressure: expected at most {largest}, got {np.abs(p).max():.3g}')
        self._watch.pressure = p
        self._insert(Entry(t, p))

    def feed(self, measurement: Measurement) -> None:
        """Take any measurement; ValueError if it is frozen."""
        self._watch.check(measurement)
        self._insert(Entry(measurement.t, measurement))

    def catch_up(self) -> None:
        """Process what was fed, in order of time; samples that arrived together are processed together.

        `estimate` calls this. Call it earlier to use idle time.
        """
        while self._done < len(self._log):
            item = self._log[self._done]
            self._apply(self._log[self._done - 1], item)
            self._done += 1
            if item.begins_anew:  # the base may have been found at another place
                for later in self._log[self._done :]:
                    if isinstance(later.measurement, PoseSet):
                        later.measurement = self._measured_again(later.measurement, later.measurement.sensors)

    # ---- output ------------------------------------------------------------------------------------------------------

    @property
    def started(self) -> bool:
        return bool(self._log)

    @property
    def located(self) -> bool:
        """Whether a sample was accepted; before, the state is a guess."""
        if self._log and self._log[self._done - 1].accepted_at == -math.inf:
            self.catch_up()
        return bool(self._log) and self._log[self._done - 1].accepted_at > -math.inf

    @property
    def accepted_at(self) -> float:
        """Time of measurement of the last accepted sample, or -inf."""
        self.catch_up()
        return self._log[-1].accepted_at if self._log else -math.inf

    @property
    def shown_at(self) -> float:
        """The same for samples that show the shape; a wrench or the pose of the base alone do not."""
        self.catch_up()
        return self._log[-1].shown_at if self._log else -math.inf

    @property
    def is_explained(self) -> bool:
        """Whether noise and misfit explain the recent innovations; otherwise the state is wrong."""
        return are_explained(self.innovations.values(), self.accepted_at, 1.0 + self.config.misfit**2)

    @property
    def tally(self) -> tuple[int, int]:
        """How many samples were accepted and rejected."""
        let_in, refused = tally(self.innovations.values())
        return let_in, refused + self.too_late

    @property
    def innovations(self) -> dict[str, Innovations]:
        """By sensor."""
        self.catch_up()
        return self._innovations

    @property
    def resets(self) -> int:
        """How often the state was lost and restarted."""
        self.catch_up()
        return self._resets

    def estimate(self, t: float) -> Estimate:
        """Return the state at time t [s], not before the last sample. Raises ValueError before the first sample."""
        if not self._log:
            raise ValueError('estimate: no sample yet')
        self.catch_up()
        if (
            t > self._log[-1].belief.t + AHEAD * self.process.noise.step
        ):  # keep it, so that it is computed once
            self._insert(Entry(max(t, self._log[-1].t)))
            self.catch_up()
        last, n = self._log[-1], self.process.n
        t = max(t, last.t)
        x, variance = self.process.glance(last.belief, t, last.mean_pressure(t), self._known_until(last))
        qdd = self.process.acceleration(x, last.pressure)
        force = x[2 * n :].copy() if self.process.size > 2 * n else np.zeros(n)
        return Estimate(t, x[:n].copy(), x[n : 2 * n].copy(), qdd, variance.copy(), force)

    def belief(self) -> Belief:
        """Return mean and covariance after the last sample."""
        self.catch_up()
        return self._log[-1].belief

    def smoothed(self) -> list[Belief]:
        """Return the beliefs at all kept times, each from all samples: for recordings, `history` = inf."""
        self.catch_up()
        return smoothed(self.process, self._log)

    def report(self) -> dict[str, object]:
        """Return statistics for diagnostics."""
        values: dict[str, object] = {'too late': self.too_late, 'resets': self.resets}
        for name, count in self.innovations.items():
            values[f'{name} accepted'], values[f'{name} rejected'] = count.accepted, count.rejected
            values[f'{name} NIS/dof'] = f'{count.consistency:.2f}'
        return values

    # ---- internal ----------------------------------------------------------------------------------------------------

    def _feed_bodies(self, t: float, names: tuple[str, ...], X_WS: Array) -> None:
        if names:
            poses, slipped = self._tracked_bodies.poses(t, names, X_WS), self.bodies.slipped(names)
            self.bodies.feed(t, names, X_WS)
            self.feed(poses.with_open_places(slipped) if slipped else poses)

    def _insert(self, entry: Entry) -> None:
        if not math.isfinite(entry.t):
            raise ValueError(f't: expected a finite time, got {entry.t}')
        if not self._log:
            start = self._relocation.from_rest(entry.t)
            pressure = np.zeros(len(self.process.robot.chamber_names))
            pressed_at = -math.inf if pressure.size else math.inf
            self._log.append(Entry(entry.t, belief=start, pressure=pressure, pressed_at=pressed_at))
            self._done = 1
        if entry.t < self._log[0].t:
            self.too_late += 1
            return
        at = bisect.bisect_right(self._log, entry.t, key=time_of)
        self._log[at:] = [entry, *(later for later in self._log[at:] if later.measurement is not None)]
        self._done = min(self._done, at)
        oldest = bisect.bisect_left(self._log, self._log[-1].t - self.config.history, key=time_of) - 1
        if oldest > 0:
            if oldest >= self._done:
                self.catch_up()
            del self._log[:oldest]
            self._done -= oldest

    def _apply(self, last: Entry, item: Entry) -> None:
        """Compute the belief of an entry from the one before it."""
        item.pressure, item.belief, item.begins_anew = last.pressure, last.belief, False
        item.pressed_at = last.pressed_at
        item.refused_since, item.accepted_at = last.refused_since, last.accepted_at
        item.shown_at = last.shown_at
        is_pressure, since = isinstance(item.measurement, np.ndarray), last.belief.t
        is_heard_again = is_pressure and item.t > self._known_until(last) and last.accepted_at > -math.inf
        if (
            is_pressure and item.t <= since + self._ahead and not is_heard_again
        ):  # the mean pressure is enough
            item.pushed = last.pushed + (item.t - last.t) * last.pressure
        elif item.t > since:
            item.pushed = 0.0
            try:
                item.belief = self.process.predict(
                    last.belief, item.t, last.mean_pressure(item.t), self._known_until(last)
                )
            except (SoftRobotError, ValueError):  # the mean is outside the range of the model
                self._begin_anew(item, self._relocation.from_rest(item.t))
        if is_pressure:
            item.pressure, item.pressed_at = item.measurement, item.t
            if is_heard_again:
                item.belief = self.process.heard_again(item.belief, last.pressure, item.pressure)
        elif item.measurement is not None:
            self._correct(item, item.measurement)

    def _known_until(self, last: Entry) -> float:
        """Return the time from which the pressures are a guess: a live robot moves on while they are missing."""
        return last.pressed_at + self._ahead if self._ahead else math.inf

    def _correct(self, item: Entry, measurement: Measurement) -> None:
        if item.accepted_at == -math.inf and isinstance(measurement, PoseSet):
            item.measurement = measurement = self._begin_with(item, measurement)
        belief, verdicts = self._updated(item.belief, self._trusted(item, measurement), item.pressure)
        found = self._relocated(item, measurement, verdicts)
        if found is not None:
            self._begin_anew(item, found)
            if isinstance(measurement, PoseSet):  # the base may have been found at another place
                item.measurement = measurement = self._measured_again(measurement, measurement.sensors)
            belief, verdicts = self._updated(item.belief, measurement, item.pressure)
        item.belief, refused = belief, dict(item.refused_since)
        blind = len(measurement.sensors) - measurement.showing
        for k, sensor in enumerate(measurement.sensors):
            verdict = verdicts.get(sensor, REFUSED)
            if verdict.accepted:
                refused.pop(sensor, None)
                item.accepted_at = item.t
                item.shown_at = item.t if k >= blind else item.shown_at
            else:
                refused.setdefault(sensor, item.t)
            if item.begins_anew:  # the state was made from this sample, so its innovation has no information
                verdict = verdict._replace(nis=0.0, dof=0)
            if not item.is_counted:  # count repeated work once
                shown_at = item.t if k >= blind else -math.inf
                self._innovations.setdefault(sensor, Innovations()).count(verdict, shown_at)
        item.refused_since, item.is_counted = refused, True

    def _begin_with(self, item: Entry, measurement: PoseSet) -> PoseSet:
        """Start at the first poses, which may also locate the base."""
        sets = self._pose_sets(measurement)
        found = self._relocation.from_poses(sets, item.belief.x, item.pressure, is_known=False)
        if found is None:
            return measurement
        item.belief, item.begins_anew = found._replace(t=item.t), True
        return self._measured_again(measurement, measurement.sensors)

    def _trusted(self, item: Entry, measurement: Measurement) -> Measurement:
        """Return the measurement without bodies that were rejected (long, or with most others) and move erratically.

        The gate widens while nothing is accepted, and would eventually accept one of many random poses. At the start,
        when it is widest, bodies whose poses do not fit the robot are left out.
        """
        begins = item.accepted_at == -math.inf
        if not (begins or item.refused_since) or not isinstance(measurement, PoseSet):
            return measurement
        lost = [sensor for sensor in measurement.sensors if sensor in item.refused_since]
        if not 2 * len(lost) > max(len(measurement.sensors), 2):
            long_ago = item.t - self.config.recovery_time
            lost = [sensor for sensor in lost if item.refused_since[sensor] < long_ago]
        if not (begins or lost):
            return measurement
        where, sets = self._relocation, self._pose_sets(measurement)
        strays = where.strangers(sets, item.belief.x) if begins else where.strays(sets, lost)
        rest = [s for s in measurement.sensors if s not in strays]
        if not rest:
            return measurement.behind(len(measurement.sensors))
        return self._measured_again(measurement, rest) if strays else measurement

    def _measured_again(self, measurement: PoseSet, sensors: Sequence[str]) -> PoseSet:
        """Return the poses of some sensors, base to tip, with their current references among each other."""
        rows = [measurement.sensors.index(sensor) for sensor in sensors]
        X_WS, variance = measurement.X_WS[rows], measurement.variance[rows, :2]
        poses = self._tracked_bodies.poses(measurement.t, tuple(sensors), X_WS, variance)
        return poses._replace(misfit=measurement.misfit)

    def _pose_sets(self, measurement: PoseSet) -> list[PoseSet]:
        """Return the kept sets and one more."""
        before = (entry.measurement for entry in self._log[: self._done])
        return [*(m for m in before if isinstance(m, PoseSet)), measurement]

    def _updated(
        self, belief: Belief, measurement: Measurement, pressure: Array
    ) -> tuple[Belief, dict[str, Verdict]]:
        """Return the belief after sequential updates with all sensors of a measurement, each with its own gate.

        One linearisation serves all sensors while none of them moves the state far. If one is rejected, the others
        start again without it, as if it had not been measured.
        """
        start, refused = belief, {}
        verdicts: list[Verdict] = []
        while len(verdicts) < len(measurement.sensors):
            rest = measurement.behind(len(verdicts))
            x, P, nis, count = rest.correct(self.process, belief, pressure, self._rule(rest.dof))
            belief = Belief(belief.t, x, P)
            verdicts += [Verdict(True, value, rest.dof) for value in nis[:count].tolist()]
            if count == len(rest.sensors):
                break
            belief, verdict = self._doubtful(belief, rest.only(count), pressure, float(nis[count]))
            if verdict.accepted:
                verdicts.append(verdict)
            else:
                wrong = len(verdicts)
                refused[measurement.sensors[wrong]] = verdict
                measurement, belief, verdicts = measurement.without(wrong), start, []
        return belief, {**dict(zip(measurement.sensors, verdicts, strict=True)), **refused}

    def _doubtful(
        self, belief: Belief, measurement: Measurement, pressure: Array, nis: float
    ) -> tuple[Belief, Verdict]:
        """Update with one sensor that was rejected or moves the state far, with iterated linearisation.

        The sensor is accepted if the iteration converges and its last linearisation passes the gate. If the state is
        known too well for the linearisation to be wrong, there is no iteration.
        """
        n, dof, x_linear = self.process.n, 0, belief.x
        if np.diagonal(belief.P)[:n].max() < (SMALL_STEP / 5.0) ** 2:
            return belief, Verdict(False, nis, dof)
        for _ in range(ITERATIONS):
            innovation, H, variance, (judged, H_c, R) = measurement.read(self.process, x_linear, pressure)
            back = x_linear - belief.x
            x, P, nis = correct(belief.x, belief.P, innovation + H @ back, H, variance)
            test = surprise(belief.P, judged + H_c @ back, H_c, R[0], self.config.misfit)
            moved, x_linear, dof = float(np.abs((x - x_linear)[:n]).max()), x, len(variance)
            if moved < SMALL_STEP:
                break
        accepted = moved < SMALL_STEP and test <= self._rule(dof)[0]
        return Belief(belief.t, x, P) if accepted else belief, Verdict(accepted, nis, dof)

    def _rule(self, dof: int) -> Array:
        """Return the rule of correct_all for sensors with `dof` numbers; its first entry is the gate."""
        if dof not in self._rules:
            gate = float(chdtri(dof, 1.0 - self.config.gate_probability))
            self._rules[dof] = np.array([gate, self.config.misfit, self.process.n, SMALL_STEP])
        return self._rules[dof]

    def _relocated(
        self, item: Entry, measurement: Measurement, verdicts: Mapping[str, Verdict]
    ) -> Belief | None:
        """Return where to restart, if samples were rejected for long enough and agree on a place, else None."""
        patience = self.config.recovery_time
        since = [
            item.refused_since.get(sensor, item.t)
            for sensor in measurement.sensors
            if not verdicts.get(sensor, REFUSED).accepted
        ]
        if not since or not item.t - min(since) > patience or item.accepted_at == -math.inf:
            return None
        if isinstance(measurement, PoseSet):
            sets = self._pose_sets(measurement)
            return self._relocation.from_poses(sets, item.belief.x, item.pressure, is_known=True)
        silent = item.t - item.accepted_at > patience
        return self._relocation.from_rest(item.t, item.belief.x) if silent else None

    def _begin_anew(self, item: Entry, belief: Belief) -> None:
        self._resets += 1
        item.belief, item.begins_anew = belief._replace(t=item.t), True
        item.refused_since, item.accepted_at, item.shown_at = {}, -math.inf, -math.inf
