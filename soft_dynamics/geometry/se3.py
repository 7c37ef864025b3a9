"""Poses X_WB (4, 4): inverse, exponential, and errors as (rotation vector, displacement), angular first."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from ..array import Array, as_array
from ..kernels import vec3
from ..kernels.arc import entire
from ..kernels.vec3 import Mat3, Vec3, inline
from . import so3

ROTATION_TOLERANCE = 1e-6  # [-] a larger deviation from orthonormal is not a rounding error


@inline
def exp_kernel(phi: Vec3, rho: Vec3) -> tuple[Mat3, Vec3]:
    """Rotation exp(phi) and translation V(phi) rho of the exponential of a twist, see `so3`."""
    f = entire(vec3.dot(phi, phi))
    return so3.exp_kernel(phi, f), so3.left_jacobian_kernel(phi, f, rho)


@inline
def rotation(X: Array) -> Mat3:
    """The nine entries of R, by rows, of a pose."""
    return X[0, 0], X[0, 1], X[0, 2], X[1, 0], X[1, 1], X[1, 2], X[2, 0], X[2, 1], X[2, 2]


def inverse(X_WB: Array) -> Array:
    """X_BW, of one or of many (..., 4, 4)."""
    R_BW = np.swapaxes(X_WB[..., :3, :3], -1, -2)
    X_BW = np.zeros(X_WB.shape)
    X_BW[..., :3, :3] = R_BW
    X_BW[..., :3, 3] = -(R_BW @ X_WB[..., :3, 3, None])[..., 0]
    X_BW[..., 3, 3] = 1.0
    return X_BW


def pose_from_rpy(position: ArrayLike, rpy: ArrayLike) -> Array:
    """X_WB of a position and fixed-axis roll, pitch, yaw, as in robot files."""
    X_WB = np.eye(4)
    X_WB[:3, :3], X_WB[:3, 3] = so3.from_rpy(rpy), position
    return X_WB


def pose_error(X_wanted: ArrayLike, X: ArrayLike) -> Array:
    """(rotation vector, displacement) from X to X_wanted in world axes, angular first like the rows of a Jacobian."""
    e = np.empty(6)
    _error(np.array(X_wanted, np.float64, order='C'), np.array(X, np.float64, order='C'), e)
    return e


def moved(X: ArrayLike, step: ArrayLike) -> Array:
    """Move X by a step, so that `pose_error` from X to the result is this step."""
    X_moved = np.array(X, np.float64, order='C')
    _move(np.array(step, np.float64, order='C'), X_moved)
    return X_moved


@njit(cache=True, error_model='numpy')
def _error(Z: Array, X: Array, e: Array) -> None:
    """Write log(R_Z R_X^T), p_Z - p_X."""
    turn = vec3.matmul(rotation(Z), vec3.transpose(rotation(X)))
    e[0], e[1], e[2] = so3.log_kernel(turn)
    for a in range(3):
        e[3 + a] = Z[a, 3] - X[a, 3]


@njit(cache=True, error_model='numpy')
def _move(step: Array, X: Array) -> None:
    """Overwrite R, p with exp(step[:3]) R, p + step[3:]."""
    r = (step[0], step[1], step[2])
    R = vec3.matmul(so3.exp_kernel(r, entire(vec3.dot(r, r))), rotation(X))
    for a in range(3):
        X[a, 3] += step[3 + a]
        for b in range(3):
            X[a, b] = R[3 * a + b]


def as_pose(name: str, X_WB: Any) -> Array:
    """Return a checked copy of X_WB (..., 4, 4); ValueError unless all are rigid displacements."""
    X = np.array(X_WB, dtype=np.float64)
    if X.shape[-2:] != (4, 4):
        raise ValueError(f'{name}: expected a pose of shape (4, 4), got {X.shape}')
    if are_rigid(X.reshape(-1, 4, 4), ROTATION_TOLERANCE):
        return X
    as_array(name, X)
    as_rotation(name, X[..., :3, :3])
    if np.any(X[..., 3, :] != (0.0, 0.0, 0.0, 1.0)):
        raise ValueError(f'{name}: expected the last row 0, 0, 0, 1, got {X[..., 3, :].tolist()}')
    return X


def as_rotation(name: str, R_WB: Any) -> Array:
    """Return a checked copy of R_WB (..., 3, 3); ValueError unless all are rotations."""
    R = as_array(name, R_WB)
    if R.shape[-2:] != (3, 3):
        raise ValueError(f'{name}: expected a rotation of shape (3, 3), got {R.shape}')
    skewness = float(np.max(np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)), initial=0.0))
    if not skewness <= ROTATION_TOLERANCE or np.any(np.linalg.det(R) < 0.0):
        raise ValueError(f'{name}: expected a rotation, got a matrix off by {skewness:.3g}')
    return R


@njit(cache=True, error_model='numpy')
def are_rigid(X, tolerance):  # type: ignore[no-untyped-def]
    """Return whether all X (k, 4, 4) are finite rigid displacements."""
    for pose in X:
        total = 0.0
        for a in range(3):
            total += pose[a, 3]
            for b in range(a + 1):
                dot = pose[a, 0] * pose[b, 0] + pose[a, 1] * pose[b, 1] + pose[a, 2] * pose[b, 2]
                if not abs(dot - (1.0 if a == b else 0.0)) <= tolerance:
                    return False
        volume = 0.0
        for a in range(3):
            b, c = (a + 1) % 3, (a + 2) % 3
            volume += pose[0, a] * (pose[1, b] * pose[2, c] - pose[1, c] * pose[2, b])
        last = pose[3, 0] == 0.0 and pose[3, 1] == 0.0 and pose[3, 2] == 0.0 and pose[3, 3] == 1.0
        if not (volume > 0.0 and last and math.isfinite(total)):
            return False
    return True
