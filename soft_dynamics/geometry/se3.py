"""Rotation vectors, for errors and interpolation of poses."""

from __future__ import annotations

import math

import numpy as np

from ..arguments import Array
from . import quaternion


def log(R: Array) -> Array:
    """The rotation vector of R, of length 0 to pi."""
    quat = quaternion.from_rotation(R)
    sine = math.hypot(*quat[:3].tolist())  # of half the angle
    if sine < 1e-9:
        return 2.0 * quat[:3]
    return quat[:3] * (2.0 * math.atan2(sine, float(quat[3])) / sine)


def exp(r: Array) -> Array:
    """The rotation matrix of a rotation vector."""
    angle = math.hypot(*r.tolist())
    half_sinc = 0.5 if angle < 1e-9 else math.sin(0.5 * angle) / angle
    x, y, z = (half_sinc * r).tolist()
    return quaternion.to_rotation((x, y, z, math.cos(0.5 * angle)))


def pose_error(X_wanted: Array, X: Array) -> Array:
    """(rotation vector, displacement) from X to X_wanted in world axes: angular first, as the Jacobian's rows."""
    return np.concatenate([log(X_wanted[:3, :3] @ X[:3, :3].T), X_wanted[:3, 3] - X[:3, 3]])


def moved(X: Array, step: Array) -> Array:
    """The pose that `pose_error` says is this step away from X."""
    X_moved = np.eye(4)
    X_moved[:3, :3], X_moved[:3, 3] = exp(step[:3]) @ X[:3, :3], X[:3, 3] + step[3:]
    return X_moved
