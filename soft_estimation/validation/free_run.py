"""Compare a model with a recording: simulate with the measured pressures from the measured start.

Free run: from the first sample to the last, as Jensen's tables I and II. Ahead: from many measured states, for a short
horizon. Forces: inverse dynamics of the measured motion against pressures and base sensor, as Mehl's table II.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from soft_dynamics.array import Array
from soft_dynamics.errors import NotConverged
from soft_dynamics.robot import Robot
from soft_dynamics.simulation.first_order_lag import follow

from ..inverse_kinematics.pose_tracking import MOVING_BASE
from ..recordings.recording import Recording

WINDOWS = 3000  # largest number of predictions ahead, evenly spread
BATCH = 250  # predictions at a time
PARTS = 10  # fraction of the recording for the best and the worst part
WRENCH = ('m_x', 'm_y', 'm_z', 'f_x', 'f_y', 'f_z')
Progress = Callable[[float], None]


class Statistics(NamedTuple):
    """Absolute errors of one coordinate, or of all that share a unit.                      [Jensen, table I, II]"""

    name: str
    unit: str
    mean: float
    median: float
    max: float
    rmse: float


class ForceError(NamedTuple):
    """Mean squared error of one force, over all and over the best and the worst part.        [Mehl, table II]"""

    name: str
    unit: str  # of the force; the errors are in its square
    mse: float
    best: float
    worst: float
    relative: float  # root of mse relative to the largest measured magnitude


@dataclass(frozen=True)
class Prediction:
    """States of the model at the times t (k,), and their error (k, columns of moving coordinates)."""

    t: Array
    q: Array
    error: Array
    table: tuple[Statistics, ...]
    stopped: str = ''  # why it ended early, or ''

    def total(self, unit: str) -> Statistics:
        return next(row for row in self.table if row.name == 'total' and row.unit == unit)


@dataclass(frozen=True)
class Validation:
    """Result of `validate`."""

    recording: Recording
    columns: tuple[int, ...]  # coordinates that the model predicts
    free: Prediction
    ahead: Prediction
    horizon: float  # [s]
    forces: tuple[ForceError, ...]
    wrench_B: Array | None  # (n, 6) by the model
    real_time_factor: float  # simulated time over computing time


def validate(
    robot: Robot, recording: Recording, horizon: float = 0.1, progress: Progress | None = None
) -> Validation:
    """Compare the robot's model with a recording; horizon [s]: of the predictions ahead.

    progress: called with the fraction done, 0 to 1. Raises ValueError if the recording is of another robot or shorter
    than the horizon.
    """
    report = progress or (lambda _: None)
    if recording.q.shape[1] != robot.nq or recording.pressure.shape[1] != len(robot.chamber_names):
        raise ValueError(
            f'recording: expected {robot.nq} coordinates and {len(robot.chamber_names)} chambers of {robot.name}, '
            f'got {recording.q.shape[1]} and {recording.pressure.shape[1]}'
        )
    if not recording.dt <= horizon < recording.duration:
        raise ValueError(
            f'horizon: expected from {recording.dt:g} s, one sample, to less than {recording.duration:g} s, '
            f'the length of the recording; got {horizon:g} s'
        )
    robot, recording = _at_chambers(robot, recording)
    _warm_up(robot, recording)
    start = time.perf_counter()
    free = free_run(robot, recording, lambda part: report(0.5 * part))
    needed = time.perf_counter() - start
    ahead = predict_ahead(robot, recording, horizon, lambda part: report(0.5 + 0.4 * part))
    forces, wrench_B = force_errors(robot, recording)
    report(1.0)
    simulated = float(free.t[-1] - free.t[0]) if free.t.size else 0.0
    return Validation(
        recording, moving(robot), free, ahead, horizon, forces, wrench_B, simulated / max(needed, 1e-9)
    )


def free_run(robot: Robot, recording: Recording, progress: Progress) -> Prediction:
    """Simulate from the measured start with the measured pressures; a moving base moves as measured."""
    stopped = ''
    try:
        q = _simulate(robot, recording, slice(0, recording.t.size), progress)
    except NotConverged as error:
        stopped = str(error)
        count = int(np.searchsorted(recording.t, error.time - 1e-9))
        q = _simulate(robot, recording, slice(0, count), progress) if count > 1 else recording.q[:1]
    return _prediction(robot, recording, np.arange(q.shape[0]), q, stopped)


def predict_ahead(robot: Robot, recording: Recording, horizon: float, progress: Progress) -> Prediction:
    """Predict from many measured states over the horizon; return the errors at its end."""
    steps = round(horizon / recording.dt)
    seen = _seen(recording)
    starts = np.arange(0, recording.t.size - steps, max(1, -(-(recording.t.size - steps) // WINDOWS)))
    starts = starts[seen[starts] & seen[starts + steps]]
    window = np.arange(steps + 1)
    ends, predicted, stopped = [], [], ''
    for first in range(0, starts.size, BATCH):
        rows = starts[first : first + BATCH, None] + window
        try:
            predicted += list(_simulate_many(robot, recording, rows))
            ends += rows[:, -1].tolist()
        except NotConverged as error:
            stopped = stopped or str(error)
            alone = [(row[-1], q) for row in rows if (q := _simulate_one(robot, recording, row)) is not None]
            ends += [end for end, _ in alone]
            predicted += [q for _, q in alone]
        progress(first / starts.size)
    return _prediction(
        robot, recording, np.array(ends, np.int64), np.reshape(predicted, (-1, robot.nq)), stopped
    )


def force_errors(robot: Robot, recording: Recording) -> tuple[tuple[ForceError, ...], Array | None]:
    """Compare inverse dynamics of the measured motion with the base sensor, if there is one, and the pressures."""
    motion = recording.q, recording.qd, recording.qdd
    rows = []
    wrench_B = None
    seen = _seen(recording)
    if recording.wrench_B is not None:
        wrench_B = robot.base_wrench(*motion)
        for k in (3, 4, 5, 0, 1, 2):
            unit = 'N' if k > 2 else 'N m'
            rows.append(_force_error(WRENCH[k], unit, wrench_B[seen, k], recording.wrench_B[seen, k]))
    if robot.chamber_names:
        model = robot.inverse_dynamics(*motion)
        measured = np.einsum('kij,kj->ki', robot.actuation(recording.q), recording.pressure)
        for k in moving(robot):
            name = robot.coordinate_names[k]
            unit = 'N' if robot.coordinate_units[k] == 'm' else 'N m'
            rows.append(_force_error(f'tau {name}', unit, model[seen, k], measured[seen, k]))
    return tuple(rows), wrench_B


def statistics(unit_of: Mapping[str, str], error: Any) -> tuple[Statistics, ...]:
    """Return the rows of Jensen's tables: one per column of error (k, len(unit_of)), and the total of each unit."""
    size = np.abs(np.asarray(error, np.float64))
    units = list(unit_of.values())
    rows = [_statistics(name, unit, size[:, k]) for k, (name, unit) in enumerate(unit_of.items())]
    for unit in sorted(set(units), reverse=True):
        rows.append(
            _statistics('total', unit, size[:, [k for k, u in enumerate(units) if u == unit]].ravel())
        )
    return tuple(rows)


def moving(robot: Robot) -> tuple[int, ...]:
    """Return the coordinates that the model predicts: all but those of a moving base."""
    return tuple(range(_given(robot), robot.nq))


# ---- internal --------------------------------------------------------------------------------------------------------


def _statistics(name: str, unit: str, size: Array) -> Statistics:
    if not size.size:
        return Statistics(name, unit, np.inf, np.inf, np.inf, np.inf)
    rmse = float(np.sqrt(np.mean(size**2)))
    return Statistics(name, unit, float(size.mean()), float(np.median(size)), float(size.max()), rmse)


def _force_error(name: str, unit: str, model: Array, measured: Array) -> ForceError:
    squared = (model - measured) ** 2
    parts = [float(part.mean()) for part in np.array_split(squared, min(PARTS, squared.size))]
    mse = float(squared.mean())
    largest = float(np.abs(measured).max())
    return ForceError(
        name, unit, mse, min(parts), max(parts), mse**0.5 / largest if largest > 0.0 else np.inf
    )


def _prediction(robot: Robot, recording: Recording, rows: Any, q: Array, stopped: str) -> Prediction:
    columns = list(moving(robot))
    seen = _seen(recording)[rows]
    error = (q - recording.q[rows])[:, columns]
    table = statistics({robot.coordinate_names[k]: robot.coordinate_units[k] for k in columns}, error[seen])
    return Prediction(recording.t[rows], q, error, table, stopped)


def _simulate(robot: Robot, recording: Recording, rows: slice, progress: Progress) -> Array:
    """Return coordinates (rows, nq) from the first of these rows on."""
    q, qd, p, t = (x[rows] for x in (recording.q, recording.qd, recording.pressure, recording.t))
    given = slice(0, _given(robot))
    if not _base_moves(robot, recording):
        return robot.simulate(q[0], qd[0], p, t, progress=progress).q
    out, rate = np.array(q), qd[0].copy()
    for k in range(1, t.size):
        out[k - 1, given], rate[given] = q[k - 1, given], qd[k - 1, given]
        step = robot.simulate(out[k - 1], rate, p[k - 1 : k + 1], t[k - 1 : k + 1])
        out[k], rate = step.q[-1], step.qd[-1]
        progress(k / t.size)
    out[:, given] = q[:, given]
    return out


def _simulate_many(robot: Robot, recording: Recording, rows: Any) -> Array:
    """Return coordinates (windows, nq) at the ends of windows of equal length; rows (windows, length)."""
    if _base_moves(robot, recording):
        parts = [slice(row[0], row[-1] + 1) for row in rows]
        return np.array([_simulate(robot, recording, part, lambda _: None)[-1] for part in parts])
    first, t = rows[:, 0], recording.t[: rows.shape[1]]
    return robot.simulate(recording.q[first], recording.qd[first], recording.pressure[rows], t).q[:, -1]


def _simulate_one(robot: Robot, recording: Recording, row: Any) -> Array | None:
    """Simulate one window; None if the model cannot run."""
    try:
        return np.asarray(_simulate_many(robot, recording, row[None])[0])
    except NotConverged:
        return None


def _base_moves(robot: Robot, recording: Recording) -> bool:
    given = slice(0, _given(robot))
    q, qd = recording.q[:, given], recording.qd[:, given]
    return bool(np.any(qd) or np.any(q - q[:1]))


def _given(robot: Robot) -> int:
    """Return the number of base coordinates, which are inputs."""
    return MOVING_BASE if robot.description.base.type == 'prescribed' else 0


def _seen(recording: Recording) -> Any:
    return np.ones(recording.t.size, bool) if recording.seen is None else recording.seen


def _at_chambers(robot: Robot, recording: Recording) -> tuple[Robot, Recording]:
    """Return the robot and its recording with the pressures inside the chambers, which lag behind the sensors."""
    drive = robot.description.actuation
    if not drive.chambers or max(drive.fill_lag, drive.vent_lag) == 0.0:
        return robot, recording
    p = recording.pressure
    inside = follow(recording.t, p, drive.fill_lag, drive.vent_lag, p[0])
    without = replace(robot.description, actuation=replace(drive, fill_lag=0.0, vent_lag=0.0))
    return Robot(without), replace(recording, pressure=inside)


def _warm_up(robot: Robot, recording: Recording) -> None:
    """Load the compiled stepper, so that loading does not count as simulation time."""
    robot.simulate(robot.rest, np.zeros(robot.nq), recording.pressure[:2] * 0.0, recording.t[:2])
