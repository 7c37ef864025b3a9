"""Exponential and logarithm of SO(3), on tuples for kernels and on arrays for Python.

    exp(r) = 1 + f_1 [r]x + f_2 [r]x^2        V(r) = 1 + f_2 [r]x + f_3 [r]x^2        f_j at r.r, see `entire`
    log(R) = r, |r| <= pi: twice the angle and the axis of the quaternion

V is the left Jacobian: d exp(r) = [V dr]x exp(r). All are regular at r = 0, and log is accurate at pi.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from ..array import Array
from ..kernels import vec3
from ..kernels.arc import Entire, entire
from ..kernels.vec3 import Mat3, Vec3, inline
from . import quaternion

quaternion_matrix = inline(quaternion.rotation_matrix)
matrix_quaternion = inline(quaternion.from_matrix)


@inline
def exp_kernel(r: Vec3, f: Entire) -> Mat3:
    """exp(r), with f = entire(r.r)"""
    x, y, z = r
    square, f1, f2 = vec3.dot(r, r), f[0], f[1]
    return (
        1.0 + f2 * (x * x - square),
        f2 * x * y - f1 * z,
        f2 * x * z + f1 * y,
        f2 * x * y + f1 * z,
        1.0 + f2 * (y * y - square),
        f2 * y * z - f1 * x,
        f2 * x * z - f1 * y,
        f2 * y * z + f1 * x,
        1.0 + f2 * (z * z - square),
    )


@inline
def left_jacobian_kernel(r: Vec3, f: Entire, a: Vec3) -> Vec3:
    """V(r) a, with f = entire(r.r)"""
    once = vec3.cross(r, a)
    return vec3.add_scaled(vec3.add_scaled(a, f[1], once), f[2], vec3.cross(r, once))


@inline
def log_kernel(R: Mat3) -> Vec3:
    """log(R)"""
    x, y, z, w = matrix_quaternion(R)
    sine = math.sqrt(x * x + y * y + z * z)  # of half the angle
    scale = 2.0 * math.atan2(sine, w) / sine if sine > 0.0 else 2.0
    return scale * x, scale * y, scale * z


def exp(r: ArrayLike) -> Array:
    """Rotations (..., 3, 3) of rotation vectors (..., 3)."""
    vectors = np.array(r, np.float64, order='C')
    R = np.empty((*vectors.shape, 3))
    _exp(vectors.reshape(-1, 3), R.reshape(-1, 3, 3))
    return R


def log(R: ArrayLike) -> Array:
    """Rotation vectors (..., 3), of length 0 to pi, of rotations (..., 3, 3)."""
    rotations = np.array(R, np.float64, order='C')
    r = np.empty(rotations.shape[:-1])
    _log(rotations.reshape(-1, 3, 3), r.reshape(-1, 3))
    return r


def angle(R: ArrayLike) -> Array:
    """Rotation angle of rotations (..., 3, 3), 0 to pi [rad]."""
    return np.asarray(np.linalg.norm(log(R), axis=-1))


def from_rpy(rpy: ArrayLike) -> Array:
    """R (3, 3) of roll, pitch and yaw about fixed axes, as in robot files and URDF."""
    about_x, about_y, about_z = exp(np.diag(np.asarray(rpy, np.float64)))
    return about_z @ about_y @ about_x


@njit(cache=True, error_model='numpy')
def _exp(r: Array, R: Array) -> None:
    for k in range(len(r)):
        v = (r[k, 0], r[k, 1], r[k, 2])
        turned = exp_kernel(v, entire(vec3.dot(v, v)))
        for j in range(9):
            R[k, j // 3, j % 3] = turned[j]


@njit(cache=True, error_model='numpy')
def _log(R: Array, r: Array) -> None:
    for k in range(len(R)):
        A = R[k]
        r[k, 0], r[k, 1], r[k, 2] = log_kernel(
            (A[0, 0], A[0, 1], A[0, 2], A[1, 0], A[1, 1], A[1, 2], A[2, 0], A[2, 1], A[2, 2])
        )
