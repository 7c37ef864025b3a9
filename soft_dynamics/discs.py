"""The two faces of a disc on a thread: five angles for people, two quaternions and body rates for integration.

The angles (alpha, beta, gamma, psi, phi) of the joints z, x, z, x, y have no inertia against alpha at beta = 0 or pi
and gamma = phi at psi = +-pi/2 [Schultz, sec. V]. The quaternions of thread P and disc against thread B, with the
thread's rates (w1, w2, no spin) and the disc's three, have mass in every pose.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from .arguments import Array

ANGLES, QUATERNIONS, RATES = 5, 8, 5
ALMOST_STRAIGHT = 1e-7  # [rad] below this bend alpha keeps its last value


def _rotation(axes: str, angles: Array) -> Rotation:
    return Rotation.from_euler(axes, angles)


def to_quaternions(angles: Array) -> Array:
    """(count, 8) thread and disc quaternions of joint angles (count, 5)."""
    alpha, beta = angles[:, 0], angles[:, 1]
    P = _rotation('ZXZ', np.stack([alpha, beta, -alpha], 1))
    whole = _rotation('ZXZ', angles[:, :3]) * _rotation('XY', angles[:, 3:])
    return np.concatenate([P.as_quat(), (P.inv() * whole).as_quat()], 1)


def rate_matrix(angles: Array, quaternions: Array) -> Array:
    """(count, 5, 5) from rates of the joint angles to the five body rates."""
    P, B = Rotation.from_quat(quaternions[:, :4]), Rotation.from_quat(quaternions[:, 4:])
    R = Rotation.identity(len(angles))
    axes = np.empty((len(angles), 3, ANGLES))
    for j, axis in enumerate('ZXZXY'):
        axes[:, :, j] = R.apply(np.eye(3)['XYZ'.index(axis)])
        R = R * Rotation.from_euler(axis, angles[:, [j]])
    thread = P.as_matrix()
    swing = np.zeros_like(axes)
    swing[:, :, :2] = axes[:, :, :2]
    e = thread[:, :, 2]
    swing -= e[:, :, None] * np.einsum('ki,kij->kj', e, swing)[:, None]
    out = np.empty((len(angles), RATES, ANGLES))
    out[:, :2] = np.einsum('kji,kjl->kil', thread, swing)[:, :2]
    disc = (P * B).as_matrix()
    out[:, 2:] = np.einsum('kji,kjl->kil', disc, axes - swing)
    return out


def to_angles(quaternions: Array, start: Array) -> Array:
    """(count, 5) joint angles of quaternions (count, 8), continued sample by sample from the angles `start` (5,)."""
    P = Rotation.from_quat(quaternions[:, :4])
    whole = (P * Rotation.from_quat(quaternions[:, 4:])).as_matrix()
    threads = P.as_matrix()[:, :, 2]
    out = np.empty((len(quaternions), ANGLES))
    last = np.asarray(start, float)
    for i, (e, R) in enumerate(zip(threads, whole, strict=True)):
        bend = np.hypot(e[0], e[1])
        beta = np.arctan2(bend, e[2])
        alpha = np.arctan2(e[0], -e[1]) if bend > ALMOST_STRAIGHT else last[0]
        alpha, beta = _nearest([(alpha, beta), (alpha + np.pi, -beta)], last[:2])
        Q = Rotation.from_euler('ZX', [alpha, beta]).as_matrix().T @ R
        last = out[i] = np.array([alpha, beta, *_disc_angles(Q, last[2:])])
    return out


def _disc_angles(Q: Array, last: Array) -> Array:
    """(gamma, psi, phi) of Q = Rz Rx Ry; at psi = +-pi/2 only gamma +- phi is there, and phi keeps its last value."""
    slant = np.hypot(Q[2, 0], Q[2, 2])
    psi = np.arctan2(Q[2, 1], slant)
    if slant > ALMOST_STRAIGHT:
        gamma, phi = np.arctan2(-Q[0, 1], Q[1, 1]), np.arctan2(-Q[2, 0], Q[2, 2])
    else:
        phi = last[2]
        gamma = np.arctan2(Q[1, 0], Q[0, 0]) - np.copysign(phi, psi * phi)
    return _nearest([(gamma, psi, phi), (gamma + np.pi, np.pi - psi, phi + np.pi)], last)


def _nearest(choices: list[tuple[float, ...]], last: Array) -> Array:
    """The choice closest to the last angles, each angle moved by whole turns."""
    turned = [np.asarray(c) + 2.0 * np.pi * np.round((last - np.asarray(c)) / (2.0 * np.pi)) for c in choices]
    return min(turned, key=lambda c: float(np.sum((c - last) ** 2)))
