"""The body as a curve: bent arcs, straight links, and a cubic spline through hinges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..array import Array
from ..kernels import kinematics
from ..kernels.chain import ARC, PRISMATIC, Elements

if TYPE_CHECKING:
    from ..robot import Shape


def element_lengths(chain: Elements) -> Array:
    """Rest length of each element along the body [m]; elements before the base have length 0."""
    shift = np.sqrt(chain['px'] ** 2 + chain['py'] ** 2 + chain['pz'] ** 2) * chain['shifted']
    shift[0] = 0.0
    slide = np.where((chain['kind'] == PRISMATIC) & (chain['prescribed'] == 0), chain['rest'][:, 0], 0.0)
    arcs = np.where(chain['kind'] == ARC, chain['length'], 0.0)
    return np.asarray(shift + slide + arcs, float)


def centerline(robot: Shape, q: Array, s: Array) -> Array:
    """Points (count, samples, 3) in the world at the arc lengths s [m] of the rest shape.

    A robot of hinges has a cubic spline through its joints over arc length. Its `spline_ends` are not-a-knot, natural
    (no curvature), or clamped (along y of the base there, no curvature at the tip).
    [Godage, sec. III-A]
    """
    if s.ndim != 1 or s.size == 0 or np.any(np.diff(s) < 0.0):
        raise ValueError(f's_samples: expected a rising list of arc lengths, got shape {s.shape}')
    if s[0] < 0.0 or s[-1] > robot.length * (1.0 + 1e-9):
        raise ValueError(f's_samples: expected 0 to {robot.length:g} m, got {s[0]:g} to {s[-1]:g}')
    segments = robot.description.segments
    if all(segment.splined for segment in segments):
        from scipy.interpolate import CubicSpline  # slow to import; only hinges need it

        knots = np.concatenate([[0.0], np.cumsum([segment.length for segment in segments])])
        X = robot.forward_kinematics(q)
        ends = robot.description.spline_ends
        bc = ((1, X[:, 0, :3, 1]), (2, np.zeros((len(X), 3)))) if ends == 'clamped' else ends
        return np.asarray(CubicSpline(knots, X[:, :, :3, 3], axis=1, bc_type=bc)(s), float)
    chain, x = robot._model.chain, robot._model.change.position(q)
    lengths, base = element_lengths(chain), robot._model.build.frames['base']
    points = np.empty((x.shape[0], s.size, 3))
    for i in range(x.shape[0]):
        kinematics.centerline(chain, x[i], base, lengths, s, points[i])
    return points
