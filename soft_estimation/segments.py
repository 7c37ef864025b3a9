"""Pose of a segment's end to its coordinates: one exact inverse per model, and how well the model explains the pose.

B is the segment's proximal frame, T its distal one. Each inverse is exact for every pose its model can take within the
stated limits; of any other pose it gives a near one, and `Fit` says by how much orientation and position are missed.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from soft_dynamics import discs, quaternion
from soft_dynamics.arguments import Array, as_array

from .poses import as_pose, as_rotation, rotation_vector

STRAIGHT = (
    1e-7  # [-] below this slant of the tip the two links of a universal segment share their length as at rest
)


class Fit(NamedTuple):
    """Coordinates, and what the model leaves unexplained of the pose; NaN where nothing was measured."""

    q: Array
    rotation_error: float  # [rad]
    position_error: float  # [m]


# ---- arcs: Jensen's (u, v) and Mehl's differences ------------------------------------------------------------------


def bend_from_rotation(R_BT: Any) -> Fit:
    """(u, v) of an arc from the turn of its tip, R_BT = exp([(u, v, 0)]x) Rz(twist).            [Jensen, eq. 2]

    The twist, which no arc has, is the rotation error. Limit: a bend below pi; R does not tell phi from phi - 2 pi.
    """
    x, y, z, w = quaternion.from_rotation(as_rotation('R_BT', R_BT)).tolist()
    # Swing (X, Y, 0, W) times twist (0, 0, z, w)/W, with W >= 0: the bend is 2 atan2(|X, Y|, W) <= pi.
    W = math.hypot(z, w)
    if W == 0.0:  # bent by pi exactly: the twist is not determined, and taken as none
        z, w, W = 0.0, 1.0, 1.0
        X, Y, cosine = x, y, 0.0
    else:
        X, Y, cosine = (x * w - y * z) / W, (y * w + x * z) / W, W
    sine = math.hypot(X, Y)
    scale = 2.0 * math.atan2(sine, cosine) / sine if sine > 0.0 else 2.0
    return Fit(scale * np.array([X, Y]), abs(math.remainder(2.0 * math.atan2(z, w), 2.0 * math.pi)), math.nan)


def arc_from_pose(X_BT: Any, length: float | None = None) -> Fit:
    """(u, v, h) of an arc from the pose of its tip; with a given length h [m], (u, v).      [Jensen, eq. 2, 3]

    The turn gives the bend, the position its length and, beyond half a turn, which way round. Limit: a bend below 2 pi.
    """
    X = as_pose('X_BT', X_BT)
    bend, rotation_error, _ = bend_from_rotation(X[:3, :3])
    phi = math.hypot(*bend.tolist())
    bends = [bend, (phi - 2.0 * math.pi) * (bend / phi)] if phi > 0.0 else [bend]
    fits = [_arc_through(b, X[:3, 3], length) for b in bends]
    best = min(fits, key=lambda fit: (length is None and fit.q[2] <= 0.0, fit.position_error))
    return best._replace(rotation_error=rotation_error)


def arc_from_position(p_BT: Any, length: float | None = None) -> Fit:
    """(u, v, h) of an arc from the position of its tip alone; with a given length h [m], (u, v).      [Mehl, eq. 3]

    tan(phi/2) = |p_xy|/p_z,  h = |p| (phi/2)/sin(phi/2)      Limits: a bend below 2 pi, and a tip not at the base.
    """
    p = as_array('p_BT', p_BT)
    if p.shape != (3,) or not np.any(p):
        raise ValueError(f'p_BT: expected a position other than the base, got {p.tolist()}')
    x, y, z = p.tolist()
    across = math.hypot(x, y)
    half = math.atan2(across, z)
    if across == 0.0 and z < 0.0:
        raise ValueError(f'p_BT: expected a tip that an arc reaches, got {p.tolist()} behind the base')
    bend = 2.0 * half / across * np.array([-y, x]) if across > 0.0 else np.zeros(2)
    reach = math.hypot(across, z) / float(np.sinc(half / math.pi))
    if length is None:
        return Fit(np.array([*bend, reach]), math.nan, 0.0)
    return _arc_through(bend, p, length)


def differences_from_pose(X_BT: Any, rest_length: float, lever: float, extensible: bool = True) -> Fit:
    """(Delta_x, Delta_y[, delta_L]) from the pose of the tip: d v, -d u, h - L0. Limits: `arc_from_pose`.  [Mehl]"""
    return _to_differences(arc_from_pose(X_BT, None if extensible else rest_length), rest_length, lever)


def differences_from_position(p_BT: Any, rest_length: float, lever: float, extensible: bool = True) -> Fit:
    """(Delta_x, Delta_y[, delta_L]) from the tip's position alone. Limits: `arc_from_position`.        [Mehl, eq. 3]"""
    return _to_differences(arc_from_position(p_BT, None if extensible else rest_length), rest_length, lever)


def _to_differences(fit: Fit, rest_length: float, lever: float) -> Fit:
    u, v, *h = fit.q.tolist()
    return fit._replace(q=np.array([lever * v, -lever * u, *(value - rest_length for value in h)]))


def _arc_through(bend: Array, p_BT: Array, length: float | None) -> Fit:
    """The arc of this bend that ends nearest to p: p = h g(u, v)."""
    phi = math.hypot(*bend.tolist())
    f1, f2 = float(np.sinc(phi / math.pi)), 0.5 * float(np.sinc(0.5 * phi / math.pi)) ** 2
    g = np.array([f2 * bend[1], -f2 * bend[0], f1])
    h = float(p_BT @ g / (g @ g)) if length is None else length
    q = np.array([*bend, h]) if length is None else bend
    return Fit(q, math.nan, float(np.linalg.norm(p_BT - h * g)))


# ---- Wang's universal segment --------------------------------------------------------------------------------------


def universal_from_pose(X_BT: Any, rest_length: float, free: bool = True) -> Fit:
    """(d1, theta1, theta2, d2) of a universal segment, or (theta1, theta2) if its links are fixed.     [Wang, eq. 4]

    theta1 = atan2(-R31, R11), theta2 = atan2(-R23, R22), right in every quadrant. With e the base's and n the tip's
    z axis, p = d1 e + d2 n = s (n + e) + r (n - e): two orthogonal directions, so no branch and no small sine,
        s = p.(n + e)/|n + e|^2     r = p.(n - e)/(|n - e|^2 + STRAIGHT^2)     d1 = s - r,  d2 = s + r
    In the straight pose only the sum shows: both links get half. Limit: not folded back (n = -e).
    """
    X = as_pose('X_BT', X_BT)
    R, p, half = X[:3, :3], X[:3, 3], 0.5 * rest_length
    theta1, theta2 = math.atan2(-R[2, 0], R[0, 0]), math.atan2(-R[1, 2], R[1, 1])
    s1, c1, s2, c2 = math.sin(theta1), math.cos(theta1), math.sin(theta2), math.cos(theta2)
    R_fit = np.array([[c1, s1 * s2, s1 * c2], [0.0, c2, -s2], [-s1, c1 * s2, c1 * c2]])
    n, e = R_fit[:, 2], np.array([0.0, 0.0, 1.0])
    d1 = d2 = half
    if free:
        along, slant = n + e, n[0] * n[0] + n[1] * n[1]
        if along @ along < STRAIGHT**2:
            raise ValueError('X_BT: expected a tip that is not folded back onto its base')
        across = np.array(
            [n[0], n[1], -slant / (1.0 + n[2]) if n[2] > 0.0 else n[2] - 1.0]
        )  # n - e, to the last digit
        s, r = p @ along / (along @ along), p @ across / (across @ across + STRAIGHT**2)
        d1, d2 = float(s - r), float(s + r)
    q = np.array([d1, theta1, theta2, d2] if free else [theta1, theta2])
    rotation_error = float(np.linalg.norm(rotation_vector(R_fit.T @ R)))
    return Fit(q, rotation_error, float(np.linalg.norm(p - d1 * e - d2 * n)))


# ---- Godage's hinge and Schultz' disc ------------------------------------------------------------------------------


def hinge_from_pose(X_BT: Any, length: float, offset: float = 0.0, near: float = 0.0) -> Fit:
    """theta of a hinge about z followed by a link along y, the turn nearest to `near` [rad].         [Godage, eq. 1]"""
    X = as_pose('X_BT', X_BT)
    R = X[:3, :3]
    turn = math.atan2(R[1, 0] - R[0, 1], R[0, 0] + R[1, 1])
    theta = near + math.remainder(turn - offset - near, 2.0 * math.pi)
    R_fit = Rotation.from_euler('z', turn).as_matrix()
    rotation_error = float(np.linalg.norm(rotation_vector(R_fit.T @ R)))
    return Fit(np.array([theta]), rotation_error, float(np.linalg.norm(X[:3, 3] - length * R_fit[:, 1])))


def disc_from_pose(X_BT: Any, thread_length: float, near: Any = None, axis_angle: bool = True) -> Fit:
    """(alpha, beta, gamma, psi, phi) of a disc at the end of its thread, the solution nearest to `near`.  [Schultz]

    The direction of the thread gives alpha and beta, the disc's turn against it the others; there are always several
    solutions: (alpha + pi, -beta) is the same thread. Straight (beta = 0) alpha, at psi = +-pi/2 phi, keep the value
    of `near` and gamma takes up the rest: the pose is exact all the same. Limit: a disc not at its root.
    """
    X = as_pose('X_BT', X_BT)
    p = X[:3, 3]
    reach = float(np.linalg.norm(p))
    if not reach > 0.0:
        raise ValueError('X_BT: expected a disc away from its root, got position 0')
    shear = np.eye(5)
    shear[2, 0] = -1.0 if axis_angle else 0.0  # the joint's gamma is the public one less alpha
    start = shear @ (np.zeros(5) if near is None else as_array('near', near))
    P = _swing(p / reach)
    whole = Rotation.from_matrix(X[:3, :3])
    both = np.concatenate([P.as_quat(), (P.inv() * whole).as_quat()])[None]
    q = np.linalg.solve(shear, discs.to_angles(both, start)[0])
    return Fit(q, 0.0, abs(reach - thread_length))


def _swing(direction: Array) -> Rotation:
    """The shortest turn of the z axis into a direction; half a turn about x for its opposite."""
    x, y, z = direction.tolist()
    across = math.hypot(x, y)
    axis = (1.0, 0.0) if across == 0.0 else (-y / across, x / across)
    return Rotation.from_rotvec(math.atan2(across, z) * np.array([*axis, 0.0]))
