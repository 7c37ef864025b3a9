"""Inverse dynamics of any chain: one outward and one inward pass, O(n).

Outward: angular velocity w, angular acceleration al and acceleration a of each frame's origin, in that frame, with
gravity as an upward acceleration of the base. Inward: the wrench (n, f) about each frame's origin, projected on the
joint by virtual work. [Jensen, eq. 11-18 with 12 and 14 corrected] [Wang, algorithm 1]
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ..geometry.so3 import quaternion_matrix
from . import arc, vec3
from .arc import entire
from .arc_mass import piece, piece_count
from .chain import ARC, BALL, FIXED, NO_BODY, POINT_BODY, PRISMATIC, REVOLUTE, RIGID_BODY, SWING
from .joints import centripetal, component, cross_axis, plus_axis, turn
from .uncounted_array import borrowed
from .vec3 import get3, get9, inline, put3, put9, sincos

# Columns of the workspace row of an element.
_N, _F, _R, _TIP, _TURN, _MOVE, _OWN_N, _OWN_F, _OWN_TAU, WIDTH = 0, 3, 6, 15, 18, 24, 33, 36, 39, 42
ONE_AXIS_WIDTH = 8  # width for chains of one-axis joints


@inline
def shift_out(p, w, al, a):
    """Acceleration of the point p of a moving frame: a + al x p + w x (w x p)."""
    return vec3.add(a, vec3.add(vec3.cross(al, p), vec3.cross(w, vec3.cross(w, p))))


@inline
def arc_coordinates(e, q, v):
    """((u, v, h), (ud, vd, hd)) of an arc element."""
    if e.n == 3:
        return (q[e.iq], q[e.iq + 1], q[e.iq + 2]), (v[e.iv], v[e.iv + 1], v[e.iv + 2])
    return (q[e.iq], q[e.iq + 1], e.length), (v[e.iv], v[e.iv + 1], 0.0)


@inline
def relative_acceleration(w, motion, columns_qdd):
    """2 w x v + bias + J qdd of a point moving in a turning frame."""
    _, _, velocity, bias = motion
    return vec3.add(vec3.add(vec3.scale(2.0, vec3.cross(w, velocity)), bias), columns_qdd)


@inline
def columns_times(columns, x):
    a, b, c = columns
    return (
        a[0] * x[0] + b[0] * x[1] + c[0] * x[2],
        a[1] * x[0] + b[1] * x[1] + c[1] * x[2],
        a[2] * x[0] + b[2] * x[1] + c[2] * x[2],
    )


@inline
def two_columns_times(a, b, x):
    return a[0] * x[0] + b[0] * x[1], a[1] * x[0] + b[1] * x[1], a[2] * x[0] + b[2] * x[1]


@inline
def _arc_own(e, row, f, q, qd, qdd, w, al, a):
    """Wrench about the proximal origin and generalised force of the arc's own mass, into the workspace row."""
    n_own, f_own = vec3.ZERO, vec3.ZERO
    tu, tv, th = 0.0, 0.0, 0.0
    for k in range(piece_count(e.placement, e.points)):
        m, motion, inertia, turning = piece(e, k, q, qd, f)
        r, columns = motion[0], motion[1]
        acc = vec3.add(shift_out(r, w, al, a), relative_acceleration(w, motion, columns_times(columns, qdd)))
        force = vec3.scale(m, acc)
        wu, wv, spin, spin_bias = turning
        w_k = vec3.add(w, spin)
        al_k = vec3.add(
            vec3.add(al, vec3.cross(w, spin)), vec3.add(spin_bias, two_columns_times(wu, wv, qdd))
        )
        couple = vec3.add(vec3.sym_dot(inertia, al_k), vec3.cross(w_k, vec3.sym_dot(inertia, w_k)))
        n_own = vec3.add(n_own, vec3.add(vec3.cross(r, force), couple))
        f_own = vec3.add(f_own, force)
        tu += vec3.dot(columns[0], force) + vec3.dot(wu, couple)
        tv += vec3.dot(columns[1], force) + vec3.dot(wv, couple)
        th += vec3.dot(columns[2], force)
    put3(row, _OWN_N, n_own)
    put3(row, _OWN_F, f_own)
    put3(row, _OWN_TAU, (tu, tv, th))


@inline
def _arc_out(e, row, x, v, vd, w, al, a):
    """Propagate (w, al, a) through an arc; store its own mass and the terms of the inward pass in the workspace row."""
    q, qd = arc_coordinates(e, x, v)
    qdd = (vd[e.iv], vd[e.iv + 1], vd[e.iv + 2] if e.n == 3 else 0.0)
    f = entire(q[0] * q[0] + q[1] * q[1])
    _arc_own(e, row, f, q, qd, qdd, w, al, a)
    motion = arc.point_motion(1.0, q, qd, f)
    wu, wv, spin, spin_bias = arc.turning(1.0, q, qd, f)
    R = arc.rotation(q[0], q[1], f)
    r, columns = motion[0], motion[1]
    put9(row, _R, R)
    put3(row, _TIP, r)
    put3(row, _TURN, wu)
    put3(row, _TURN + 3, wv)
    put3(row, _MOVE, columns[0])
    put3(row, _MOVE + 3, columns[1])
    put3(row, _MOVE + 6, columns[2])
    a = vec3.add(shift_out(r, w, al, a), relative_acceleration(w, motion, columns_times(columns, qdd)))
    al = vec3.add(vec3.add(al, vec3.cross(w, spin)), vec3.add(spin_bias, two_columns_times(wu, wv, qdd)))
    w = vec3.add(w, spin)
    return vec3.rotate_back(R, w), vec3.rotate_back(R, al), vec3.rotate_back(R, a)


@inline
def _arc_in(e, row, n, f, tau):
    """Move the wrench from the distal to the proximal origin and write the arc's generalised forces."""
    R = get9(row, _R)
    n, f = vec3.rotate(R, n), vec3.rotate(R, f)
    for j in range(2):
        tau[e.iv + j] = (
            vec3.dot(get3(row, _TURN + 3 * j), n) + vec3.dot(get3(row, _MOVE + 3 * j), f) + row[_OWN_TAU + j]
        )
    if e.n == 3:
        tau[e.iv + 2] = vec3.dot(get3(row, _MOVE + 6), f) + row[_OWN_TAU + 2]
    n = vec3.add(vec3.add(n, vec3.cross(get3(row, _TIP), f)), get3(row, _OWN_N))
    return n, vec3.add(f, get3(row, _OWN_F))


@inline
def _body_wrench(e, w, al, a):
    """(n, f) about the frame's origin that the element's rigid body requires."""
    f = vec3.scale(e.m, a)
    h = (e.hx, e.hy, e.hz)
    inertia = (e.I[0], e.I[1], e.I[2], e.I[3], e.I[4], e.I[5])
    f = vec3.add(f, vec3.add(vec3.cross(al, h), vec3.cross(w, vec3.cross(w, h))))
    n = vec3.add(vec3.sym_dot(inertia, al), vec3.cross(w, vec3.sym_dot(inertia, w)))
    return vec3.add(n, vec3.cross(h, a)), f


@inline
def material_force(e, x, v, j):
    """Spring and damper force of coordinate j of an element; orientations have dampers only."""
    if not e.material:
        return 0.0
    force = e.d[j] * v[e.iv + j]
    if e.kind != SWING and e.kind != BALL:
        stretch = x[e.iq + j] - e.rest[j]
        force += stretch * (e.k[j] + e.k3[j] * stretch * stretch)
    return force


@inline
def _ball_out(e, row, x, v, vd, w, al, a):
    """Propagate (w, al, a) through a swing or ball joint."""
    R = quaternion_matrix(x[e.iq], x[e.iq + 1], x[e.iq + 2], x[e.iq + 3])
    put9(row, _R, R)
    w, al, a = vec3.rotate_back(R, w), vec3.rotate_back(R, al), vec3.rotate_back(R, a)
    k = e.iv
    rate = (v[k], v[k + 1], v[k + 2] if e.kind == BALL else 0.0)
    rate_d = (vd[k], vd[k + 1], vd[k + 2] if e.kind == BALL else 0.0)
    al = vec3.add(vec3.add(al, rate_d), vec3.cross(w, rate))
    return vec3.add(w, rate), al, a


@inline
def _out(chain, x, v, vd, work):
    """Pass 1: motions, base to tip, and the wrench that each rigid body requires."""
    w, al, a = vec3.ZERO, vec3.ZERO, (-chain[0].gx, -chain[0].gy, -chain[0].gz)
    for i in range(chain.size):
        e = chain[i]
        row = work[i]
        if e.shifted:
            a = shift_out((e.px, e.py, e.pz), w, al, a)
        if e.turned:
            R = get9(e.R, 0)
            w, al, a = vec3.rotate_back(R, w), vec3.rotate_back(R, al), vec3.rotate_back(R, a)
        if e.kind == REVOLUTE:
            s, c = sincos(x[e.iq])
            row[_R], row[_R + 1] = s, c
            w, al, a = turn(e.axis, -s, c, w), turn(e.axis, -s, c, al), turn(e.axis, -s, c, a)
            al = plus_axis(e.axis, vec3.add(al, cross_axis(e.axis, w, v[e.iv])), vd[e.iv])
            w = plus_axis(e.axis, w, v[e.iv])
        elif e.kind == PRISMATIC:
            d = x[e.iq]
            swing = vec3.add(cross_axis(e.axis, al, d), centripetal(e.axis, w, d))
            a = vec3.add(vec3.add(a, swing), cross_axis(e.axis, w, 2.0 * v[e.iv]))
            a = plus_axis(e.axis, a, vd[e.iv])
        elif e.kind == ARC:
            w, al, a = _arc_out(e, row, x, v, vd, w, al, a)
        elif e.kind != FIXED:
            w, al, a = _ball_out(e, row, x, v, vd, w, al, a)
        if e.body == POINT_BODY:
            put3(row, _F, vec3.scale(e.m, a))
        elif e.body == RIGID_BODY:
            n, f = _body_wrench(e, w, al, a)
            put3(row, _N, n)
            put3(row, _F, f)


@inline
def _in(chain, x, v, external, work, tau):
    """Pass 2: wrenches, tip to base, and their projections on the joints; return the wrench of the ground."""
    n, f = vec3.ZERO, vec3.ZERO
    for i in range(chain.size - 1, -1, -1):
        e = chain[i]
        row = work[i]
        if e.body != NO_BODY:
            f = vec3.add(f, get3(row, _F))
            if e.body == RIGID_BODY:
                n = vec3.add(n, get3(row, _N))
        if external.shape[0] > 0:
            n, f = vec3.sub(n, get3(external[i], 0)), vec3.sub(f, get3(external[i], 3))
        if e.kind == REVOLUTE:
            tau[e.iv] = component(e.axis, n)
            n, f = turn(e.axis, row[_R], row[_R + 1], n), turn(e.axis, row[_R], row[_R + 1], f)
        elif e.kind == PRISMATIC:
            tau[e.iv] = component(e.axis, f)
            n = vec3.sub(n, cross_axis(e.axis, f, x[e.iq]))
        elif e.kind == ARC:
            n, f = _arc_in(e, row, n, f, tau)
        elif e.kind != FIXED:
            tau[e.iv], tau[e.iv + 1] = n[0], n[1]
            if e.kind == BALL:
                tau[e.iv + 2] = n[2]
            R = get9(row, _R)
            n, f = vec3.rotate(R, n), vec3.rotate(R, f)
        if e.material:
            for j in range(e.n):
                tau[e.iv + j] += material_force(e, x, v, j)
        if e.turned:
            R = get9(e.R, 0)
            n, f = vec3.rotate(R, n), vec3.rotate(R, f)
        if e.shifted:
            n = vec3.add(n, vec3.cross((e.px, e.py, e.pz), f))
    return n, f


@inline
def workspace(chain):
    """Scratch memory of `inverse_dynamics_in`."""
    return np.empty((chain.size, ONE_AXIS_WIDTH if chain[0].one_axis else WIDTH))


@njit(cache=True, error_model='numpy')
def inverse_dynamics(chain, x, v, vd, external, tau):
    """`inverse_dynamics_in` with its own scratch memory."""
    return inverse_dynamics_in(chain, x, v, vd, external, workspace(chain), tau)


@njit(cache=True, error_model='numpy')
def inverse_dynamics_in(chain, x, v, vd, external, work, tau):
    """Write the generalised forces of a motion into tau; return the wrench (n, f) the ground exerts, in world axes.

    tau = M(q) vd + c(q, v) + g(q) + k(q) + D v - sum J^T external
    Shapes: chain (N,), x (nx,), v, vd, tau (nv,), external (N, 6) or (0, 6): wrench (n, f) on each element's frame,
    about its origin and in its axes. The returned wrench is about the world's origin.
    """
    chain, x, v, vd = borrowed(chain), borrowed(x), borrowed(v), borrowed(vd)
    external, work, tau = borrowed(external), borrowed(work), borrowed(tau)
    _out(chain, x, v, vd, work)
    return _in(chain, x, v, external, work, tau)
