"""Fiber shapes: points to a spline, points to the angles of planar links."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.interpolate import BSpline, CubicSpline

from soft_dynamics.array import Array, as_array
from soft_dynamics.segments.pose_fit import Fit

from .kernels import carry_frames

KNOT_SPACING = 0.03  # [m] shorter waves count as noise
CUBIC = 4  # coefficients of a spline piece


def spline(s: Any, points: Any) -> CubicSpline:
    """Return a cubic spline over arc length, not-a-knot at its ends, through points (n, 3); skips lost (NaN) points."""
    s, points = _samples(s, points, 'points', lost_allowed=True)
    if s.size < 2:
        raise ValueError(f'points: expected at least 2 valid ones, got {s.size}')
    return CubicSpline(s, points)


class Frames(NamedTuple):
    """Frames along a fiber. Shares (k,): variances of a place, and [1/m^2] of a direction, per variance of a point."""

    points: Array  # (k, 3)
    axes: Array  # (k, 3, 3)
    place_share: Array
    turn_share: Array


def frames_along(s: Any, points: Any, ends: Any) -> Frames:
    """Return points and frames at the arc lengths `ends` of a body that leaves the base along z.

    The frames are carried along without twist: each tangent turns into the next by the shortest rotation. The curve is
    a least-squares spline with a knot every KNOT_SPACING; it bridges lost points.
    """
    lengths, p = as_array('s', s), np.asarray(points, dtype=np.float64)
    if p.shape != (lengths.size, 3) or not np.isfinite(p).all():
        kept_s, kept = _samples(lengths, p, 'points', lost_allowed=True)
        if kept_s.size < 2 * CUBIC:
            raise ValueError(f'points: expected at least {2 * CUBIC} valid ones, got {kept_s.size}')
        lengths = lengths[(lengths >= kept_s[0]) & (lengths <= kept_s[-1])]
        p = np.stack([np.interp(lengths, kept_s, column) for column in kept.T], 1)
    ends = as_array('ends', ends)
    fit = _spline_fit(lengths.tobytes(), ends.tobytes())
    both = fit.matrix @ p
    places, tangents = both[: ends.size], both[ends.size :]
    frames = np.empty((len(tangents), 3, 3))
    carry_frames(tangents, frames)
    axes = frames[fit.at]
    return Frames(places + fit.beyond[:, None] * axes[:, :, 2], axes, fit.place_share, fit.turn_share)


class _SplineFit(NamedTuple):
    """Points on a least-squares spline at the ends, then slopes at more places, as a matrix on the measured points."""

    matrix: Array
    at: npt.NDArray[np.intp]  # index of the ends among the places
    beyond: Array  # [m] distance of each end beyond the last point
    place_share: Array  # see Frames
    turn_share: Array


@functools.lru_cache(maxsize=16)
def _spline_fit(lengths: bytes, wanted: bytes) -> _SplineFit:
    """Return the fit for these arc lengths; cached, since a fiber repeats them."""
    s, ends = np.frombuffer(lengths), np.frombuffer(wanted)
    if s.size < 2 * CUBIC or np.any(np.diff(s) <= 0.0):
        raise ValueError(f's: expected at least {2 * CUBIC} rising arc lengths, got {s.size}')
    pieces = max(1, min(round((s[-1] - s[0]) / KNOT_SPACING), s.size // CUBIC - CUBIC))
    inner = np.linspace(s[0], s[-1], pieces + 1)
    knots = np.concatenate([[s[0]] * (CUBIC - 1), inner, [s[-1]] * (CUBIC - 1)])
    within = np.minimum(ends, s[-1])
    places = np.union1d(inner[:-1], within)
    basis = BSpline(knots, np.eye(len(knots) - CUBIC), CUBIC - 1)
    coefficients = np.linalg.pinv(basis(s))
    at = np.searchsorted(places, within)
    value, slope = basis(within) @ coefficients, basis(places, 1) @ coefficients
    turn_share = np.square(slope[at]).sum(1)
    place_share = np.square(value).sum(1) + np.square(ends - within) * turn_share
    return _SplineFit(np.concatenate([value, slope]), at, ends - within, place_share, turn_share)


def link_errors(s: Any, points: Any, links: int) -> Array:
    """Return distances (n,) [m] of points from a spline through the ends of equal links.      [Godage, sec. III-A]"""
    shape = spline(s, points)
    knots = np.linspace(shape.x[0], shape.x[-1], links + 1)
    return np.linalg.norm(CubicSpline(knots, shape(knots))(shape.x) - shape(shape.x), axis=1)


def hinge_angles(s: Any, points: Any, lengths: Any, offsets: Any = 0.0) -> Fit:
    """Return the angles of planar links whose ends lie on a fiber.                                 [Godage, eq. 1, 2]

    Links lie along y and turn about z of the base. Chords between the points at the hinges give the directions.
    position_error is the largest part of a chord that no link explains: out of the plane, longer or shorter than the
    link. Limit: less than half a turn per hinge.
    """
    lengths = as_array('lengths', lengths)
    shape, ends = spline(s, points), np.concatenate([[0.0], np.cumsum(lengths)])
    if ends[-1] > shape.x[-1] + np.diff(shape.x).max():
        raise ValueError(f'points: expected a fiber of {ends[-1]:g} m, got {shape.x[-1]:g} m')
    chords = np.diff(shape(ends), axis=0)
    headings = np.unwrap(np.arctan2(-chords[:, 0], chords[:, 1]))
    fitted = lengths[:, None] * np.stack([-np.sin(headings), np.cos(headings), 0.0 * headings], 1)
    theta = np.diff(headings, prepend=0.0) - as_array('offsets', offsets)
    return Fit(theta, float('nan'), float(np.linalg.norm(chords - fitted, axis=1).max()))


def _samples(s: Any, values: Any, name: str, lost_allowed: bool = False) -> tuple[Array, Array]:
    s, values = as_array('s', s), np.asarray(values, dtype=np.float64)
    if s.ndim != 1 or np.any(np.diff(s) <= 0.0):
        raise ValueError(f's: expected rising arc lengths, got shape {s.shape}')
    if values.shape != (s.size, 3):
        raise ValueError(f'{name}: expected shape ({s.size}, 3), got {values.shape}')
    if lost_allowed:
        kept = np.all(np.isfinite(values), axis=1)
        return s[kept], values[kept]
    return s, as_array(name, values)
