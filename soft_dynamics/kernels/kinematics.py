"""Poses, Jacobians and centreline of a chain, in the world frame."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ..geometry.so3 import quaternion_matrix
from . import arc, vec3
from .arc import entire
from .chain import ARC, ELEMENT, FIXED, PRISMATIC, REVOLUTE
from .joints import axis_matrix, on_axis
from .vec3 import get3, get9, inline

IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)


@inline
def place(e, R, p):
    """Pose of the joint of an element behind its fixed placement."""
    if e.shifted:
        p = vec3.add(p, vec3.rotate(R, (e.px, e.py, e.pz)))
    if e.turned:
        R = vec3.matmul(R, get9(e.R, 0))
    return R, p


@inline
def bend(e, x):
    """(u, v, h) of an arc element."""
    return x[e.iq], x[e.iq + 1], x[e.iq + 2] if e.n == 3 else e.length


@inline
def move(e, x, R, p):
    """Pose of the frame behind the joint, from the pose before it."""
    if e.kind == REVOLUTE:
        return vec3.matmul(R, axis_matrix(e.axis, math.sin(x[e.iq]), math.cos(x[e.iq]))), p
    if e.kind == PRISMATIC:
        return R, vec3.add(p, vec3.rotate(R, on_axis(e.axis, x[e.iq])))
    if e.kind == ARC:
        u, v, h = bend(e, x)
        f = entire(u * u + v * v)
        tip = (h * f[1] * v, -h * f[1] * u, h * f[0])
        return vec3.matmul(R, arc.rotation(u, v, f)), vec3.add(p, vec3.rotate(R, tip))
    if e.kind == FIXED:
        return R, p
    return vec3.matmul(R, quaternion_matrix(x[e.iq], x[e.iq + 1], x[e.iq + 2], x[e.iq + 3])), p


@njit(cache=True, error_model='numpy')
def poses(chain, x, out):
    """Write the pose of the frame behind every element: out (N, 4, 4)."""
    R, p = IDENTITY, vec3.ZERO
    for i in range(chain.size):
        R, p = place(chain[i], R, p)
        R, p = move(chain[i], x, R, p)
        for a in range(3):
            for b in range(3):
                out[i, a, b] = R[3 * a + b]
            out[i, a, 3] = p[a]
            out[i, 3, a] = 0.0
        out[i, 3, 3] = 1.0


@inline
def _column(out, k, n, f):
    for a in range(3):
        out[a, k] = n[a]
        out[3 + a, k] = f[a]


@njit(cache=True, error_model='numpy')
def jacobian(chain, x, target, out):
    """Write the 6 x nv Jacobian of the frame behind element `target`: angular first, world axes, at its origin."""
    frames = np.empty((chain.size, 4, 4))
    poses(chain, x, frames)
    tip = (frames[target, 0, 3], frames[target, 1, 3], frames[target, 2, 3])
    out[:, :] = 0.0
    R, p = IDENTITY, vec3.ZERO
    still = np.zeros(3)
    for i in range(target + 1):
        e = chain[i]
        R, p = place(e, R, p)
        R1, p1 = move(e, x, R, p)
        arm = vec3.sub(tip, p1)
        if e.kind == REVOLUTE:
            axis = vec3.rotate(R1, on_axis(e.axis, 1.0))
            _column(out, e.iv, axis, vec3.cross(axis, arm))
        elif e.kind == PRISMATIC:
            _column(out, e.iv, vec3.ZERO, vec3.rotate(R1, on_axis(e.axis, 1.0)))
        elif e.kind == ARC:
            q = bend(e, x)
            f = entire(q[0] * q[0] + q[1] * q[1])
            columns = arc.point_motion(1.0, q, vec3.ZERO, f)[1]
            wu, wv, _, _ = arc.turning(1.0, q, vec3.ZERO, f)
            turning = (vec3.rotate(R, wu), vec3.rotate(R, wv), get3(still, 0))
            for j in range(e.n):
                _column(
                    out,
                    e.iv + j,
                    turning[j],
                    vec3.add(vec3.rotate(R, columns[j]), vec3.cross(turning[j], arm)),
                )
        elif e.kind != FIXED:
            for j in range(e.n):
                axis = vec3.rotate(R1, on_axis(j, 1.0))
                _column(out, e.iv + j, axis, vec3.cross(axis, arm))
        R, p = R1, p1


@njit(cache=True, error_model='numpy')
def centerline(chain, x, base, lengths, s, out):
    """Write the points at the arc lengths s (rising) of a chain whose elements are `lengths` long; out (m, 3).

    The body starts behind the element `base`. Straight pieces run from the frame before an element to the frame behind
    it; arcs bend.
    """
    R, p = IDENTITY, vec3.ZERO
    start = 0.0
    k = 0
    for i in range(chain.size):
        e = chain[i]
        p0 = p
        R, p = place(e, R, p)
        before, p_before = R, p
        R, p = move(e, x, R, p)
        last = i == chain.size - 1
        while i > base and k < s.size and (s[k] <= start + lengths[i] or last):
            share = (s[k] - start) / lengths[i] if lengths[i] > 0.0 else 1.0
            if e.kind == ARC:
                u, v, h = bend(e, x)
                f = entire(share * share * (u * u + v * v))
                local = (h * share * share * f[1] * v, -h * share * share * f[1] * u, h * share * f[0])
                point = vec3.add(p_before, vec3.rotate(before, local))
            else:
                point = vec3.add_scaled(p0, share, vec3.sub(p, p0))
            out[k, 0], out[k, 1], out[k, 2] = point
            k += 1
        start += lengths[i]


@njit(cache=True, error_model='numpy')
def frames_and_jacobian(raw, elements, q, X, J):
    """Write the poses X (k, 4, 4) of the frames behind some elements and the Jacobian J (6, nv) of the last element's.

    raw: the numbers of a chain. Returns False if the result is not finite.
    """
    chain = raw.view(ELEMENT)
    every = np.empty((chain.size, 4, 4))
    poses(chain, q, every)
    for k in range(elements.size):
        X[k] = every[elements[k]]
    jacobian(chain, q, chain.size - 1, J)
    return math.isfinite(X.sum() + J.sum())
