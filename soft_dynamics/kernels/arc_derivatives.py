"""Part of `derivatives` for arcs: columns in the world, and derivatives of the arc's own block.

The distal frame and every piece of the arc's own mass have their own columns on the arc's coordinates. A point mass is
a body that translates relative to the proximal frame; a rotary inertia is a body that turns about the proximal origin.
All quantities in this file are in the proximal frame, about its origin.

A jet is (value, first, second time derivative). The derivatives of inverse dynamics need each column of an arc's twist
with its first two rates, and its derivative with respect to another coordinate, which is the rate of a motion along
that coordinate.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from . import arc, spatial, vec3
from .arc import Entire, entire, first_derivatives, second_derivatives, third_derivatives
from .arc_mass import disc_inertia, piece_count
from .chain import DISTRIBUTED, GAUSS_NODES, GAUSS_WEIGHTS, LUMPED
from .spatial import (
    cross_twist,
    cross_wrench,
    inertia_times,
    plus,
    product,
    products_back,
    products_times,
    times,
)
from .vec3 import SD, SDD, Y1, Y2, Y3, ZZ, S, get3, get6, inline, put3, put6

Jet = tuple[float, float, float]


@inline
def _mul(a: Jet, b: Jet) -> Jet:
    return a[0] * b[0], a[0] * b[1] + a[1] * b[0], a[0] * b[2] + 2.0 * a[1] * b[1] + a[2] * b[0]


@inline
def _add(a: Jet, b: Jet) -> Jet:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@inline
def _scale(s: float, a: Jet) -> Jet:
    return s * a[0], s * a[1], s * a[2]


@inline
def _of(f0: float, f1: float, f2: float, y: Jet) -> Jet:
    """Jet of f(y) from f and its first two derivatives."""
    return f0, f1 * y[1], f2 * y[1] * y[1] + f1 * y[2]


@inline
def _cross(a, b):
    return (
        _add(_mul(a[1], b[2]), _scale(-1.0, _mul(a[2], b[1]))),
        _add(_mul(a[2], b[0]), _scale(-1.0, _mul(a[0], b[2]))),
        _add(_mul(a[0], b[1]), _scale(-1.0, _mul(a[1], b[0]))),
    )


@inline
def _moving_columns(q, shape, g, k):
    """Position and columns of r = h (a g(y) v, -a g(y) u, b k(y)), y = c x; g, k with three derivatives."""
    u, v, h = q
    a, b, c = shape
    y = _scale(c, _add(_mul(u, u), _mul(v, v)))
    G = _scale(a, _of(g[0], g[1], g[2], y))
    G1 = _scale(2.0 * a * c, _of(g[1], g[2], g[3], y))
    K = _scale(b, _of(k[0], k[1], k[2], y))
    K1 = _scale(2.0 * b * c, _of(k[1], k[2], k[3], y))
    hG, hG1, hK1 = _mul(h, G), _mul(h, G1), _mul(h, K1)
    cross = _mul(hG1, _mul(u, v))
    along_u = (cross, _scale(-1.0, _add(_mul(hG1, _mul(u, u)), hG)), _mul(hK1, u))
    along_v = (_add(_mul(hG1, _mul(v, v)), hG), _scale(-1.0, cross), _mul(hK1, v))
    along_h = (_mul(G, v), _scale(-1.0, _mul(G, u)), K)
    r = (_mul(hG, v), _scale(-1.0, _mul(hG, u)), _mul(h, K))
    return r, (along_u, along_v, along_h)


@inline
def point_columns(s, q, f: Entire):
    """Jets of the centreline point at the fraction s and of its columns; f at s^2 x."""
    d, dd, ddd = first_derivatives(f), second_derivatives(f), third_derivatives(f)
    g, k = (f[1], d[1], dd[1], ddd[1]), (f[0], d[0], dd[0], ddd[0])
    return _moving_columns(q, (s * s, s, s * s), g, k)


@inline
def centroid_columns(q, f: Entire):
    """Jets of the centroid and of its columns; f at x."""
    d, dd, ddd = first_derivatives(f), second_derivatives(f), third_derivatives(f)
    g, k = (f[2], d[2], dd[2], ddd[2]), (f[1], d[1], dd[1], ddd[1])
    return _moving_columns(q, (1.0, 1.0, 1.0), g, k)


@inline
def turning_columns(s, q, f: Entire):
    """Jets of the two columns of the angular velocity at the fraction s; f at s^2 x."""
    u, v, _ = q
    s2, s3 = s * s, s * s * s
    d, dd = first_derivatives(f), second_derivatives(f)
    y = _scale(s2, _add(_mul(u, u), _mul(v, v)))
    f2 = _scale(s2, _of(f[1], d[1], dd[1], y))
    f3 = _scale(s3, _of(f[2], d[2], dd[2], y))
    uv = _mul(f3, _mul(u, v))
    whole = (s, 0.0, 0.0)
    along_u = (_add(whole, _scale(-1.0, _mul(f3, _mul(v, v)))), uv, _scale(-1.0, _mul(f2, v)))
    along_v = (uv, _add(whole, _scale(-1.0, _mul(f3, _mul(u, u)))), _mul(f2, u))
    return along_u, along_v


@inline
def less_cross(a, b, r):
    """a - b x r on jets: velocity of a body at the origin, from that at r."""
    c = _cross(b, r)
    return _add(a[0], _scale(-1.0, c[0])), _add(a[1], _scale(-1.0, c[1])), _add(a[2], _scale(-1.0, c[2]))


DISTAL, MASS, TURN = range(3)


class Scratch(NamedTuple):
    """Scratch memory for one arc."""

    # (4, 3, 3, 6): columns of three coordinates with two rates, along the motion and along each coordinate alone
    columns: Any
    change: Any  # (3, 3): couple from the change of a part's own inertia with a coordinate, in addition to its rotation
    rows: Any  # (3, COORDINATE_ROW): the arc's rows in the proximal frame


@inline
def _put_jet(row, k, a):
    """Write three jets to columns k, k + 1, k + 2 of one row per order."""
    x, y, z = a
    put3(row[0], k, (x[0], y[0], z[0]))
    put3(row[1], k, (x[1], y[1], z[1]))
    put3(row[2], k, (x[2], y[2], z[2]))


@inline
def _put_twist(row, turn, move):
    _put_jet(row, 0, turn)
    _put_jet(row, 3, move)


@inline
def _columns_along(part, s, q, f, whole, out):
    """Twist columns of one part of the arc and their two rates along the motion q (jets), into out (3, 3, 6).

    `whole` is true for the lumped and point masses, which sit at the centroid; f at s^2 x.
    """
    still = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    if part == MASS:
        along_u, along_v, along_h = centroid_columns(q, f)[1] if whole else point_columns(s, q, f)[1]
        _put_twist(out[0], still, along_u)
        _put_twist(out[1], still, along_v)
        _put_twist(out[2], still, along_h)
        return
    wu, wv = turning_columns(s, q, f)
    if part == TURN:
        _put_twist(out[0], wu, still)
        _put_twist(out[1], wv, still)
        _put_twist(out[2], still, still)
        return
    r, (along_u, along_v, along_h) = point_columns(s, q, f)
    _put_twist(out[0], wu, less_cross(along_u, wu, r))
    _put_twist(out[1], wv, less_cross(along_v, wv, r))
    _put_twist(out[2], still, along_h)


@inline
def _motion(e, x, v, vd):
    """Jets of (u, v, h) along the motion."""
    k, i = e.iq, e.iv
    h = (x[k + 2], v[i + 2], vd[i + 2]) if e.n == 3 else (e.length, 0.0, 0.0)
    return (x[k], v[i], vd[i]), (x[k + 1], v[i + 1], vd[i + 1]), h


@inline
def _along(q, j):
    """Jets of the motion along coordinate j alone."""
    return (
        (q[0][0], 1.0 if j == 0 else 0.0, 0.0),
        (q[1][0], 1.0 if j == 1 else 0.0, 0.0),
        (q[2][0], 1.0 if j == 2 else 0.0, 0.0),
    )


@inline
def _columns(part, s, q, f, whole, n, out):
    """`_columns_along` the motion into out[0] and along coordinate j alone into out[1 + j]; out (4, 3, 3, 6)."""
    for k in range(1 + n):
        _columns_along(part, s, q if k == 0 else _along(q, k - 1), f, whole, out[k])


@inline
def _carry(columns, n, q, V, A):
    """Twist and its derivative of a part, from those of the proximal frame."""
    rel = (vec3.ZERO, vec3.ZERO)
    rel_d = (vec3.ZERO, vec3.ZERO)
    for j in range(n):
        s, sd = get6(columns[j, 0], 0), get6(columns[j, 1], 0)
        rate, rate_d = q[j][1], q[j][2]
        rel = plus(rel, times(rate, s))
        rel_d = plus(rel_d, plus(times(rate, sd), times(rate_d, s)))
    return plus(V, rel), plus(A, plus(rel_d, cross_twist(V, rel)))


@inline
def _rates(columns, j, V, A):
    """(S, S', S'') of column j, carried by the proximal frame."""
    s, sd, sdd = get6(columns[j, 0], 0), get6(columns[j, 1], 0), get6(columns[j, 2], 0)
    total_d = plus(cross_twist(V, s), sd)
    total_dd = plus(plus(cross_twist(A, s), cross_twist(V, plus(total_d, sd))), sdd)
    return s, total_d, total_dd


@inline
def arc_columns(e, x, v, vd, rows, R, p, V_W, A_W, scratch):
    """Write the world columns of the distal frame into the rows of the arc's coordinates; return its (V, A)."""
    q = _motion(e, x, v, vd)
    columns = scratch.columns[0]
    _columns_along(DISTAL, 1.0, q, entire(q[0][0] * q[0][0] + q[1][0] * q[1][0]), False, columns)
    V, A = spatial.twist_into(R, p, V_W), spatial.twist_into(R, p, A_W)
    for j in range(e.n):
        s, sd, sdd = _rates(columns, j, V, A)
        row = rows[e.iv + j]
        put6(row, S, spatial.twist_from(R, p, s))
        put6(row, SD, spatial.twist_from(R, p, sd))
        put6(row, SDD, spatial.twist_from(R, p, sdd))
    V, A = _carry(columns, e.n, q, V, A)
    return spatial.twist_from(R, p, V), spatial.twist_from(R, p, A)


@inline
def _add_part(e, V, A, c, scratch, dq, dv, M):
    """Add one part with composite c and the columns in `scratch` to the arc's own rows and own block."""
    columns, F = scratch.columns[0], (c[5], c[6])
    for j in range(e.n):
        s, sd, sdd = _rates(columns, j, V, A)
        y3 = inertia_times(c, s)
        y2 = plus(times(2.0, inertia_times(c, sd)), products_times(c, s))
        y1 = plus(plus(inertia_times(c, sdd), products_times(c, sd)), cross_wrench(s, F))
        y1 = plus(y1, (get3(scratch.change[j], 0), vec3.ZERO))
        row, slopes = scratch.rows[j], scratch.columns[1 + j]
        put6(row, Y1, plus(get6(row, Y1), y1))
        put6(row, Y2, plus(get6(row, Y2), y2))
        put6(row, Y3, plus(get6(row, Y3), y3))
        put3(row, ZZ, vec3.add(get3(row, ZZ), products_back(c, s)))
        for i in range(e.n):
            s_i = get6(columns[i, 0], 0)
            M[e.iv + i, e.iv + j] += product(s_i, y3)
            dv[e.iv + i, e.iv + j] += product(s_i, y2)
            dq[e.iv + i, e.iv + j] += product(s_i, y1) + product(get6(slopes[i, 1], 0), F)


@inline
def _inertia_change(e, q, f, columns, w, al, change):
    """Wrench from the dependence of the lumped inertia on the bend, for each coordinate."""
    J = arc.lumped_inertia(e.arc_mass, e.radius, q, f)
    slopes = arc.lumped_inertia_slopes(e.arc_mass, e.radius, q, f)
    for j in range(e.n):
        a = get3(columns[j, 0], 0)
        on_al = vec3.sub(
            vec3.sym_dot(slopes[j], al),
            vec3.sub(vec3.cross(a, vec3.sym_dot(J, al)), vec3.sym_dot(J, vec3.cross(a, al))),
        )
        on_w = vec3.sub(
            vec3.sym_dot(slopes[j], w),
            vec3.sub(vec3.cross(a, vec3.sym_dot(J, w)), vec3.sym_dot(J, vec3.cross(a, w))),
        )
        put3(change[j], 0, vec3.add(on_al, vec3.cross(w, on_w)))


@inline
def _piece_of(e, k):
    """(fraction of the length, mass) of piece k; lumped and point placements have one piece for the whole length."""
    if e.placement == DISTRIBUTED:
        return GAUSS_NODES[e.points, k], e.arc_mass * GAUSS_WEIGHTS[e.points, k]
    return 1.0, e.arc_mass


@inline
def _own_mass(e, q, V, A, scratch, dq, dv, M):
    """Add all pieces of the arc's own mass; return their composite."""
    total, value, whole = spatial.EMPTY, (q[0][0], q[1][0], q[2][0]), e.placement != DISTRIBUTED
    columns = scratch.columns[0]
    for k in range(piece_count(e.placement, e.points)):
        s, m = _piece_of(e, k)
        f = entire(s * s * (value[0] * value[0] + value[1] * value[1]))
        motion = (
            arc.centroid_motion(value, vec3.ZERO, f) if whole else arc.point_motion(s, value, vec3.ZERO, f)
        )
        _columns(MASS, s, q, f, whole, e.n, scratch.columns)
        V_k, A_k = _carry(columns, e.n, q, V, A)
        c = spatial.point_body(m, motion[0], V_k, A_k)
        _add_part(e, V, A, c, scratch, dq, dv, M)
        total = spatial.joined(total, c)
        if whole and e.placement != LUMPED:
            continue
        _columns(TURN, s, q, f, whole, e.n, scratch.columns)
        V_k, A_k = _carry(columns, e.n, q, V, A)
        if whole:
            inertia = arc.lumped_inertia(m, e.radius, value, f)
            _inertia_change(e, value, f, columns, V_k[0], A_k[0], scratch.change)
        else:
            inertia = disc_inertia(m, e.radius, arc.tangent(s, value[0], value[1], f))
        c = spatial.rotary_body(inertia, V_k[0], A_k[0])
        _add_part(e, V, A, c, scratch, dq, dv, M)
        total = spatial.joined(total, c)
    return total


@inline
def arc_inward(e, x, v, vd, rows, R, p, V, A, outboard_W, scratch, dq, dv, M):
    """Compute the arc's rows and own block from the composite behind it; return the composite including the arc's mass.

    R, p: pose of the proximal frame; V, A: its twist and the derivative, in that frame.
    """
    q = _motion(e, x, v, vd)
    scratch.change[:, :] = 0.0
    scratch.rows[:, :] = 0.0
    k = e.iv
    dq[k : k + e.n, k : k + e.n] = 0.0
    dv[k : k + e.n, k : k + e.n] = 0.0
    M[k : k + e.n, k : k + e.n] = 0.0
    f = entire(q[0][0] * q[0][0] + q[1][0] * q[1][0])
    _columns(DISTAL, 1.0, q, f, False, e.n, scratch.columns)
    _add_part(e, V, A, spatial.composite_into(R, p, outboard_W), scratch, dq, dv, M)
    own = _own_mass(e, q, V, A, scratch, dq, dv, M)
    for j in range(e.n):
        row, local = rows[k + j], scratch.rows[j]
        put6(row, Y1, spatial.wrench_from(R, p, get6(local, Y1)))
        put6(row, Y2, spatial.wrench_from(R, p, get6(local, Y2)))
        put6(row, Y3, spatial.wrench_from(R, p, get6(local, Y3)))
        put3(row, ZZ, vec3.rotate(R, get3(local, ZZ)))
    return spatial.joined(outboard_W, spatial.composite_from(R, p, own))
