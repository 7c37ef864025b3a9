"""Recorded poses or fiber shapes to coordinates of a robot over time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation, Slerp

from soft_dynamics.array import Array
from soft_dynamics.bags import BagError
from soft_dynamics.robot import Robot
from soft_dynamics.segments import Hinge

from ..differentiate.smoothing_spline import smoothing_spline
from ..inverse_kinematics.fiber_shape import hinge_angles
from ..inverse_kinematics.pose_tracking import MOVING_BASE, Tracking
from ..kalman.process_model import slopes
from ..kalman.sensors.fiber import Fibers, ShapeSample
from .bag_streams import Stream

MAX_RESIDUAL = 0.05  # [m] drop poses further from what the kinematics can reach
LEAST = 5  # least number of samples of a motion
REPORTS = 500  # samples between two calls of the progress callback
SHAPE_PLACES, SHAPE_ITERATIONS, SHAPE_STEP = 24, 30, 1e-8
Progress = Callable[[float], None]


class Coordinates(NamedTuple):
    """A motion with the times t (n,) [s] of its measurements; bandwidth [Hz] if it is filtered."""

    t: Array
    position: Callable[[Array], Array]
    rate: Callable[[Array], Array]
    acceleration: Callable[[Array], Array]
    source: str
    bandwidth: float | None = None


def smoothed(path: Path, source: str, t: Array, q: Array, bandwidth: float) -> Coordinates:
    """Return the motion through coordinates q (n, nq), smoothed without delay."""
    if t.size < LEAST:
        raise BagError(path, f'{source}: {t.size} valid samples; expected at least {LEAST}')
    spline = smoothing_spline(t, q, bandwidth)
    return Coordinates(t, spline, spline.derivative(), spline.derivative(2), source, bandwidth)


def from_poses(
    path: Path, robot: Robot, streams: Mapping[str, Stream], options: tuple[float, float], progress: Progress
) -> Coordinates:
    """Return coordinates from the streams 'pose <sensor>'; options: largest sample rate, bandwidth [Hz].

    Uses the times of the body with the fewest samples and interpolates the others. BagError if the bodies do not
    determine a coordinate, or if most of them are where no body of this robot can be.
    """
    rate, bandwidth = options
    tracking = Tracking(robot)
    poses = {name: streams[f'pose {name}'] for name in tracking.sensors if f'pose {name}' in streams}
    if not poses:
        seen = ', '.join(name.removeprefix('pose ') for name in streams if name.startswith('pose '))
        raise BagError(
            path, f'has poses of {seen}, but none of {robot.name}, which has {", ".join(tracking.sensors)}'
        )
    t = min((s.t for s in poses.values()), key=len)
    start, end = max(s.t[0] for s in poses.values()), min(s.t[-1] for s in poses.values())
    t = _thinned(t[(t >= start) & (t <= end)], rate)
    X_WS = {name: _poses_at(path, stream, t) for name, stream in poses.items()}
    progress(0.2)
    found = tracking.configurations(X_WS)
    progress(0.8)
    _all_observed(path, robot, found.observed, poses)
    moved = [r.position for name, r in found.residuals.items() if tracking.sensors[name].frame != 'base']
    worst = np.max([np.zeros(t.size), *moved], axis=0)
    kept = worst <= MAX_RESIDUAL
    if np.count_nonzero(kept) < 0.5 * t.size:
        raise BagError(
            path,
            f'is not of {robot.name}: its tracked bodies are {np.median(worst):.3f} m (median) from what the robot '
            'can reach; check the robot file: lengths, mount and sensor places',
        )
    if not np.all(kept):  # repeat, because each set starts where the one before it ended
        found = tracking.configurations({name: X[kept] for name, X in X_WS.items()})
    return smoothed(path, f'poses of {", ".join(poses)}', t[kept], found.q, bandwidth)


def from_fiber(
    path: Path, robot: Robot, stream: Stream, options: tuple[float, float], progress: Progress
) -> Coordinates:
    """Return coordinates from fiber points along the body, in the frame of the sensor; options as in `from_poses`."""
    rate, bandwidth = options
    places = stream.values.shape[1] // 4
    t = _thinned(stream.t, rate)
    values = stream.values[np.searchsorted(stream.t, t)]
    s, points_S = values[0, :places], values[:, places:].reshape(-1, places, 3)
    (name, *_) = [sensor.name for sensor in robot.description.sensors if sensor.kind == 'fiber']
    fit = _hinges if all(isinstance(x, Hinge) for x in robot.description.segments) else _least_squares
    fibers, q = Fibers(Tracking(robot)), np.empty((t.size, robot.nq))
    try:
        for k in range(t.size):
            sample = fibers.shape(0.0, name, s, points_S[k], 1.0, places if fit is _hinges else SHAPE_PLACES)
            q[k] = fit(robot, sample, q[k - 1] if k else robot.rest)
            if k % REPORTS == 0:
                progress(k / t.size)
    except ValueError as error:
        raise BagError(path, f'{stream.topic} is not of {robot.name}: {error}') from None
    return smoothed(path, f'fiber ({stream.topic})', t, q, bandwidth)


def _thinned(t: Array, rate: float) -> Array:
    """Return times no closer than the interval of `rate`, with tolerance for jitter."""
    slot = np.floor((t - t[:1]) * rate + 0.1) if t.size else t
    return t[np.unique(slot, return_index=True)[1]]


def _poses_at(path: Path, stream: Stream, t: Array) -> Array:
    """Return poses (n, 4, 4) at times within those of the stream."""
    norms = np.linalg.norm(stream.values[:, :4], axis=1)
    if np.any(np.abs(norms - 1.0) > 1e-3):
        bad = float(norms[np.argmax(np.abs(norms - 1.0))])
        raise BagError(path, f'{stream.topic} has quaternions of length {bad:.3g}; expected 1')
    if stream.t.size < LEAST:
        raise BagError(path, f'{stream.topic} has {stream.t.size} messages; expected at least {LEAST}')
    X = np.tile(np.eye(4), (t.size, 1, 1))
    X[:, :3, :3] = Slerp(stream.t, Rotation.from_quat(stream.values[:, :4]))(t).as_matrix()
    X[:, :3, 3] = np.stack([np.interp(t, stream.t, column) for column in stream.values[:, 4:].T], 1)
    return X


def _all_observed(path: Path, robot: Robot, observed: Any, poses: Mapping[str, Stream]) -> None:
    """Check that everything but a moving base was seen; an untracked moving base counts as fixed."""
    first = MOVING_BASE if robot.description.base.type == 'prescribed' else 0
    if not np.all(observed[first:]):
        name = robot.coordinate_names[first + int(np.argmin(observed[first:]))]
        raise BagError(
            path, f'poses of {", ".join(poses)} do not determine the coordinate {name} of {robot.name}'
        )


def _hinges(robot: Robot, sample: ShapeSample, _near: Array) -> Array:
    links = [x for x in robot.description.segments if isinstance(x, Hinge)]
    s, points = np.concatenate([[0.0], sample.s]), np.concatenate([np.zeros((1, 3)), sample.points])
    return hinge_angles(s, points, [x.length for x in links], [x.offset for x in links]).q


def _least_squares(robot: Robot, sample: ShapeSample, near: Array) -> Array:
    """Fit the distances of the points from the centre line by Gauss-Newton, from nearby coordinates."""
    q = near.copy()
    for _ in range(SHAPE_ITERATIONS):

        def points(rows: Array) -> Array:
            return robot.centerline(rows, sample.s).reshape(*rows.shape[:-1], -1)

        step = np.linalg.lstsq(slopes(points, q), sample.points.reshape(-1) - points(q), rcond=1e-6)[0]
        q += step
        if np.max(np.abs(step)) < SHAPE_STEP:
            break
    return q
