"""Convert the state of a disc on a thread: five angles, or two quaternions and body rates for integration.

The angles (alpha, beta, gamma, psi, phi) of the joints z, x, z, x, y have no inertia for alpha at beta = 0 or pi and
for gamma = phi at psi = +-pi/2 [Schultz, sec. V]. The quaternions P of the thread and B of the disc relative to the
thread, with two thread rates (w1, w2, no spin) and three disc rates, have inertia in every pose.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from ..array import Array

ANGLES, QUATERNIONS, RATES = 5, 8, 5
ALMOST_STRAIGHT = 1e-7  # [rad] closer to a singular pose, alpha and phi of a motion keep their last values
FINE, MOST_PARTS = (
    1e-3,
    16,
)  # [s] spacing of the points along which the angles of a motion are continued, and their largest number


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
    """Joint angles (count, 5) of quaternions (count, 8), continued sample by sample from the angles `start` (5,)."""
    P = Rotation.from_quat(quaternions[:, :4])
    whole = (P * Rotation.from_quat(quaternions[:, 4:])).as_matrix()
    return of_poses(P.as_matrix()[:, :, 2], whole, start)


def of_poses(thread: Array, whole: Array, start: Array, almost: float = ALMOST_STRAIGHT) -> Array:
    """Joint angles (count, 5) of thread directions (count, 3) and disc rotations (count, 3, 3).

    Each angle is computed from the remaining rotation, so that the angles give the pose to full precision even near
    singular poses. Within `almost` [rad] of a singular pose, alpha and phi keep their previous values.
    """
    first, (x, y, z) = np.asarray(start, float), thread.T
    bend = np.hypot(x, y)
    alpha = _held(np.arctan2(x, -y), bend > almost, first[0])
    angles = _continued(np.stack([alpha, np.arctan2(bend, z)], 1), first[:2], _other_thread)
    Q = np.swapaxes(_rotation('ZX', angles).as_matrix(), 1, 2) @ whole
    return np.concatenate([angles, zxy_angles(Q, first[2:], almost)], 1)


def angles_of_motion(t: Array, quaternions: Array, rates: Array, start: Array) -> Array:
    """`to_angles` of a motion over the times t (count,), continued also between its samples.

    A thread that passes close to the straight pose turns alpha by almost pi within a short time. A pass through the
    straight pose (same alpha, -beta) gives the same samples; a cubic through samples and rates distinguishes them.
    """
    parts = int(np.clip(np.ceil(np.diff(t).max(initial=0.0) / FINE), 1, MOST_PARTS))
    s = np.arange(parts)[:, None] / parts
    before, after = quaternions[:-1, None], quaternions[1:, None]
    h = np.diff(t)[:, None, None]
    out, back = (
        h * _quaternion_rates(quaternions, rates)[:-1, None],
        h * _quaternion_rates(quaternions, rates)[1:, None],
    )
    way = (1.0 + 2.0 * s) * (1.0 - s) ** 2 * before + s**2 * (3.0 - 2.0 * s) * after
    way = way + s * (1.0 - s) ** 2 * out + s**2 * (s - 1.0) * back
    fine = np.concatenate([way.reshape(-1, QUATERNIONS), quaternions[-1:]])
    return to_angles(fine, start)[::parts]


def _quaternion_rates(quaternions: Array, rates: Array) -> Array:
    """Half of quaternion times body rate, of thread and disc."""
    w = np.insert(rates, 2, 0.0, axis=1).reshape(-1, 2, 3)  # the thread has no spin
    q = quaternions.reshape(-1, 2, 4)
    imaginary, real = q[:, :, :3], q[:, :, 3:]
    turned = real * w + np.cross(imaginary, w)
    rate = 0.5 * np.concatenate([turned, -np.sum(imaginary * w, 2, keepdims=True)], 2)
    return np.asarray(rate.reshape(-1, QUATERNIONS))


def zxy_angles(Q: Array, start: Array, almost: float = ALMOST_STRAIGHT) -> Array:
    """(gamma, psi, phi) of Q = Rz Rx Ry; at psi = +-pi/2 only gamma +- phi is defined, and phi keeps its last value."""
    slant = np.hypot(Q[:, 2, 0], Q[:, 2, 2])
    phi = _held(np.arctan2(-Q[:, 2, 0], Q[:, 2, 2]), slant > almost, start[2])
    x, y, _ = (Q[:, :, 0] * np.cos(phi)[:, None] + Q[:, :, 2] * np.sin(phi)[:, None]).T  # of Q Ry^T = Rz Rx
    angles = np.stack([np.arctan2(y, x), np.arctan2(Q[:, 2, 1], slant), phi], 1)
    return _continued(angles, start, _other_disc)


def _other_thread(angles: Array) -> Array:
    """The second set of angles of the same thread."""
    return np.stack([angles[:, 0] + np.pi, -angles[:, 1]], 1)


def _other_disc(angles: Array) -> Array:
    """The second set of angles of the same disc."""
    return np.stack([angles[:, 0] + np.pi, np.pi - angles[:, 1], angles[:, 2] + np.pi], 1)


def _held(angle: Array, clear: NDArray[np.bool_], start: float) -> Array:
    """Replace undefined angles (count,) by the last defined one, or by `start`."""
    last = np.maximum.accumulate(np.where(clear, np.arange(1, angle.size + 1), 0))
    return np.asarray(np.concatenate([[start], angle])[last])


def _continued(angles: Array, start: Array, other: Callable[[Array], Array]) -> Array:
    """Choose each of the angles (count, k), or their second set, modulo 2 pi, closest to the previous ones.

    `other` preserves distances, so the choice does not depend on the set chosen before.
    """
    given = np.concatenate([start[None], angles])
    others = other(given)
    stay, change = (np.sum(_wrapped(b[1:] - given[:-1]) ** 2, 1) for b in (given, others))
    changed = np.cumsum(np.concatenate([[0], change < stay])) % 2 == 1
    chosen = np.where(changed[:, None], others, given)
    turns = np.cumsum(np.round(np.diff(chosen, axis=0) / (2.0 * np.pi)), axis=0)
    return np.asarray(chosen[1:] - 2.0 * np.pi * turns)


def _wrapped(angle: Array) -> Array:
    """Wrap angles to -pi to pi."""
    return np.asarray(angle - 2.0 * np.pi * np.round(angle / (2.0 * np.pi)))
