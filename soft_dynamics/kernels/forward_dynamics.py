"""Forward dynamics of any chain by the articulated-body recursion, O(n), without a mass matrix.

Pass 1, outward: angular velocities and velocity-product accelerations. Pass 2, inward: eliminate each element's own
accelerations from Gauss' function and pass the remaining 6x6 quadratic to the parent. Pass 3, outward: accelerations.
The own mass of an arc moves with neither of its frames, so it enters the quadratic function of (proximal acceleration,
own accelerations) directly. [Featherstone, ch. 7, generalised]
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ..geometry.so3 import quaternion_matrix
from . import arc, arc_elimination, vec3
from .arc import entire
from .arc_elimination import PIVOT_FLOOR
from .arc_mass import piece, piece_count
from .articulated_inertia import (
    NOTHING,
    add_body,
    push,
    pushed,
    reduced,
    rotated,
    row,
    shifted,
    shifted_along,
    turned,
)
from .chain import ARC, BALL, FIXED, NO_BODY, PRISMATIC, REVOLUTE
from .inverse_dynamics import (
    arc_coordinates,
    columns_times,
    material_force,
    shift_out,
    two_columns_times,
)
from .joints import centripetal, component, cross_axis, plus_axis, turn
from .uncounted_array import borrowed
from .vec3 import get3, get9, inline, put3, put9, sincos

# Columns of the workspace row: rotation, angular velocity before and behind the joint, velocity-product
# accelerations, the rules (y; n, f) of up to three coordinates, and an arc's tip, columns and coupling.
_R, _W0, _W, _BAL, _BA, _Y, _U, _TIP, _TURN, _MOVE, _LINK, WIDTH = (
    0,
    9,
    12,
    15,
    18,
    21,
    24,
    42,
    45,
    51,
    60,
    63,
)

OK = -1


@inline
def _arc_out(e, r, x, v, w):
    q, qd = arc_coordinates(e, x, v)
    f = entire(q[0] * q[0] + q[1] * q[1])
    tip, columns, velocity, bias = arc.point_motion(1.0, q, qd, f)
    wu, wv, spin, spin_bias = arc.turning(1.0, q, qd, f)
    swing = vec3.cross(w, vec3.cross(w, tip))
    put3(r, _BA, vec3.add(vec3.add(swing, bias), vec3.scale(2.0, vec3.cross(w, velocity))))
    put3(r, _BAL, vec3.add(vec3.cross(w, spin), spin_bias))
    put3(r, _TIP, tip)
    put3(r, _TURN, wu)
    put3(r, _TURN + 3, wv)
    put3(r, _MOVE, columns[0])
    put3(r, _MOVE + 3, columns[1])
    put3(r, _MOVE + 6, columns[2] if e.n == 3 else vec3.ZERO)
    R = arc.rotation(q[0], q[1], f)
    put9(r, _R, R)
    return vec3.rotate_back(R, vec3.add(w, spin))


@inline
def _out(chain, x, v, work):
    """Pass 1: rotations, angular velocities and the accelerations they cause."""
    w = vec3.ZERO
    for i in range(chain.size):
        e = chain[i]
        r = work[i]
        if e.turned:
            w = vec3.rotate_back(get9(e.R, 0), w)
        put3(r, _W0, w)
        if e.kind == REVOLUTE:
            s, c = sincos(x[e.iq])
            r[_R], r[_R + 1] = s, c
            w = turn(e.axis, -s, c, w)
            put3(r, _BAL, cross_axis(e.axis, w, v[e.iv]))
            w = plus_axis(e.axis, w, v[e.iv])
        elif e.kind == PRISMATIC:
            swing = centripetal(e.axis, w, x[e.iq])
            put3(r, _BA, vec3.add(swing, cross_axis(e.axis, w, 2.0 * v[e.iv])))
        elif e.kind == ARC:
            w = _arc_out(e, r, x, v, w)
        elif e.kind != FIXED:
            R = quaternion_matrix(x[e.iq], x[e.iq + 1], x[e.iq + 2], x[e.iq + 3])
            put9(r, _R, R)
            w = vec3.rotate_back(R, w)
            rate = (v[e.iv], v[e.iv + 1], v[e.iv + 2] if e.kind == BALL else 0.0)
            put3(r, _BAL, vec3.cross(w, rate))
            w = vec3.add(w, rate)
        put3(r, _W, w)


@inline
def _column(S, k):
    """Column k of a symmetric matrix."""
    if k == 0:
        return S[0], S[1], S[2]
    return (S[1], S[3], S[4]) if k == 1 else (S[2], S[4], S[5])


@inline
def _put_rule(r, k, y, n, f):
    r[_Y + k] = y
    put3(r, _U + 6 * k, n)
    put3(r, _U + 6 * k + 3, f)


@inline
def _rule(r, k, al, a):
    """Acceleration of coordinate k under the frame acceleration (al, a): y - (n, f).(al, a)"""
    return r[_Y + k] - vec3.dot(get3(r, _U + 6 * k), al) - vec3.dot(get3(r, _U + 6 * k + 3), a)


@inline
def _one_axis_in(e, r, art, force, qdd):
    """Eliminate (or, if prescribed, drive) a one-axis joint; return (remaining inertia, pivot is valid)."""
    A, B, C, pn, pf = art
    k = e.axis
    if e.kind == REVOLUTE:
        un, uf = _column(A, k), row(B, k)
        pivot, slope, size = component(k, un), component(k, pn), A[0] + A[3] + A[5]
        bal, ba = get3(r, _BAL), vec3.ZERO
    else:
        un, uf = (B[k], B[3 + k], B[6 + k]), _column(C, k)
        pivot, slope, size = component(k, uf), component(k, pf), C[0] + C[3] + C[5]
        bal, ba = vec3.ZERO, get3(r, _BA)
    if e.prescribed:
        return pushed(art, bal, ba, un, uf, qdd), True
    weight = 1.0 / pivot
    y = weight * (force - slope)
    _put_rule(r, 0, y, vec3.scale(weight, un), vec3.scale(weight, uf))
    return pushed(reduced(art, un, uf, weight), bal, ba, un, uf, y), pivot > PIVOT_FLOOR * size


@inline
def _ball_in(e, r, art, force):
    """Eliminate the two or three body rates of a swing or ball joint, one at a time."""
    A, B, C, pn, pf = art
    floor = PIVOT_FLOOR * (A[0] + A[3] + A[5])
    good = True
    for k in range(e.n):
        un, uf = _column(A, k), row(B, k)
        pivot = component(k, un)
        good = good and pivot > floor
        weight = 1.0 / pivot
        y = weight * (component(k, force) - component(k, pn))
        _put_rule(r, k, y, vec3.scale(weight, un), vec3.scale(weight, uf))
        A, B, C, pn, pf = reduced((A, B, C, pn, pf), un, uf, weight)
        pn, pf = vec3.add_scaled(pn, y, un), vec3.add_scaled(pf, y, uf)
    n, f = push(A, B, C, get3(r, _BAL), vec3.ZERO)
    return rotated(get9(r, _R), (A, B, C, vec3.add(pn, n), vec3.add(pf, f))), good


@inline
def _arc_in(e, r, x, v, art, force):
    """Collect Gauss' function of an arc and eliminate its own accelerations."""
    q, qd = arc_coordinates(e, x, v)
    move = (get3(r, _MOVE), get3(r, _MOVE + 3), get3(r, _MOVE + 6))
    turn_columns = (get3(r, _TURN), get3(r, _TURN + 3))
    art = rotated(get9(r, _R), art)
    quadratic = arc_elimination.outboard(art, get3(r, _TIP), turn_columns, move, get3(r, _BAL), get3(r, _BA))
    f = entire(q[0] * q[0] + q[1] * q[1])
    for k in range(piece_count(e.placement, e.points)):
        quadratic = arc_elimination.add_piece(quadratic, piece(e, k, q, qd, f), get3(r, _W0))
    art, rules, link, good = arc_elimination.minimised(quadratic, force, e.n == 3)
    _put_rule(r, 0, *rules[0])
    _put_rule(r, 1, *rules[1])
    _put_rule(r, 2, *rules[2])
    put3(r, _LINK, link)
    return art, good


@inline
def _in(chain, x, v, tau, external, vd, work):
    """Pass 2; returns OK or the index of the first element whose coordinate moves no mass."""
    art = NOTHING
    for i in range(chain.size - 1, -1, -1):
        e = chain[i]
        r = work[i]
        if e.body != NO_BODY:
            art = add_body(e, get3(r, _W), art)
        if external.shape[0] > 0:
            A, B, C, pn, pf = art
            art = (A, B, C, vec3.sub(pn, get3(external[i], 0)), vec3.sub(pf, get3(external[i], 3)))
        f0 = tau[e.iv] - material_force(e, x, v, 0) if e.n > 0 else 0.0
        good = True
        if e.kind == REVOLUTE:
            art, good = _one_axis_in(e, r, art, f0, vd[e.iv])
            art = turned(e.axis, r[_R], r[_R + 1], art)
        elif e.kind == PRISMATIC:
            art, good = _one_axis_in(e, r, art, f0, vd[e.iv])
            art = shifted_along(e.axis, x[e.iq], art)
        elif e.kind != FIXED:
            f1 = tau[e.iv + 1] - material_force(e, x, v, 1)
            f2 = tau[e.iv + 2] - material_force(e, x, v, 2) if e.n == 3 else 0.0
            if e.kind == ARC:
                art, good = _arc_in(e, r, x, v, art, (f0, f1, f2))
            else:
                art, good = _ball_in(e, r, art, (f0, f1, f2))
        if not good:
            return i
        if e.turned:
            art = rotated(get9(e.R, 0), art)
        if e.shifted:
            p, w = (e.px, e.py, e.pz), get3(work[i - 1], _W) if i > 0 else vec3.ZERO
            art = pushed(art, vec3.ZERO, vec3.cross(w, vec3.cross(w, p)), vec3.ZERO, vec3.ZERO, 0.0)
            art = shifted(p, art)
    return OK


@inline
def _arc_accelerate(e, r, al, a, vd):
    uv, uh, vh = get3(r, _LINK)
    qdd_h = _rule(r, 2, al, a) if e.n == 3 else 0.0
    qdd_v = _rule(r, 1, al, a) - vh * qdd_h
    qdd_u = _rule(r, 0, al, a) - uv * qdd_v - uh * qdd_h
    vd[e.iv], vd[e.iv + 1] = qdd_u, qdd_v
    if e.n == 3:
        vd[e.iv + 2] = qdd_h
    qdd = (qdd_u, qdd_v, qdd_h)
    move = columns_times((get3(r, _MOVE), get3(r, _MOVE + 3), get3(r, _MOVE + 6)), qdd)
    turning = two_columns_times(get3(r, _TURN), get3(r, _TURN + 3), qdd)
    a = vec3.add(vec3.add(a, vec3.cross(al, get3(r, _TIP))), vec3.add(get3(r, _BA), move))
    al = vec3.add(al, vec3.add(get3(r, _BAL), turning))
    R = get9(r, _R)
    return vec3.rotate_back(R, al), vec3.rotate_back(R, a)


@inline
def _accelerate(chain, x, vd, work):
    """Pass 3: accelerations from the rules, base to tip."""
    al, a = vec3.ZERO, (-chain[0].gx, -chain[0].gy, -chain[0].gz)
    for i in range(chain.size):
        e = chain[i]
        r = work[i]
        if e.shifted:
            a = shift_out((e.px, e.py, e.pz), get3(work[i - 1], _W) if i > 0 else vec3.ZERO, al, a)
        if e.turned:
            al, a = vec3.rotate_back(get9(e.R, 0), al), vec3.rotate_back(get9(e.R, 0), a)
        if e.kind == REVOLUTE:
            al, a = turn(e.axis, -r[_R], r[_R + 1], al), turn(e.axis, -r[_R], r[_R + 1], a)
            al = vec3.add(al, get3(r, _BAL))
            if not e.prescribed:
                vd[e.iv] = _rule(r, 0, al, a)
            al = plus_axis(e.axis, al, vd[e.iv])
        elif e.kind == PRISMATIC:
            a = vec3.add(vec3.add(a, cross_axis(e.axis, al, x[e.iq])), get3(r, _BA))
            if not e.prescribed:
                vd[e.iv] = _rule(r, 0, al, a)
            a = plus_axis(e.axis, a, vd[e.iv])
        elif e.kind == ARC:
            al, a = _arc_accelerate(e, r, al, a, vd)
        elif e.kind != FIXED:
            al, a = vec3.rotate_back(get9(r, _R), al), vec3.rotate_back(get9(r, _R), a)
            al = vec3.add(al, get3(r, _BAL))
            for k in range(e.n - 1, -1, -1):
                vd[e.iv + k] = _rule(r, k, al, a)
                al = plus_axis(k, al, vd[e.iv + k])


@inline
def _passes(chain, x, v, tau, external, vd, work):
    chain, x, v, tau = borrowed(chain), borrowed(x), borrowed(v), borrowed(tau)
    external, vd, work = borrowed(external), borrowed(vd), borrowed(work)
    _out(chain, x, v, work)
    status = _in(chain, x, v, tau, external, vd, work)
    if status == OK:
        _accelerate(chain, x, vd, work)
    return status


@njit(cache=True, error_model='numpy')
def forward_dynamics(chain, x, v, tau, external, vd):
    """Write the accelerations under the generalised forces tau into vd; return OK or the element that failed.

    Shapes as in `inverse_dynamics`. For prescribed coordinates, vd is an input and tau is ignored.
    """
    return _passes(chain, x, v, tau, external, vd, np.empty((chain.size, WIDTH)))
