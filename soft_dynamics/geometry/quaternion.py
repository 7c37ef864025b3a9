"""Unit quaternions in the order (x, y, z, w), for the edges of the suite; no recursion calls them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

NORM_TOLERANCE = 1e-3  # [-] further from unit length is not a rounding error


def unit(quat_WB: ArrayLike) -> Array:
    """Return the quaternion at unit length; ValueError if it is off by more than NORM_TOLERANCE, or NaN."""
    quat = np.asarray(quat_WB, dtype=np.float64)
    if quat.shape != (4,):
        raise ValueError(f'quaternion must have 4 numbers, got shape {quat.shape}')
    norm = math.hypot(*quat.tolist())
    if not abs(norm - 1.0) <= NORM_TOLERANCE:
        raise ValueError(f'quaternion must have unit length, got {quat.tolist()} of length {norm:.6g}')
    return quat / norm


def to_rotation(quat_WB: ArrayLike) -> Array:
    """Return R_WB, 3 x 3. ValueError as from `unit`."""
    x, y, z, w = unit(quat_WB).tolist()
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def from_rotation(R_WB: ArrayLike) -> Array:
    """Return the unit quaternion with w >= 0 of a rotation matrix.

    The rows below are x, y, z and w times 4 quat; the longest of them is well conditioned at every angle.
    """
    (a, b, c), (d, e, f), (g, h, i) = np.asarray(R_WB, dtype=np.float64).tolist()
    rows = (
        (1 + a - e - i, b + d, c + g, h - f),
        (b + d, 1 - a + e - i, f + h, c - g),
        (c + g, f + h, 1 - a - e + i, d - b),
        (h - f, c - g, d - b, 1 + a + e + i),
    )
    longest = max(range(4), key=lambda k: rows[k][k])
    quat = np.array(rows[longest])
    return quat / math.copysign(math.hypot(*rows[longest]), quat[3])
