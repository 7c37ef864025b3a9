"""Articulated inertia of all bodies behind a frame: the wrench (n, f) as a function of acceleration.

    n = A al + B a + pn        f = B^T al + C a + pf          A, C symmetric

These are the Hessian and gradient of Gauss' function of the outboard chain, with its own accelerations eliminated.
A and C are Sym3 tuples, B a Mat3 tuple.
"""

from __future__ import annotations

from . import vec3
from .joints import on_axis, turn, turn_mat, turn_sym
from .vec3 import inline

NOTHING = (
    (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    vec3.ZERO,
    vec3.ZERO,
)


@inline
def row(B, i):
    return B[3 * i], B[3 * i + 1], B[3 * i + 2]


@inline
def push(A, B, C, al, a):
    """(A al + B a, B^T al + C a)"""
    return vec3.add(vec3.sym_dot(A, al), vec3.rotate(B, a)), vec3.add(
        vec3.rotate_back(B, al), vec3.sym_dot(C, a)
    )


@inline
def rotated(R, art):
    """The same in axes in which this frame is turned by R."""
    A, B, C, pn, pf = art
    B = vec3.matmul(vec3.matmul(R, B), vec3.transpose(R))
    return vec3.sym_rotate(R, A), B, vec3.sym_rotate(R, C), vec3.rotate(R, pn), vec3.rotate(R, pf)


@inline
def turned(axis, s, c, art):
    """`rotated` for a turn about a coordinate axis."""
    A, B, C, pn, pf = art
    return (
        turn_sym(axis, s, c, A),
        turn_mat(axis, s, c, B),
        turn_sym(axis, s, c, C),
        turn(axis, s, c, pn),
        turn(axis, s, c, pf),
    )


@inline
def shifted(r, art):
    """The same about a point that sees this frame's origin at r (same axes).

    B' = B + [r]C        A' = A - B[r] + [r]B'^T        n' = n + r x f
    """
    A, B, C, pn, pf = art
    c0, c1, c2 = (
        vec3.cross(r, (C[0], C[1], C[2])),
        vec3.cross(r, (C[1], C[3], C[4])),
        vec3.cross(r, (C[2], C[4], C[5])),
    )
    N = vec3.add_rows(B, 1.0, (c0[0], c1[0], c2[0], c0[1], c1[1], c2[1], c0[2], c1[2], c2[2]))
    b0, b1, b2 = vec3.cross(r, row(B, 0)), vec3.cross(r, row(B, 1)), vec3.cross(r, row(B, 2))
    n0, n1, n2 = vec3.cross(r, row(N, 0)), vec3.cross(r, row(N, 1)), vec3.cross(r, row(N, 2))
    A = (
        A[0] + b0[0] + n0[0],
        A[1] + b0[1] + n1[0],
        A[2] + b0[2] + n2[0],
        A[3] + b1[1] + n1[1],
        A[4] + b1[2] + n2[1],
        A[5] + b2[2] + n2[2],
    )
    return A, N, C, vec3.add(pn, vec3.cross(r, pf)), pf


@inline
def _shifted_z(d, art):
    A, B, C, pn, pf = art
    N = (
        B[0] - d * C[1],
        B[1] - d * C[3],
        B[2] - d * C[4],
        B[3] + d * C[0],
        B[4] + d * C[1],
        B[5] + d * C[2],
        B[6],
        B[7],
        B[8],
    )
    A = (
        A[0] - d * (B[1] + N[1]),
        A[1] + d * (B[0] - N[4]),
        A[2] - d * B[7],
        A[3] + d * (B[3] + N[3]),
        A[4] + d * B[6],
        A[5],
    )
    return A, N, C, (pn[0] - d * pf[1], pn[1] + d * pf[0], pn[2]), pf


@inline
def shifted_along(axis, d, art):
    """`shifted` along a coordinate axis."""
    if axis == 2:
        return _shifted_z(d, art)
    return shifted(on_axis(axis, d), art)


@inline
def add_body(e, w, art):
    """Add the element's rigid body, moving with angular velocity w."""
    A, B, C, pn, pf = art
    m = e.m
    C = (C[0] + m, C[1], C[2], C[3] + m, C[4], C[5] + m)
    if e.body == 1:
        return A, B, C, pn, pf
    hx, hy, hz = e.hx, e.hy, e.hz
    inertia = (e.I[0], e.I[1], e.I[2], e.I[3], e.I[4], e.I[5])
    B = vec3.add_rows(B, 1.0, (0.0, -hz, hy, hz, 0.0, -hx, -hy, hx, 0.0))
    pn = vec3.add(pn, vec3.cross(w, vec3.sym_dot(inertia, w)))
    pf = vec3.add(pf, vec3.cross(w, vec3.cross(w, (hx, hy, hz))))
    return vec3.sym_add(A, inertia), B, C, pn, pf


@inline
def reduced(art, un, uf, weight):
    """Inertia after elimination of a free coordinate with column (un, uf): I - weight U U^T."""
    A, B, C, pn, pf = art
    wn, wf = vec3.scale(weight, un), vec3.scale(weight, uf)
    A = (
        A[0] - wn[0] * un[0],
        A[1] - wn[0] * un[1],
        A[2] - wn[0] * un[2],
        A[3] - wn[1] * un[1],
        A[4] - wn[1] * un[2],
        A[5] - wn[2] * un[2],
    )
    B = (
        B[0] - wn[0] * uf[0],
        B[1] - wn[0] * uf[1],
        B[2] - wn[0] * uf[2],
        B[3] - wn[1] * uf[0],
        B[4] - wn[1] * uf[1],
        B[5] - wn[1] * uf[2],
        B[6] - wn[2] * uf[0],
        B[7] - wn[2] * uf[1],
        B[8] - wn[2] * uf[2],
    )
    C = (
        C[0] - wf[0] * uf[0],
        C[1] - wf[0] * uf[1],
        C[2] - wf[0] * uf[2],
        C[3] - wf[1] * uf[1],
        C[4] - wf[1] * uf[2],
        C[5] - wf[2] * uf[2],
    )
    return A, B, C, pn, pf


@inline
def pushed(art, al, a, un, uf, y):
    """Add to the gradient the terms of the accelerations (al, a) and of the coordinate's drive y (un, uf)."""
    A, B, C, pn, pf = art
    n, f = push(A, B, C, al, a)
    return A, B, C, vec3.add_scaled(vec3.add(pn, n), y, un), vec3.add_scaled(vec3.add(pf, f), y, uf)
