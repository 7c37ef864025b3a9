"""Poses X_WB (4, 4): inverse, exponential, and errors as (rotation vector, displacement), angular first."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from ..array import Array
from ..kernels import vec3
from ..kernels.arc import entire
from ..kernels.vec3 import Mat3, Vec3, inline
from . import so3


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
