"""Checks of poses and chains of frames, compiled: a call from Python costs more than most of it."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True, error_model='numpy')
def carry_poses(X_MW, X_WS, X_SF, X_MF):
    """Write X_MF = X_MW X_WS X_SF of rigid displacements: X_MW (4, 4), the others (k, 4, 4)."""
    X_MS = np.empty((4, 4))
    for k in range(len(X_WS)):
        for left, right, out in ((X_MW, X_WS[k], X_MS), (X_MS, X_SF[k], X_MF[k])):
            for a in range(4):
                for b in range(4):
                    out[a, b] = (
                        left[a, 0] * right[0, b]
                        + left[a, 1] * right[1, b]
                        + left[a, 2] * right[2, b]
                        + left[a, 3] * right[3, b]
                    )


@njit(cache=True, error_model='numpy')
def carry_frames(tangents, frames):
    """Write axes (k, 3, 3), carried from the world's along a curve without twist so that z becomes the tangent.

    Each step is the shortest rotation: R = 1 + [v]x + [v]x^2/(1 + a.b), v = a x b, from unit vector a to b.
    """
    R = np.eye(3)
    column = np.empty(3)
    for k in range(len(tangents)):
        size = math.sqrt(tangents[k, 0] ** 2 + tangents[k, 1] ** 2 + tangents[k, 2] ** 2)
        a0, a1, a2 = R[0, 2], R[1, 2], R[2, 2]
        b0, b1, b2 = tangents[k, 0] / size, tangents[k, 1] / size, tangents[k, 2] / size
        v = (a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0)
        share = 1.0 / (1.0 + a0 * b0 + a1 * b1 + a2 * b2)
        for j in range(3):
            x, y, z = R[0, j], R[1, j], R[2, j]
            along = share * (v[0] * x + v[1] * y + v[2] * z)
            cosine = a0 * b0 + a1 * b1 + a2 * b2
            column[0] = cosine * x + v[1] * z - v[2] * y + along * v[0]
            column[1] = cosine * y + v[2] * x - v[0] * z + along * v[1]
            column[2] = cosine * z + v[0] * y - v[1] * x + along * v[2]
            R[:, j] = column
        frames[k] = R
