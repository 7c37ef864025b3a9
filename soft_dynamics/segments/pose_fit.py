"""Inverse kinematics of a segment: the pose of its end to its coordinates, with the unexplained rest.

B is the segment's proximal frame, T its distal one. Each inverse is exact for every pose that its model can take within
the stated limits. For any other pose it returns a near one, and `Fit` has the errors of orientation and position.
All take one pose or many (..., 4, 4); where a pose leaves a choice, `near` decides for the first and each for the next.
The file of each segment type has its inverse.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..array import Array

ROUNDING = 1e-12  # [-] a smaller slant of the tip may be rounding of the pose
TINY = np.finfo(float).tiny  # keeps 0/0 at 0


class Fit(NamedTuple):
    """Coordinates (..., k) and the unexplained part of each pose; NaN where nothing was measured."""

    q: Array
    rotation_error: Array | float  # [rad]
    position_error: Array | float  # [m]


def continued(angles: Array, near: Array) -> Array:
    """Return angles (k,) or, over time, (n, k) shifted by whole turns: the first near `near`, each near the last."""
    rows = near + _wrapped(angles.reshape(-1, near.size) - near)
    return np.asarray(np.unwrap(rows, axis=0).reshape(angles.shape))


def _wrapped(angle: Array) -> Array:
    """Return the angle wrapped to -pi to pi."""
    return np.remainder(angle + np.pi, 2.0 * np.pi) - np.pi
