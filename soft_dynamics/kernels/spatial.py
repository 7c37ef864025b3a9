"""Spatial vectors as pairs of tuples, angular first, about one fixed origin, and composites of moving bodies.

A twist is (w, v), a wrench (n, f). A composite has the sums over bodies that the derivatives of inverse dynamics need:

    inertia   m, h (first moment), J (about the origin)
    products  P (linear momentum) and N (3x3): a change of twist with angular part a changes the wrench by
              (N a, 2 a x P) through the velocity products. For point masses N a = sum 2 m c x (a x c_dot).
    wrench    (n, f), the sum over all bodies
"""

from __future__ import annotations

from . import vec3
from .vec3 import inline

EMPTY = (
    0.0,
    vec3.ZERO,
    (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    vec3.ZERO,
    (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    vec3.ZERO,
    vec3.ZERO,
)


@inline
def plus(a, b):
    return vec3.add(a[0], b[0]), vec3.add(a[1], b[1])


@inline
def times(s, a):
    return vec3.scale(s, a[0]), vec3.scale(s, a[1])


@inline
def product(a, b):
    """Power of a wrench on a twist."""
    return vec3.dot(a[0], b[0]) + vec3.dot(a[1], b[1])


@inline
def cross_twist(a, b):
    """Change of a twist b carried along with a: a x b"""
    return vec3.cross(a[0], b[0]), vec3.add(vec3.cross(a[0], b[1]), vec3.cross(a[1], b[0]))


@inline
def cross_wrench(a, b):
    """Change of a wrench b carried along with a: a x* b"""
    return vec3.add(vec3.cross(a[0], b[0]), vec3.cross(a[1], b[1])), vec3.cross(a[0], b[1])


@inline
def inertia_times(c, a):
    """Wrench that gives the composite c the acceleration a."""
    return (
        vec3.add(vec3.sym_dot(c[2], a[0]), vec3.cross(c[1], a[1])),
        vec3.add(vec3.scale(c[0], a[1]), vec3.cross(a[0], c[1])),
    )


@inline
def products_times(c, a):
    """Change of the velocity products of c when all its twists change by a (and the frames are carried along)."""
    return vec3.rotate(c[4], a[0]), vec3.scale(2.0, vec3.cross(a[0], c[3]))


@inline
def products_back(c, s):
    """The vector z with z.a = s.products_times(a)."""
    return vec3.add(vec3.rotate_back(c[4], s[0]), vec3.scale(2.0, vec3.cross(c[3], s[1])))


@inline
def joined(a, b):
    return (
        a[0] + b[0],
        vec3.add(a[1], b[1]),
        vec3.sym_add(a[2], b[2]),
        vec3.add(a[3], b[3]),
        vec3.add_rows(a[4], 1.0, b[4]),
        vec3.add(a[5], b[5]),
        vec3.add(a[6], b[6]),
    )


@inline
def outer_sum(a, b):
    """2 a.b 1 - a b^T - b a^T as a symmetric matrix."""
    d = 2.0 * vec3.dot(a, b)
    return (
        d - 2.0 * a[0] * b[0],
        -a[0] * b[1] - a[1] * b[0],
        -a[0] * b[2] - a[2] * b[0],
        d - 2.0 * a[1] * b[1],
        -a[1] * b[2] - a[2] * b[1],
        d - 2.0 * a[2] * b[2],
    )


@inline
def point_body(m, c, V, A):
    """A point mass at c, moving with the twist V and its derivative A."""
    c_dot = vec3.add(V[1], vec3.cross(V[0], c))
    acceleration = vec3.add(vec3.add(A[1], vec3.cross(A[0], c)), vec3.cross(V[0], c_dot))
    f = vec3.scale(m, acceleration)
    along, k = 2.0 * m * vec3.dot(c, c_dot), -2.0 * m
    N = (
        along + k * c_dot[0] * c[0],
        k * c_dot[0] * c[1],
        k * c_dot[0] * c[2],
        k * c_dot[1] * c[0],
        along + k * c_dot[1] * c[1],
        k * c_dot[1] * c[2],
        k * c_dot[2] * c[0],
        k * c_dot[2] * c[1],
        along + k * c_dot[2] * c[2],
    )
    return m, vec3.scale(m, c), vec3.point_inertia(m, c), vec3.scale(m, c_dot), N, vec3.cross(c, f), f


@inline
def rotary_body(J, w, al):
    """A rotary inertia without mass: n = J al + w x J w."""
    L = vec3.sym_dot(J, w)
    columns = (
        _rotary_product(J, L, w, (1.0, 0.0, 0.0)),
        _rotary_product(J, L, w, (0.0, 1.0, 0.0)),
        _rotary_product(J, L, w, (0.0, 0.0, 1.0)),
    )
    x, y, z = columns
    N = (x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2])
    return 0.0, vec3.ZERO, J, vec3.ZERO, N, vec3.add(vec3.sym_dot(J, al), vec3.cross(w, L)), vec3.ZERO


@inline
def _rotary_product(J, L, w, a):
    """J (a x w) + a x J w + w x J a"""
    return vec3.add(
        vec3.sym_dot(J, vec3.cross(a, w)), vec3.add(vec3.cross(a, L), vec3.cross(w, vec3.sym_dot(J, a)))
    )


@inline
def rigid_body(m, h, J, V, A):
    """A rigid body with first moment h and inertia J about the origin: its point mass plus the inertia about it."""
    if m == 0.0:
        return rotary_body(J, V[0], A[0])
    c = vec3.scale(1.0 / m, h)
    about_com = vec3.sym_add(J, vec3.point_inertia(-m, c))
    return joined(point_body(m, c, V, A), rotary_body(about_com, V[0], A[0]))


@inline
def composite_from(R, p, c):
    """The composite c given in a frame at p turned by R, about the outer origin and in its axes."""
    m, h, J, P, N, n, f = c
    h, P, f = vec3.rotate(R, h), vec3.rotate(R, P), vec3.rotate(R, f)
    J = vec3.sym_add(vec3.sym_add(vec3.sym_rotate(R, J), outer_sum(p, h)), vec3.point_inertia(m, p))
    N = vec3.matmul(vec3.matmul(R, N), vec3.transpose(R))
    N = vec3.add_rows(N, -2.0, skew_product(p, P))
    return m, vec3.add_scaled(h, m, p), J, P, N, vec3.add(vec3.rotate(R, n), vec3.cross(p, f)), f


@inline
def composite_into(R, p, c):
    """The inverse of `composite_from`."""
    Rt = vec3.transpose(R)
    back = vec3.rotate(Rt, vec3.scale(-1.0, p))
    return composite_from(Rt, back, c)


@inline
def skew_product(p, q):
    """[p]x [q]x = q p^T - p.q 1"""
    d = vec3.dot(p, q)
    return (
        q[0] * p[0] - d,
        q[0] * p[1],
        q[0] * p[2],
        q[1] * p[0],
        q[1] * p[1] - d,
        q[1] * p[2],
        q[2] * p[0],
        q[2] * p[1],
        q[2] * p[2] - d,
    )


@inline
def twist_into(R, p, a):
    """A twist about the outer origin, in the frame at p turned by R."""
    return vec3.rotate_back(R, a[0]), vec3.rotate_back(R, vec3.add(a[1], vec3.cross(a[0], p)))


@inline
def twist_from(R, p, a):
    w = vec3.rotate(R, a[0])
    return w, vec3.add(vec3.rotate(R, a[1]), vec3.cross(p, w))


@inline
def wrench_from(R, p, a):
    f = vec3.rotate(R, a[1])
    return vec3.add(vec3.rotate(R, a[0]), vec3.cross(p, f)), f
