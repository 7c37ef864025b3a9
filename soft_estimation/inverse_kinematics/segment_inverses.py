"""Inverse kinematics of a segment: the pose of its end to its coordinates, with the unexplained rest.

B is the segment's proximal frame, T its distal one. Each inverse is exact for every pose that its model can take within
the stated limits. For any other pose it returns a near one, and `Fit` has the errors of orientation and position.
All take one pose or many (..., 4, 4); where a pose leaves a choice, `near` decides for the first and each for the next.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from soft_dynamics.array import Array, as_array
from soft_dynamics.geometry import disc_angles, so3

from .poses import as_pose, as_rotation

STRAIGHT = 1e-7  # [-] below this slant of the tip an arc counts as straight
FOLDED = 1e-6  # [rad] this close to half a turn, twist and bend direction of an arc cannot be distinguished
ROUNDING = 1e-12  # [-] a smaller slant of the tip may be rounding of the pose
TINY = np.finfo(float).tiny  # keeps 0/0 at 0


class Fit(NamedTuple):
    """Coordinates (..., k) and the unexplained part of each pose; NaN where nothing was measured."""

    q: Array
    rotation_error: Array | float  # [rad]
    position_error: Array | float  # [m]


# ---- arcs: Jensen's (u, v) and Mehl's differences ------------------------------------------------------------------


def bend_from_rotation(R_BT: Any) -> Fit:
    """Return (u, v) of an arc from the rotation of its tip, R_BT = exp([(u, v, 0)]x) Rz(twist).     [Jensen, eq. 2]

    An arc has no twist; the twist is the rotation error. Limit: a bend below pi; R cannot tell phi from phi - 2 pi.
    """
    return _bend(as_rotation('R_BT', R_BT))


def _bend(R: Array) -> Fit:
    x, y, z = R[..., 0, 2], R[..., 1, 2], R[..., 2, 2]  # (v sin(phi)/phi, -u sin(phi)/phi, cos(phi))
    sine = np.hypot(x, y)
    phi, axis = np.arctan2(sine, z), np.array([-y, x]) / np.maximum(sine, TINY)
    twist = np.abs(np.arctan2(R[..., 1, 0] - R[..., 0, 1], R[..., 0, 0] + R[..., 1, 1]))
    back = (sine < FOLDED) & (z < 0.0)
    if np.any(back):  # assume no twist; R + R^T gives the axis
        angle = 0.5 * np.arctan2(R[..., 1, 0] + R[..., 0, 1], R[..., 0, 0] - R[..., 1, 1])
        way = np.array([np.cos(angle), np.sin(angle)])
        axis = np.where(back, np.where(np.sum(way * axis, 0) < 0.0, -way, way), axis)
        twist = np.where(back, 0.0, twist)
    return Fit(np.moveaxis(phi * axis, 0, -1), twist, np.full_like(twist, np.nan))


def arc_from_pose(X_BT: Any, length: float | None = None) -> Fit:
    """Return (u, v, h) of an arc from the pose of its tip; with a given length h [m], (u, v).      [Jensen, eq. 2, 3]

    The rotation gives the bend; the position gives the length and, beyond half a turn, the direction. Limit: a bend
    below 2 pi.
    """
    X = as_pose('X_BT', X_BT)
    bend, rotation_error, _ = _bend(X[..., :3, :3])
    phi = np.linalg.norm(bend, axis=-1, keepdims=True)
    short = _arc_through(bend, X[..., :3, 3], length)
    far = _arc_through((phi - 2.0 * np.pi) * bend / np.maximum(phi, TINY), X[..., :3, 3], length)
    better = np.asarray(far.position_error < short.position_error)
    if length is None:
        backwards, far_backwards = short.q[..., 2] <= 0.0, far.q[..., 2] <= 0.0
        better = np.where(backwards == far_backwards, better, backwards)
    better &= phi[..., 0] > STRAIGHT  # a whole turn, which ends where it began, counts as none
    q = np.where(better[..., None], far.q, short.q)
    return Fit(q, rotation_error, np.where(better, far.position_error, short.position_error))


def arc_from_position(p_BT: Any, length: float | None = None) -> Fit:
    """Return (u, v, h) of an arc from the position of its tip alone; with a given length h [m], (u, v).   [Mehl, eq. 3]

    tan(phi/2) = |p_xy|/p_z,  h = |p| (phi/2)/sin(phi/2)      Limits: a bend below 2 pi, and a tip not at the base.
    """
    p = as_array('p_BT', p_BT)
    if p.shape[-1:] != (3,) or not np.all(np.any(p, axis=-1)):
        raise ValueError(f'p_BT: expected a position other than the base, got {p.tolist()}')
    x, y, z = np.moveaxis(p, -1, 0)
    across = np.hypot(x, y)
    half = np.arctan2(across, z)
    if np.any((across == 0.0) & (z < 0.0)):
        raise ValueError(f'p_BT: expected a tip within reach of an arc, got {p.tolist()} behind the base')
    bend = (2.0 * half / np.maximum(across, TINY))[..., None] * np.stack([-y, x], -1)
    if length is not None:
        return _arc_through(bend, p, length)
    reach = np.hypot(across, z) / np.sinc(half / np.pi)
    return Fit(np.concatenate([bend, reach[..., None]], -1), np.full_like(reach, np.nan), 0.0 * reach)


def differences_from_pose(X_BT: Any, rest_length: float, lever: float, extensible: bool = True) -> Fit:
    """Return (Delta_x, Delta_y[, delta_L]) from the tip's pose: d v, -d u, h - L0. Limits: `arc_from_pose`. [Mehl]"""
    return _to_differences(arc_from_pose(X_BT, None if extensible else rest_length), rest_length, lever)


def differences_from_position(p_BT: Any, rest_length: float, lever: float, extensible: bool = True) -> Fit:
    """Return (Delta_x, Delta_y[, delta_L]) from the tip's position. Limits: `arc_from_position`.     [Mehl, eq. 3]"""
    return _to_differences(arc_from_position(p_BT, None if extensible else rest_length), rest_length, lever)


def _to_differences(fit: Fit, rest_length: float, lever: float) -> Fit:
    u, v, *h = np.moveaxis(fit.q, -1, 0)
    return fit._replace(q=np.stack([lever * v, -lever * u, *(value - rest_length for value in h)], -1))


def _arc_through(bend: Array, p_BT: Array, length: float | None) -> Fit:
    """Return the arc of this bend that ends nearest to p: p = h g(u, v)."""
    phi = np.linalg.norm(bend, axis=-1)
    f1, f2 = np.sinc(phi / np.pi), 0.5 * np.sinc(0.5 * phi / np.pi) ** 2
    g = np.stack([f2 * bend[..., 1], -f2 * bend[..., 0], f1], -1)
    h = np.sum(p_BT * g, -1) / np.sum(g * g, -1) if length is None else np.full(phi.shape, length)
    q = np.concatenate([bend, h[..., None]], -1) if length is None else bend
    return Fit(q, np.full_like(phi, np.nan), np.linalg.norm(p_BT - h[..., None] * g, axis=-1))


# ---- Wang's universal segment --------------------------------------------------------------------------------------


def universal_from_pose(X_BT: Any, rest_length: float, free: bool = True) -> Fit:
    """Return (d1, theta1, theta2, d2) of a universal segment, or (theta1, theta2) of fixed links.     [Wang, eq. 4]

    theta1 = atan2(-R31, R11), theta2 = atan2(-R23, R22), right in every quadrant. With e the base's and n the tip's
    z axis, p = d1 e + d2 n = s (n + e) + r (n - e): two orthogonal directions, so no branch and no small sine,
        s = p.(n + e)/|n + e|^2     r = p.(n - e)/(|n - e|^2 + ROUNDING^2)     d1 = s - r,  d2 = s + r
    The straight pose determines only the sum; both links get half. Near it, an error of the pose enters their
    difference multiplied by 1/bend; |r| <= |s| keeps lengths from becoming negative. Limit: not folded back (n = -e).
    """
    X = as_pose('X_BT', X_BT)
    R, p, e = X[..., :3, :3], X[..., :3, 3], np.array([0.0, 0.0, 1.0])
    theta1, theta2 = np.arctan2(-R[..., 2, 0], R[..., 0, 0]), np.arctan2(-R[..., 1, 2], R[..., 1, 1])
    s1, c1, s2, c2 = np.sin(theta1), np.cos(theta1), np.sin(theta2), np.cos(theta2)
    rows = [c1, s1 * s2, s1 * c2], [0.0 * c1, c2, -s2], [-s1, c1 * s2, c1 * c2]
    R_fit = np.moveaxis(np.array(rows), (0, 1), (-2, -1))
    n = R_fit[..., 2]
    d1 = d2 = np.full(theta1.shape, 0.5 * rest_length)
    if free:
        along, across = n + e, n - e
        small = np.sum(n[..., :2] ** 2, -1) / (1.0 + np.abs(n[..., 2]))  # 1 - |n_z|, to the last digit
        along[..., 2] = np.where(n[..., 2] < 0.0, small, along[..., 2])
        across[..., 2] = np.where(n[..., 2] > 0.0, -small, across[..., 2])
        folded = np.sum(along**2, -1)
        if np.any(folded < STRAIGHT**2):
            raise ValueError('X_BT: expected a tip that is not folded back onto its base')
        s, r = np.sum(p * along, -1) / folded, np.sum(p * across, -1) / (np.sum(across**2, -1) + ROUNDING**2)
        r = np.clip(r, -np.abs(s), np.abs(s))
        d1, d2 = s - r, s + r
    q = np.stack([d1, theta1, theta2, d2] if free else [theta1, theta2], -1)
    missed = p - d1[..., None] * e - d2[..., None] * n
    return Fit(q, so3.angle(np.swapaxes(R_fit, -1, -2) @ R), np.linalg.norm(missed, axis=-1))


# ---- Godage's hinge and Schultz' disc ------------------------------------------------------------------------------


def hinge_from_pose(X_BT: Any, length: float, offset: float = 0.0, near: float = 0.0) -> Fit:
    """Return theta of a hinge about z followed by a link along y, the turn nearest to `near` [rad]. [Godage, eq. 1]"""
    X = as_pose('X_BT', X_BT)
    R = X[..., :3, :3]
    angle = np.arctan2(R[..., 1, 0] - R[..., 0, 1], R[..., 0, 0] + R[..., 1, 1])
    c, s, o = np.cos(angle), np.sin(angle), 0.0 * angle
    R_fit = np.moveaxis(np.array([[c, -s, o], [s, c, o], [o, o, o + 1.0]]), (0, 1), (-2, -1))
    missed: Array = np.linalg.norm(X[..., :3, 3] - length * R_fit[..., 1], axis=-1)
    theta = continued((angle - offset)[..., None], np.array([near]))
    return Fit(theta, so3.angle(np.swapaxes(R_fit, -1, -2) @ R), missed)


def disc_from_pose(X_BT: Any, thread_length: float, near: Any = None, axis_angle: bool = True) -> Fit:
    """Return (alpha, beta, gamma, psi, phi) of a disc at its thread's end, the solution nearest to `near`. [Schultz]

    The direction of the thread gives alpha and beta, the rotation of the disc relative to it the others. There are
    always several solutions: (alpha + pi, -beta) is the same thread. Straight (beta = 0) alpha, at psi = +-pi/2 phi,
    keep the value of `near` and gamma takes up the rest; the pose stays exact. Limit: a disc not at its root.
    """
    X = as_pose('X_BT', X_BT)
    p = X[..., :3, 3].reshape(-1, 3)
    reach = np.linalg.norm(p, axis=-1)
    if not np.all(reach > 0.0):
        raise ValueError('X_BT: expected a disc away from its root, got position 0')
    shear = np.eye(5)
    shear[2, 0] = -1.0 if axis_angle else 0.0  # the joint's gamma is the public one minus alpha
    start = shear @ (np.zeros(5) if near is None else as_array('near', near))
    joints = disc_angles.of_poses(p / reach[:, None], X[..., :3, :3].reshape(-1, 3, 3), start, ROUNDING)
    q = np.asarray(np.linalg.solve(shear, joints.T).T, np.float64)
    missed = np.abs(reach - thread_length).reshape(X.shape[:-2])
    return Fit(q.reshape(*X.shape[:-2], 5), 0.0 * missed, missed)


def base_angles(R_0B: Array, near: Array) -> Array:
    """Return (n, 3) angles of R = Rx Ry Rz over time, the first near `near`, each near the last.   [Mehl, eq. 7]

    At a second angle of +-pi/2 the third keeps its value and the first takes up the rest.
    """
    cyclic = [1, 2, 0]  # y, z, x as x, y, z
    return disc_angles.zxy_angles(R_0B[:, cyclic][:, :, cyclic], near, ROUNDING)


def continued(angles: Array, near: Array) -> Array:
    """Return angles (k,) or, over time, (n, k) shifted by whole turns: the first near `near`, each near the last."""
    rows = near + _wrapped(angles.reshape(-1, near.size) - near)
    return np.asarray(np.unwrap(rows, axis=0).reshape(angles.shape))


def _wrapped(angle: Array) -> Array:
    """Return the angle wrapped to -pi to pi."""
    return np.remainder(angle + np.pi, 2.0 * np.pi) - np.pi
