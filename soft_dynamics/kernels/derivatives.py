"""Exact derivatives of inverse dynamics and the mass matrix, O(n^2), in the world frame.

Let S_j be the twist of coordinate j about the world's origin. For every body behind it, carried along with S_j,

    dV/dq_j = S_j'      dA/dq_j = S_j'' + S_j' x V      dV/dqd_j = S_j      dA/dqd_j = 2 S_j' + S_j x V

for any joint, because d/dt and d/dq_j commute. With the composite inertia I, products B and wrench F of all bodies
behind a coordinate (`spatial`), and i before j:

    dtau_i/dq_j = S_i.(I_j S_j'' + B_j S_j' + S_j x* F_j)      dtau_i/dqd_j = S_i.(2 I_j S_j' + B_j S_j)
    dtau_j/dq_i = I_j S_j . S_i'' + B_j^T S_j . S_i'           M_ij = S_i . I_j S_j

[Singh, for joints with constant axes; here also for arcs and their own masses]
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from . import spatial, vec3
from .arc_derivatives import Scratch, arc_columns, arc_inward
from .chain import ARC, NO_BODY, POINT_BODY, PRISMATIC, REVOLUTE
from .joints import on_axis
from .kinematics import IDENTITY, move, place
from .spatial import cross_twist, cross_wrench, inertia_times, plus, products_back, products_times, times
from .uncounted_array import borrowed
from .vec3 import COORDINATE_ROW, SD, SDD, Y1, Y2, Y3, ZZ, S, get3, get6, get9, inline, put3, put6, put9

# Columns of the row of an element: pose before the joint and behind it, twist and its derivative before and behind.
R0, P0, R1, P1, V0, A0, V1, A1, STATE = 0, 9, 12, 21, 24, 30, 36, 42, 48


@inline
def _outward(chain, x, v, vd, rows, states, scratch):
    """Poses, twists, and the twist columns with their two rates; gravity is an acceleration of the world."""
    R, p = IDENTITY, vec3.ZERO
    V = (vec3.ZERO, vec3.ZERO)
    A = (vec3.ZERO, (-chain[0].gx, -chain[0].gy, -chain[0].gz))
    for i in range(chain.size):
        e = chain[i]
        state = states[i]
        R, p = place(e, R, p)
        put9(state, R0, R)
        put3(state, P0, p)
        put6(state, V0, V)
        put6(state, A0, A)
        if e.kind == REVOLUTE or e.kind == PRISMATIC:
            axis = vec3.rotate(R, on_axis(e.axis, 1.0))
            s = (axis, vec3.cross(p, axis)) if e.kind == REVOLUTE else (vec3.ZERO, axis)
            sd = cross_twist(V, s)
            row = rows[e.iv]
            put6(row, S, s)
            put6(row, SD, sd)
            V_new = plus(V, times(v[e.iv], s))
            A = plus(A, plus(times(vd[e.iv], s), times(v[e.iv], sd)))
            put6(row, SDD, plus(cross_twist(A, s), cross_twist(V_new, sd)))
            V = V_new
        elif e.kind == ARC:
            V, A = arc_columns(e, x, v, vd, rows, R, p, V, A, scratch)
        R, p = move(e, x, R, p)
        put9(state, R1, R)
        put3(state, P1, p)
        put6(state, V1, V)
        put6(state, A1, A)


@inline
def _body(e, state):
    """The element's rigid body as a composite in the world."""
    R, p, V, A = get9(state, R1), get3(state, P1), get6(state, V1), get6(state, A1)
    if e.body == POINT_BODY:
        return spatial.point_body(e.m, p, V, A)
    h = vec3.rotate(R, (e.hx, e.hy, e.hz))
    J = vec3.sym_rotate(R, (e.I[0], e.I[1], e.I[2], e.I[3], e.I[4], e.I[5]))
    J = vec3.sym_add(J, vec3.sym_add(spatial.outer_sum(p, h), vec3.point_inertia(e.m, p)))
    return spatial.rigid_body(e.m, vec3.add_scaled(h, e.m, p), J, V, A)


@inline
def column_inward(row, c):
    """Effect of coordinate j on all elements before it, and their effect on j."""
    s, sd, sdd = get6(row, S), get6(row, SD), get6(row, SDD)
    put6(row, Y3, inertia_times(c, s))
    put6(row, Y2, plus(times(2.0, inertia_times(c, sd)), products_times(c, s)))
    put6(
        row,
        Y1,
        plus(plus(inertia_times(c, sdd), products_times(c, sd)), cross_wrench(s, (c[5], c[6]))),
    )
    put3(row, ZZ, products_back(c, s))


@inline
def _dot6(a, i, b, j):
    return (
        a[i] * b[j]
        + a[i + 1] * b[j + 1]
        + a[i + 2] * b[j + 2]
        + a[i + 3] * b[j + 3]
        + a[i + 4] * b[j + 4]
        + a[i + 5] * b[j + 5]
    )


@inline
def _dot3(a, i, b, j):
    return a[i] * b[j] + a[i + 1] * b[j + 1] + a[i + 2] * b[j + 2]


@inline
def _pairs(rows, first, j, dq, dv, M):
    """Entries between coordinate j and all coordinates of earlier elements, 0 .. first - 1."""
    b = rows[j]
    for i in range(first):
        a = rows[i]
        m = _dot6(a, S, b, Y3)
        M[i, j] = m
        M[j, i] = m
        dq[i, j] = _dot6(a, S, b, Y1)
        dv[i, j] = _dot6(a, S, b, Y2)
        dq[j, i] = _dot6(b, Y3, a, SDD) + _dot3(b, ZZ, a, SD)
        dv[j, i] = 2.0 * _dot6(b, Y3, a, SD) + _dot3(b, ZZ, a, S)


@inline
def _inward(chain, x, v, vd, external, rows, states, scratch, dq, dv, M):
    """Composites of all bodies behind each element, and the resulting entries of its coordinates."""
    c = spatial.EMPTY
    for i in range(chain.size - 1, -1, -1):
        e = chain[i]
        state = states[i]
        if e.body != NO_BODY:
            c = spatial.joined(c, _body(e, state))
        if external.shape[0] > 0:
            n, f = spatial.wrench_from(get9(state, R1), get3(state, P1), get6(external[i], 0))
            c = (c[0], c[1], c[2], c[3], c[4], vec3.sub(c[5], n), vec3.sub(c[6], f))
        if e.kind == REVOLUTE or e.kind == PRISMATIC:
            j = e.iv
            row = rows[j]
            column_inward(row, c)
            M[j, j] = _dot6(row, S, row, Y3)
            dq[j, j] = _dot6(row, S, row, Y1)
            dv[j, j] = _dot6(row, S, row, Y2)
        elif e.kind == ARC:
            R, p = get9(state, R0), get3(state, P0)
            V = spatial.twist_into(R, p, get6(state, V0))
            A = spatial.twist_into(R, p, get6(state, A0))
            c = arc_inward(e, x, v, vd, rows, R, p, V, A, c, scratch, dq, dv, M)
        for j in range(e.iv, e.iv + e.n):
            _pairs(rows, e.iv, j, dq, dv, M)
            if e.material:
                k = j - e.iv
                stretch = x[e.iq + k] - e.rest[k]
                dq[j, j] += e.k[k] + 3.0 * e.k3[k] * stretch * stretch
                dv[j, j] += e.d[k]


@inline
def _passes(chain, x, v, vd, external, rows, states, scratch, slopes):
    chain, x, v, vd, external = borrowed(chain), borrowed(x), borrowed(v), borrowed(vd), borrowed(external)
    rows, states = borrowed(rows), borrowed(states)
    scratch = Scratch(borrowed(scratch.columns), borrowed(scratch.change), borrowed(scratch.rows))
    dq, dv, M = borrowed(slopes[0]), borrowed(slopes[1]), borrowed(slopes[2])
    _outward(chain, x, v, vd, rows, states, scratch)
    _inward(chain, x, v, vd, external, rows, states, scratch, dq, dv, M)


@njit(cache=True, error_model='numpy')
def inverse_derivatives(chain, x, v, vd, external, dq, dv, M):
    """Write d(tau)/dq, d(tau)/dqd and M = d(tau)/dqdd of `inverse_dynamics` at a motion; each (nv, nv).

    `external` (N, 6) or (0, 6) is constant in the frames it acts on. Swing and ball joints are not supported.
    """
    rows, states = np.empty((v.size, COORDINATE_ROW)), np.empty((chain.size, STATE))
    scratch = Scratch(np.empty((4, 3, 3, 6)), np.empty((3, 3)), np.empty((3, COORDINATE_ROW)))
    _passes(chain, x, v, vd, external, rows, states, scratch, (dq, dv, M))


@njit(cache=True, error_model='numpy')
def cholesky(M):
    """Factor M = L L^T in place (lower part); return the index of the first bad pivot, or -1."""
    n = M.shape[0]
    for j in range(n):
        size = M[j, j]
        d = size
        for k in range(j):
            d -= M[j, k] * M[j, k]
        if not d > 1e-14 * size:
            return j
        d = math.sqrt(d)
        M[j, j] = d
        for i in range(j + 1, n):
            t = M[i, j]
            for k in range(j):
                t -= M[i, k] * M[j, k]
            M[i, j] = t / d
    return -1


@njit(cache=True, error_model='numpy')
def cholesky_solve(L, B):
    """Solve L L^T X = B in place, B (n, m) with its columns as right-hand sides."""
    n, m = B.shape
    for i in range(n):
        for k in range(i):
            t = L[i, k]
            for j in range(m):
                B[i, j] -= t * B[k, j]
        t = 1.0 / L[i, i]
        for j in range(m):
            B[i, j] *= t
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            t = L[k, i]
            for j in range(m):
                B[i, j] -= t * B[k, j]
        t = 1.0 / L[i, i]
        for j in range(m):
            B[i, j] *= t
