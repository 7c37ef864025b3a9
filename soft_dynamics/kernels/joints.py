"""Rotations about one axis, on tuples, for hinges and slides in the recursions."""

from __future__ import annotations

from .vec3 import Mat3, Sym3, Vec3, inline


@inline
def turn(axis: int, s: float, c: float, a: Vec3) -> Vec3:
    """R a for the rotation about a coordinate axis with sine s and cosine c."""
    x, y, z = a
    if axis == 0:
        return x, c * y - s * z, s * y + c * z
    if axis == 1:
        return c * x + s * z, y, c * z - s * x
    return c * x - s * y, s * x + c * y, z


@inline
def on_axis(axis: int, a: float) -> Vec3:
    """The vector of length a along a coordinate axis."""
    if axis == 0:
        return a, 0.0, 0.0
    if axis == 1:
        return 0.0, a, 0.0
    return 0.0, 0.0, a


@inline
def cross_axis(axis: int, a: Vec3, b: float) -> Vec3:
    """a x (b e) with e a coordinate axis."""
    if axis == 0:
        return 0.0, b * a[2], -b * a[1]
    if axis == 1:
        return -b * a[2], 0.0, b * a[0]
    return b * a[1], -b * a[0], 0.0


@inline
def centripetal(axis: int, w: Vec3, d: float) -> Vec3:
    """w x (w x (d e)) with e a coordinate axis: d (w (w.e) - |w|^2 e)"""
    x, y, z = w
    if axis == 0:
        return -d * (y * y + z * z), d * x * y, d * x * z
    if axis == 1:
        return d * x * y, -d * (x * x + z * z), d * y * z
    return d * x * z, d * y * z, -d * (x * x + y * y)


@inline
def plus_axis(axis: int, a: Vec3, b: float) -> Vec3:
    """a + b e with e a coordinate axis."""
    x, y, z = a
    if axis == 0:
        return x + b, y, z
    if axis == 1:
        return x, y + b, z
    return x, y, z + b


@inline
def component(axis: int, a: Vec3) -> float:
    if axis == 0:
        return a[0]
    return a[1] if axis == 1 else a[2]


@inline
def axis_matrix(axis: int, s: float, c: float) -> Mat3:
    if axis == 0:
        return 1.0, 0.0, 0.0, 0.0, c, -s, 0.0, s, c
    if axis == 1:
        return c, 0.0, s, 0.0, 1.0, 0.0, -s, 0.0, c
    return c, -s, 0.0, s, c, 0.0, 0.0, 0.0, 1.0


@inline
def _sym_about_x(s: float, c: float, m: Sym3) -> Sym3:
    xx, xy, xz, yy, yz, zz = m
    cc, ss, cs = c * c, s * s, c * s
    twice = 2.0 * cs * yz
    return (
        xx,
        c * xy - s * xz,
        s * xy + c * xz,
        cc * yy - twice + ss * zz,
        cs * (yy - zz) + (cc - ss) * yz,
        ss * yy + twice + cc * zz,
    )


@inline
def turn_sym(axis: int, s: float, c: float, m: Sym3) -> Sym3:
    """R S R^T for a coordinate axis."""
    xx, xy, xz, yy, yz, zz = m
    if axis == 0:
        return _sym_about_x(s, c, m)
    if axis == 1:
        yy, yz, xy, zz, xz, xx = _sym_about_x(s, c, (yy, yz, xy, zz, xz, xx))
        return xx, xy, xz, yy, yz, zz
    zz, xz, yz, xx, xy, yy = _sym_about_x(s, c, (zz, xz, yz, xx, xy, yy))
    return xx, xy, xz, yy, yz, zz


@inline
def _mat_about_x(s: float, c: float, m: Mat3) -> Mat3:
    xx, xy, xz, yx, yy, yz, zx, zy, zz = m
    yx, yy, yz, zx, zy, zz = (
        c * yx - s * zx,
        c * yy - s * zy,
        c * yz - s * zz,
        s * yx + c * zx,
        s * yy + c * zy,
        s * yz + c * zz,
    )
    return (
        xx,
        c * xy - s * xz,
        s * xy + c * xz,
        yx,
        c * yy - s * yz,
        s * yy + c * yz,
        zx,
        c * zy - s * zz,
        s * zy + c * zz,
    )


@inline
def turn_mat(axis: int, s: float, c: float, m: Mat3) -> Mat3:
    """R B R^T for a coordinate axis."""
    xx, xy, xz, yx, yy, yz, zx, zy, zz = m
    if axis == 0:
        return _mat_about_x(s, c, m)
    if axis == 1:
        yy, yz, yx, zy, zz, zx, xy, xz, xx = _mat_about_x(s, c, (yy, yz, yx, zy, zz, zx, xy, xz, xx))
        return xx, xy, xz, yx, yy, yz, zx, zy, zz
    zz, zx, zy, xz, xx, xy, yz, yx, yy = _mat_about_x(s, c, (zz, zx, zy, xz, xx, xy, yz, yx, yy))
    return xx, xy, xz, yx, yy, yz, zx, zy, zz
