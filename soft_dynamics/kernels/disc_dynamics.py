"""Dynamics of discs in their angles, computed in the regular form, which is accurate near a straight thread.

With five hinges, alpha and gamma turn about almost the same axis near beta = 0. The part of alpha is then a small
difference of large numbers, and the error of its acceleration grows like 1/beta^2. This module computes with swing and
ball joints instead. With b = B^T e_z, a = Ry(phi)^T e_x, and the spin s = (cos beta - 1) alpha',

    (w1, w2) = Rz(alpha) (beta', sin beta alpha')       w_disc = b (s + gamma') + a psi' + e_y phi'

and forces follow by virtual work. The thread of the chain has no spin, so its axes turn by -s relative to P(alpha,
beta). This holds for axis angles [Schultz, sec. II]. For zxz angles, gamma is smaller by alpha, s = cos beta alpha',
and the force on alpha additionally contains that on gamma. `zxz` (discs,) is 1 for zxz angles and 0 for axis angles.
The rates are those of `geometry.disc_angles`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit, prange

from . import vec3
from .arc_elimination import PIVOT_FLOOR
from .disc_springs import spring_forces_regular
from .forward_dynamics import OK, forward_dynamics
from .inverse_dynamics import inverse_dynamics
from .vec3 import get3, inline, put3, sincos


class Discs(NamedTuple):
    """A chain in its regular form, without dampers; springs and the first rate of each; the angles of each disc."""

    chain: Any
    springs: Any
    first: Any
    zxz: Any


@inline
def _axes(q, qd, k):
    """(sin, cos) of alpha, beta, psi and phi of the disc whose angles start at k; its axes a, b and their rates."""
    sines = sincos(q[k]), sincos(q[k + 1]), sincos(q[k + 3]), sincos(q[k + 4])
    (s_psi, c_psi), (s_phi, c_phi) = sines[2], sines[3]
    psi_d, phi_d = qd[k + 3], qd[k + 4]
    a, a_d = (c_phi, 0.0, s_phi), (-s_phi * phi_d, 0.0, c_phi * phi_d)
    b = (-s_phi * c_psi, s_psi, c_phi * c_psi)
    b_d = (
        s_phi * s_psi * psi_d - c_phi * c_psi * phi_d,
        c_psi * psi_d,
        -s_phi * c_psi * phi_d - c_phi * s_psi * psi_d,
    )
    return sines, (a, a_d), (b, b_d)


@inline
def _less_cosine(angle):
    """1 - cos(angle), to full precision."""
    s, _ = sincos(0.5 * angle)
    return 2.0 * s * s


@njit(cache=True, error_model='numpy')
def regular_state(zxz, q, qd, x, v):
    """Write quaternions x (8 a disc) and body rates v (5 a disc) of angles q and their rates qd (5 a disc)."""
    for k in range(0, q.size, 5):
        ((sa, ca), (sb, _), _, _), (a, _), (b, _) = _axes(q, qd, k)
        i = 8 * (k // 5)
        sh, ch = sincos(0.5 * q[k + 1])
        x[i], x[i + 1], x[i + 2], x[i + 3] = sh * ca, sh * sa, 0.0, ch
        (sg, cg), (sp, cp), (sf, cf) = (
            sincos(0.5 * (q[k + 2] + zxz[k // 5] * q[k])),
            sincos(0.5 * q[k + 3]),
            sincos(0.5 * q[k + 4]),
        )
        # Rz(gamma) Rx(psi) Ry(phi)
        x[i + 4], x[i + 5] = cg * sp * cf - sg * cp * sf, cg * cp * sf + sg * sp * cf
        x[i + 6], x[i + 7] = cg * sp * sf + sg * cp * cf, cg * cp * cf - sg * sp * sf
        across = sb * qd[k]
        v[k], v[k + 1] = ca * qd[k + 1] - sa * across, sa * qd[k + 1] + ca * across
        turn = qd[k + 2] - (_less_cosine(q[k + 1]) - zxz[k // 5]) * qd[k]
        w = vec3.add_scaled(vec3.scale(turn, b), qd[k + 3], a)
        put3(v, k + 2, (w[0], w[1] + qd[k + 4], w[2]))


@njit(cache=True, error_model='numpy')
def regular_accelerations(zxz, q, qd, qdd, v, vd):
    """Write the body accelerations vd of the accelerations qdd of the angles; v as by `regular_state`."""
    for k in range(0, q.size, 5):
        ((sa, ca), (sb, cb), _, _), (a, a_d), (b, b_d) = _axes(q, qd, k)
        alpha_d, beta_d, less = qd[k], qd[k + 1], _less_cosine(q[k + 1]) - zxz[k // 5]
        across = sb * qdd[k] + cb * beta_d * alpha_d
        vd[k] = ca * qdd[k + 1] - sa * across - cb * alpha_d * v[k + 1]
        vd[k + 1] = sa * qdd[k + 1] + ca * across + cb * alpha_d * v[k]
        turn_d = qdd[k + 2] - less * qdd[k] - sb * beta_d * alpha_d
        w_d = vec3.add_scaled(vec3.scale(turn_d, b), qd[k + 2] - less * alpha_d, b_d)
        w_d = vec3.add_scaled(vec3.add_scaled(w_d, qdd[k + 3], a), qd[k + 3], a_d)
        put3(vd, k + 2, (w_d[0], w_d[1] + qdd[k + 4], w_d[2]))


@njit(cache=True, error_model='numpy')
def angle_accelerations(zxz, q, qd, v, vd, qdd):
    """Undo `regular_accelerations`; return OK, or the first angle that moves no mass."""
    for k in range(0, q.size, 5):
        ((sa, ca), (sb, cb), (s_psi, c_psi), (s_phi, c_phi)), (a, a_d), (_, b_d) = _axes(q, qd, k)
        if not sb * sb > PIVOT_FLOOR:
            return k
        if not c_psi * c_psi > PIVOT_FLOOR:
            return k + 2
        alpha_d, beta_d, less = qd[k], qd[k + 1], _less_cosine(q[k + 1]) - zxz[k // 5]
        w1_d, w2_d = vd[k] + cb * alpha_d * v[k + 1], vd[k + 1] - cb * alpha_d * v[k]
        qdd[k] = (ca * w2_d - sa * w1_d - cb * beta_d * alpha_d) / sb
        qdd[k + 1] = ca * w1_d + sa * w2_d
        w_d = vec3.add_scaled(get3(vd, k + 2), less * alpha_d - qd[k + 2], b_d)
        w_d = vec3.add_scaled(w_d, -qd[k + 3], a_d)
        turn_d = (c_phi * w_d[2] - s_phi * w_d[0]) / c_psi
        qdd[k + 2] = turn_d + less * qdd[k] + sb * beta_d * alpha_d
        qdd[k + 3] = vec3.dot(a, w_d)
        qdd[k + 4] = w_d[1] - s_psi * turn_d
    return OK


@njit(cache=True, error_model='numpy')
def angle_forces(zxz, q, qd, force, tau):
    """Write the generalised forces tau on the angles of forces on the body rates."""
    for k in range(0, q.size, 5):
        ((sa, ca), (sb, _), _, _), (a, _), (b, _) = _axes(q, qd, k)
        on_disc = get3(force, k + 2)
        tau[k + 2], tau[k + 3], tau[k + 4] = vec3.dot(b, on_disc), vec3.dot(a, on_disc), on_disc[1]
        tau[k] = sb * (ca * force[k + 1] - sa * force[k]) - _less_cosine(q[k + 1]) * tau[k + 2]
        tau[k] += zxz[k // 5] * tau[k + 2]
        tau[k + 1] = ca * force[k] + sa * force[k + 1]


@njit(cache=True, error_model='numpy')
def regular_forces(zxz, q, qd, tau, force):
    """Undo `angle_forces`, where no angle is singular."""
    for k in range(0, q.size, 5):
        ((sa, ca), (sb, _), (s_psi, c_psi), (s_phi, c_phi)), _, _ = _axes(q, qd, k)
        # Near a straight thread the first difference is exact, and the product small.
        across = ((tau[k] - zxz[k // 5] * tau[k + 2]) + _less_cosine(q[k + 1]) * tau[k + 2]) / sb
        force[k], force[k + 1] = ca * tau[k + 1] - sa * across, sa * tau[k + 1] + ca * across
        along = (tau[k + 2] - s_psi * tau[k + 4]) / c_psi
        force[k + 2], force[k + 3] = c_phi * tau[k + 3] - s_phi * along, tau[k + 4]
        force[k + 4] = s_phi * tau[k + 3] + c_phi * along


@njit(cache=True, error_model='numpy')
def inverse_discs(discs, q, qd, qdd, external, tau):
    """`inverse.inverse_dynamics` in the angles, with the springs between the discs."""
    n = q.size
    x, v, vd, force = np.empty(8 * (n // 5)), np.empty(n), np.empty(n), np.empty(n)
    regular_state(discs.zxz, q, qd, x, v)
    regular_accelerations(discs.zxz, q, qd, qdd, v, vd)
    ground = inverse_dynamics(discs.chain, x, v, vd, external, force)
    spring_forces_regular(discs.springs, discs.first, x, force)
    angle_forces(discs.zxz, q, qd, force, tau)
    return ground


@njit(cache=True, error_model='numpy')
def forward_discs(discs, q, qd, tau, external, qdd):
    """`forward.forward_dynamics` in the angles; returns OK, or the first angle that moves no mass."""
    n = q.size
    x, v, vd, force, springs = np.empty(8 * (n // 5)), np.empty(n), np.zeros(n), np.empty(n), np.zeros(n)
    regular_state(discs.zxz, q, qd, x, v)
    regular_forces(discs.zxz, q, qd, tau, force)
    spring_forces_regular(discs.springs, discs.first, x, springs)
    for j in range(n):
        force[j] -= springs[j]
    forward_dynamics(discs.chain, x, v, force, external, vd)
    return angle_accelerations(discs.zxz, q, qd, v, vd, qdd)


@njit(cache=True, parallel=True, error_model='numpy')
def inverse_discs_many(discs, q, qd, qdd, external, tau, ground):
    """`inverse_discs` of many states in parallel; external (count, N, 6) or (count, 0, 6); ground (count, 6)."""
    chain, springs, first, zxz = discs
    for i in prange(q.shape[0]):
        n, f = inverse_discs(Discs(chain, springs, first, zxz), q[i], qd[i], qdd[i], external[i], tau[i])
        put3(ground[i], 0, n)
        put3(ground[i], 3, f)


@njit(cache=True, parallel=True, error_model='numpy')
def forward_discs_many(discs, q, qd, tau, external, qdd, status):
    """`forward_discs` of many states in parallel; status (count,)"""
    chain, springs, first, zxz = discs
    for i in prange(q.shape[0]):
        status[i] = forward_discs(Discs(chain, springs, first, zxz), q[i], qd[i], tau[i], external[i], qdd[i])
