"""Pose of a segment's end to its coordinates: one exact inverse per model, and how well the model explains the pose.

B is the segment's proximal frame, T its distal one. Each inverse is exact for every pose its model can take within the
stated limits; of any other pose it gives a near one, and `Fit` says by how much orientation and position are missed.
All take one pose or many (..., 4, 4); where a pose leaves a choice, `near` decides for the first and each for the next.
The inverse of a type lies in the type's own file.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..array import Array

ROUNDING = 1e-12  # [-] a slant of the tip that may be nothing but rounding of the pose
TINY = np.finfo(float).tiny  # keeps 0/0 at 0


class Fit(NamedTuple):
    """Coordinates (..., k), and what the model leaves unexplained of each pose; NaN where nothing was measured."""

    q: Array
    rotation_error: Array | float  # [rad]
    position_error: Array | float  # [m]


def continued(angles: Array, near: Array) -> Array:
    """Angles (k,) or, over time, (n, k) moved by whole turns: the first near `near` (k,), each near the one before."""
    rows = near + _wrapped(angles.reshape(-1, near.size) - near)
    return np.asarray(np.unwrap(rows, axis=0).reshape(angles.shape))


def _wrapped(angle: Array) -> Array:
    """From -pi to pi."""
    return np.remainder(angle + np.pi, 2.0 * np.pi) - np.pi
