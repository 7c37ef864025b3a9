"""Unit quaternions in the order (x, y, z, w), and their conversion to and from rotation matrices.

`rotation_matrix` and `from_matrix` are plain arithmetic on scalars. `so3` compiles them inline for kernels; Python
calls them without numba, so sensor bridges start quickly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Quaternion = tuple[float, float, float, float]
Matrix = tuple[float, float, float, float, float, float, float, float, float]

NORM_TOLERANCE = 1e-3  # [-] larger deviations from unit length are not rounding errors


def rotation_matrix(x: float, y: float, z: float, w: float) -> Matrix:
    """R_WB by rows of quat_WB; for any length of quat_WB, the result is a rotation."""
    s = 2.0 / (x * x + y * y + z * z + w * w)
    return (
        1.0 - s * (y * y + z * z),
        s * (x * y - z * w),
        s * (x * z + y * w),
        s * (x * y + z * w),
        1.0 - s * (x * x + z * z),
        s * (y * z - x * w),
        s * (x * z - y * w),
        s * (y * z + x * w),
        1.0 - s * (x * x + y * y),
    )


def from_matrix(R_WB: Sequence[float]) -> Quaternion:
    """quat_WB with w >= 0 of R_WB by rows, from the largest row of 4 quat quat^T: accurate at every angle."""
    xx, xy, xz, yx, yy, yz, zx, zy, zz = R_WB
    x, y, z, w = zy - yz, xz - zx, yx - xy, 1.0 + xx + yy + zz
    if w < 1.0:  # beyond 120 degrees
        if xx >= yy and xx >= zz:
            x, y, z, w = 1.0 + xx - yy - zz, xy + yx, xz + zx, x
        elif yy >= zz:
            x, y, z, w = xy + yx, 1.0 - xx + yy - zz, yz + zy, y
        else:
            x, y, z, w = xz + zx, yz + zy, 1.0 - xx - yy + zz, z
    length = math.sqrt(x * x + y * y + z * z + w * w)
    scale = 1.0 / length if w >= 0.0 else -1.0 / length
    return scale * x, scale * y, scale * z, scale * w


def unit(quat_WB: ArrayLike) -> Array:
    """Normalise a quaternion. Raises ValueError if its length is off by more than NORM_TOLERANCE, or NaN."""
    quat = np.asarray(quat_WB, dtype=np.float64)
    if quat.shape != (4,):
        raise ValueError(f'quaternion must have 4 numbers, got shape {quat.shape}')
    norm = math.hypot(*quat.tolist())
    if not abs(norm - 1.0) <= NORM_TOLERANCE:
        raise ValueError(f'quaternion must have unit length, got {quat.tolist()} of length {norm:.6g}')
    return quat / norm


def to_rotation(quat_WB: ArrayLike) -> Array:
    """Return R_WB (3, 3). Raises ValueError like `unit`."""
    return np.array(rotation_matrix(*unit(quat_WB).tolist())).reshape(3, 3)


def from_rotation(R_WB: ArrayLike) -> Array:
    """Return the unit quaternion with w >= 0 of a rotation matrix."""
    rows = np.asarray(R_WB, dtype=np.float64).ravel().tolist()
    return np.asarray(from_matrix(rows), dtype=np.float64)
