"""Poses as 4 x 4 matrices X_WB, checked once on input."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from soft_dynamics.array import Array, as_array
from soft_dynamics.geometry import quaternion, so3
from soft_dynamics.geometry.quaternion import NORM_TOLERANCE
from soft_dynamics.geometry.se3 import ROTATION_TOLERANCE, are_rigid, as_pose, as_rotation
from soft_dynamics.geometry.so3 import quaternion_matrix
from soft_dynamics.messages.body_frame import BodyFrame

NEARLY_HALF, ENOUGH_FLIPS = 3.0, 5  # [rad] about z from one sample to the next, and the least number of flips


def pose(quat_WB: Any, p_WB: Any) -> Array:
    """Return X_WB of a quaternion (x, y, z, w) and a position; ValueError if either is invalid."""
    p = as_array('p_WB', p_WB)
    if p.shape != (3,):
        raise ValueError(f'p_WB: expected 3 numbers, got shape {p.shape}')
    X_WB = np.eye(4)
    X_WB[:3, :3], X_WB[:3, 3] = quaternion.to_rotation(quat_WB), p
    return X_WB


def poses_from_normals(p_WB: Any, z_WB: Any, y_W: Any = (0.0, 1.0, 0.0)) -> Array:
    """Return X_WB (n, 4, 4) of positions and unit z axes (n, 3), y close to y_W: for plates of unknown rotation."""
    p, z, y = as_array('p_WB', p_WB), as_array('z_WB', z_WB), as_array('y_W', y_W)
    y = y - z * (z @ y)[:, None]
    y /= np.linalg.norm(y, axis=1)[:, None]
    X_WB = np.tile(np.eye(4), (len(p), 1, 1))
    X_WB[:, :3, 0], X_WB[:, :3, 1], X_WB[:, :3, 2], X_WB[:, :3, 3] = np.cross(y, z), y, z, p
    return X_WB


def flip_axis(R_WB: Any) -> Array:
    """Return the unit axis (3,) in plate B, near z, about which recorded R_WB (n, 3, 3) flip by half a turn.

    Motion capture confuses a square plate with its rotation by half a turn. A flip leaves only this axis in place, so
    it is the plate's normal. Returns z if there are too few flips to separate them from the plate's own motion.
    """
    R = as_rotation('R_WB', R_WB)
    turns = so3.log(np.swapaxes(R[:-1], 1, 2) @ R[1:])
    flips = turns[np.abs(turns[:, 2]) > NEARLY_HALF]
    if len(flips) < ENOUGH_FLIPS:
        return np.array([0.0, 0.0, 1.0])
    axis = np.median(flips * np.sign(flips[:, 2:]), axis=0)
    return np.asarray(axis / np.linalg.norm(axis))


def as_poses(names: Sequence[str], X_WB: Sequence[Any]) -> Array:
    """Return checked copies of many poses (k, 4, 4); errors name the pose."""
    with suppress(TypeError, ValueError):  # the next line reports the error
        poses = np.array(X_WB, dtype=np.float64)
        if poses.shape == (len(names), 4, 4) and are_rigid(poses, ROTATION_TOLERANCE):
            return poses
    return np.array([as_pose(f'poses[{name!r}]', X) for name, X in zip(names, X_WB, strict=True)])


def accepted(frame: BodyFrame) -> tuple[tuple[str, ...], Array, dict[str, ValueError]]:
    """Return names and X_WB (k, 4, 4) of the valid bodies of a frame, and the errors of the others by name.

    This is the only check of a frame on its way from the message to the state.
    """
    _, names, p_WB, quat_WB = frame
    if p_WB.shape != (len(names), 3) or quat_WB.shape != (len(names), 4):
        raise ValueError(
            f'frame: expected poses of {len(names)} bodies, got shapes {p_WB.shape} and {quat_WB.shape}'
        )
    X_WB, good = poses_from_quaternions(quat_WB, p_WB)
    if good.all():
        return names, X_WB, {}
    refused: dict[str, ValueError] = {}
    for k in np.flatnonzero(~good).tolist():
        try:
            X_WB[k], good[k] = pose(quat_WB[k], p_WB[k]), True
        except ValueError as error:
            refused[names[k]] = error
    return tuple(name for name, is_pose in zip(names, good, strict=True) if is_pose), X_WB[good], refused


def poses_from_quaternions(quat_WB: Array, p_WB: Array) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return X_WB (k, 4, 4) of quaternions (k, 4), x, y, z, w, and positions (k, 3), and which are valid (k,).

    Invalid are those that `pose` rejects: NaN, an infinite position, a quaternion that is not of unit length.
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
