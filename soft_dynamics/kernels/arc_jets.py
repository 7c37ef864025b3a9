"""Columns of an arc's motion with their first two derivatives along a motion q(t).

A jet is (value, first, second time derivative). The derivatives of inverse dynamics need each column of an arc's
twist, its rate and the rate of its rate, and how a column changes with another coordinate, which is the rate for
the motion along that coordinate.
"""

from __future__ import annotations

from .entire import Entire, first_derivatives, second_derivatives, third_derivatives
from .vec3 import inline

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
    """a - b x r on jets: the velocity of a body's point at the origin, from that of its point at r."""
    c = _cross(b, r)
    return _add(a[0], _scale(-1.0, c[0])), _add(a[1], _scale(-1.0, c[1])), _add(a[2], _scale(-1.0, c[2]))
