"""Gauss' function of an arc: quadratic in the proximal acceleration (al, a) and the accelerations of (u, v, h).

    wrench about the proximal origin = I (al, a) + N qdd + p          own forces = N^T (al, a) + H qdd + s

Stored as the tuple (I and p as in `articulated`, columns of N, upper triangle of H, s), in proximal axes. Each mass of
the arc adds its share; then the own accelerations are eliminated one by one.
"""

from __future__ import annotations

from . import vec3
from .articulated_inertia import push, reduced, shifted
from .vec3 import inline

# Below this fraction of the block's size a pivot is rounding, not inertia.
PIVOT_FLOOR = 1e-13


@inline
def outboard(art, tip, turn, move, bal, ba):
    """Share of all bodies behind the distal frame; art is about the distal origin, in proximal axes.

    turn, move: columns of the distal frame's angular and linear velocity; bal, ba: its velocity-product accelerations.
    """
    A, B, C, pn, pf = art
    n, f = push(A, B, C, bal, ba)
    pn, pf = vec3.add(pn, n), vec3.add(pf, f)
    nu, fu = push(A, B, C, turn[0], move[0])
    nv, fv = push(A, B, C, turn[1], move[1])
    nh, fh = vec3.rotate(B, move[2]), vec3.sym_dot(C, move[2])
    H = (
        vec3.dot(turn[0], nu) + vec3.dot(move[0], fu),
        vec3.dot(turn[0], nv) + vec3.dot(move[0], fv),
        vec3.dot(turn[0], nh) + vec3.dot(move[0], fh),
        vec3.dot(turn[1], nv) + vec3.dot(move[1], fv),
        vec3.dot(turn[1], nh) + vec3.dot(move[1], fh),
        vec3.dot(move[2], fh),
    )
    slope = (
        vec3.dot(turn[0], pn) + vec3.dot(move[0], pf),
        vec3.dot(turn[1], pn) + vec3.dot(move[1], pf),
        vec3.dot(move[2], pf),
    )
    columns = (
        (vec3.add(nu, vec3.cross(tip, fu)), fu),
        (vec3.add(nv, vec3.cross(tip, fv)), fv),
        (vec3.add(nh, vec3.cross(tip, fh)), fh),
    )
    return shifted(tip, (A, B, C, pn, pf)), columns, H, slope


@inline
def add_piece(quadratic, small, w):
    """Add one small body (see `placement.piece`) of an arc whose proximal frame turns with w."""
    art, ((nu, fu), (nv, fv), (nh, fh)), H, slope = quadratic
    A, B, C, pn, pf = art
    m, (p, (ku, kv, kh), velocity, bias), inertia, (bu, bv, spin, spin_bias) = small
    mu, mv, mh = vec3.scale(m, ku), vec3.scale(m, kv), vec3.scale(m, kh)
    iu, iv = vec3.sym_dot(inertia, bu), vec3.sym_dot(inertia, bv)
    ba = vec3.add(vec3.cross(w, vec3.cross(w, p)), vec3.add(bias, vec3.scale(2.0, vec3.cross(w, velocity))))
    bal, w_k = vec3.add(vec3.cross(w, spin), spin_bias), vec3.add(w, spin)
    force = vec3.scale(m, ba)
    couple = vec3.add(vec3.sym_dot(inertia, bal), vec3.cross(w_k, vec3.sym_dot(inertia, w_k)))
    A = vec3.sym_add(vec3.sym_add(A, inertia), vec3.point_inertia(m, p))
    B = vec3.add_rows(B, m, (0.0, -p[2], p[1], p[2], 0.0, -p[0], -p[1], p[0], 0.0))
    C = (C[0] + m, C[1], C[2], C[3] + m, C[4], C[5] + m)
    columns = (
        (vec3.add(nu, vec3.add(vec3.cross(p, mu), iu)), vec3.add(fu, mu)),
        (vec3.add(nv, vec3.add(vec3.cross(p, mv), iv)), vec3.add(fv, mv)),
        (vec3.add(nh, vec3.cross(p, mh)), vec3.add(fh, mh)),
    )
    H = (
        H[0] + vec3.dot(ku, mu) + vec3.dot(bu, iu),
        H[1] + vec3.dot(ku, mv) + vec3.dot(bu, iv),
        H[2] + vec3.dot(ku, mh),
        H[3] + vec3.dot(kv, mv) + vec3.dot(bv, iv),
        H[4] + vec3.dot(kv, mh),
        H[5] + vec3.dot(kh, mh),
    )
    slope = (
        slope[0] + vec3.dot(ku, force) + vec3.dot(bu, couple),
        slope[1] + vec3.dot(kv, force) + vec3.dot(bv, couple),
        slope[2] + vec3.dot(kh, force),
    )
    pn = vec3.add(pn, vec3.add(vec3.cross(p, force), couple))
    return (A, B, C, pn, vec3.add(pf, force)), columns, H, slope


@inline
def _free(art, column, pivot, drive):
    """Eliminate one acceleration: remaining inertia, and its rule y - U (al, a)."""
    n, f = column
    weight = 1.0 / pivot
    y = weight * drive
    A, B, C, pn, pf = reduced(art, n, f, weight)
    art = (A, B, C, vec3.add_scaled(pn, y, n), vec3.add_scaled(pf, y, f))
    return art, y, vec3.scale(weight, n), vec3.scale(weight, f)


@inline
def _less(column, share, other):
    """column - share other"""
    return vec3.add_scaled(column[0], -share, other[0]), vec3.add_scaled(column[1], -share, other[1])


@inline
def minimised(quadratic, force, extensible):
    """Eliminate (u, v[, h]); return (remaining inertia, three rules, their coupling, all pivots are valid).

    With the rules (y, n, f) and the coupling (uv, uh, vh), in the order h, v, u:
    qdd_h = y_h - (n_h, f_h).(al, a)   qdd_v = y_v - (n_v, f_v).(al, a) - vh qdd_h   and so on.
    """
    art, (cu, cv, ch), (huu, huv, huh, hvv, hvh, hhh), slope = quadratic
    size = huu + hvv
    uv, uh = huv / huu, huh / huu
    art, yu, nu, fu = _free(art, cu, huu, force[0] - slope[0])
    cv, ch = _less(cv, uv, cu), _less(ch, uh, cu)
    dv, dvh = hvv - uv * huv, hvh - uv * huh
    good = huu > PIVOT_FLOOR * size and dv > PIVOT_FLOOR * size
    art, yv, nv, fv = _free(art, cv, dv, force[1] - slope[1] - huv * yu)
    yh, nh, fh, vh = 0.0, vec3.ZERO, vec3.ZERO, 0.0
    if extensible:
        vh = dvh / dv
        dh = hhh - uh * huh - vh * dvh
        good = good and dh > PIVOT_FLOOR * hhh
        art, yh, nh, fh = _free(art, _less(ch, vh, cv), dh, force[2] - slope[2] - huh * yu - dvh * yv)
    return art, ((yu, nu, fu), (yv, nv, fv), (yh, nh, fh)), (uv, uh, vh), good
