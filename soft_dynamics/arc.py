"""A constant-curvature piece: rotation vector (u, v, 0), length h, every formula regular at the straight pose.

    R = exp([(u, v, 0)]x)        r = h V(u, v) e_z = h (f2 v, -f2 u, f1)        x = u^2 + v^2
    centroid  r_c = h (f3 v, -f3 u, f2)                                  [Jensen, eq. 2, 4, 9] [Mehl, eq. 2, 3, 8]

At the fraction s of the length the same holds with (s u, s v) and s h. All vectors are in the proximal frame.
"""

from __future__ import annotations

from .entire import Entire, entire, first_derivatives, second_derivatives
from .vec3 import Mat3, Sym3, Vec3, inline

Columns = tuple[Vec3, Vec3, Vec3]


@inline
def rotation(u: float, v: float, f: Entire) -> Mat3:
    """R_PD of the distal frame."""
    f1, f2 = f[0], f[1]
    return (
        1.0 - f2 * v * v,
        f2 * u * v,
        f1 * v,
        f2 * u * v,
        1.0 - f2 * u * u,
        -f1 * u,
        -f1 * v,
        f1 * u,
        1.0 - f2 * (u * u + v * v),
    )


@inline
def _moving_point(
    q: Vec3, qd: Vec3, shape: tuple[float, float, float], g: Vec3, k: Vec3
) -> tuple[Vec3, Columns, Vec3, Vec3]:
    """Position, its three columns, velocity and bias acceleration of r = h (a g(y) v, -a g(y) u, b k(y)), y = c x.

    `shape` is (a, b, c); `g` and `k` hold a function of y and its first two derivatives.
    """
    u, v, h = q
    ud, vd, hd = qd
    a, b, c = shape
    yu, yv = 2.0 * c * u, 2.0 * c * v
    yt, ytt = yu * ud + yv * vd, 2.0 * c * (ud * ud + vd * vd)
    ag, agu, agv = a * g[0], a * g[1] * yu, a * g[1] * yv
    along_h = (ag * v, -ag * u, b * k[0])
    along_u = (h * agu * v, -h * (agu * u + ag), h * b * k[1] * yu)
    along_v = (h * (agv * v + ag), -h * agv * u, h * b * k[1] * yv)
    velocity = (
        along_u[0] * ud + along_v[0] * vd + along_h[0] * hd,
        along_u[1] * ud + along_v[1] * vd + along_h[1] * hd,
        along_u[2] * ud + along_v[2] * vd + along_h[2] * hd,
    )
    agt, agtt = a * g[1] * yt, a * (g[2] * yt * yt + g[1] * ytt)
    bkt, bktt = b * k[1] * yt, b * (k[2] * yt * yt + k[1] * ytt)
    bias = (
        h * (agtt * v + 2.0 * agt * vd) + 2.0 * hd * (agt * v + ag * vd),
        -h * (agtt * u + 2.0 * agt * ud) - 2.0 * hd * (agt * u + ag * ud),
        h * bktt + 2.0 * hd * bkt,
    )
    return (h * along_h[0], h * along_h[1], h * along_h[2]), (along_u, along_v, along_h), velocity, bias


@inline
def point_motion(s: float, q: Vec3, qd: Vec3, f: Entire) -> tuple[Vec3, Columns, Vec3, Vec3]:
    """Motion of the centreline point at the fraction s; f at s^2 x."""
    d, dd = first_derivatives(f), second_derivatives(f)
    return _moving_point(q, qd, (s * s, s, s * s), (f[1], d[1], dd[1]), (f[0], d[0], dd[0]))


@inline
def centroid_motion(q: Vec3, qd: Vec3, f: Entire) -> tuple[Vec3, Columns, Vec3, Vec3]:
    """Motion of the centroid of the whole arc; f at x."""
    d, dd = first_derivatives(f), second_derivatives(f)
    return _moving_point(q, qd, (1.0, 1.0, 1.0), (f[2], d[2], dd[2]), (f[1], d[1], dd[1]))


@inline
def turning(s: float, q: Vec3, qd: Vec3, f: Entire) -> tuple[Vec3, Vec3, Vec3, Vec3]:
    """Columns of the angular velocity at the fraction s, the velocity itself, and the bias of its derivative.

    omega = V(s theta) s theta_dot with V the left Jacobian of SO(3); f at s^2 x.      [Jensen, eq. 5, rows 4-6]
    """
    u, v, _ = q
    ud, vd, _ = qd
    s2, s3 = s * s, s * s * s
    f2, f3 = s2 * f[1], s3 * f[2]
    spin = u * vd - v * ud
    _, f2_x, f3_x = first_derivatives(f)
    yt = 2.0 * s2 * (u * ud + v * vd)
    f2_t, f3_t = s2 * f2_x * yt, s3 * f3_x * yt
    along_u = (s - f3 * v * v, f3 * u * v, -f2 * v)
    along_v = (f3 * u * v, s - f3 * u * u, f2 * u)
    omega = (s * ud + f3 * v * spin, s * vd - f3 * u * spin, f2 * spin)
    bias = (spin * (f3_t * v + f3 * vd), -spin * (f3_t * u + f3 * ud), f2_t * spin)
    return along_u, along_v, omega, bias


@inline
def tangent(s: float, u: float, v: float, f: Entire) -> Vec3:
    """Unit tangent of the centreline at the fraction s; f at s^2 x."""
    return s * f[0] * v, -s * f[0] * u, 1.0 - s * s * (u * u + v * v) * f[1]


@inline
def lumped_inertia(m: float, radius: float, q: Vec3, f: Entire) -> Sym3:
    """Rotary inertia of the bent body of thin discs about its centroid, in proximal axes.

    I_c = int (m r^2/4 (1 + t t^T) + m (|rho|^2 1 - rho rho^T)) ds, rho = r(s) - r_c     [Jensen, eq. 19-22]
    The integrals of t t^T and r r^T are closed forms in the entire functions at x and 4x.
    """
    u, v, h = q
    g = entire(4.0 * (u * u + v * v))
    disc, spread = 0.25 * m * radius * radius, m * h * h
    tt, tz, zz = 2.0 * g[2], g[1], 1.0 - 2.0 * (u * u + v * v) * g[2]
    rr = 2.0 * (4.0 * g[4] - f[4]) - f[2] * f[2]
    rz = 4.0 * g[3] - f[3] - f[2] * f[1]
    hh = 2.0 * g[2] - f[1] * f[1]
    trace = disc + spread * (rr * (u * u + v * v) + hh)
    perp, mixed, axial = disc * tt - spread * rr, disc * tz - spread * rz, disc * zz - spread * hh
    return (
        trace + perp * v * v,
        -perp * u * v,
        mixed * v,
        trace + perp * u * u,
        -mixed * u,
        trace + axial,
    )


@inline
def lumped_inertia_slopes(m: float, radius: float, q: Vec3, f: Entire) -> tuple[Sym3, Sym3, Sym3]:
    """Derivatives of `lumped_inertia` with respect to u, v and h."""
    u, v, h = q
    x = u * u + v * v
    g = entire(4.0 * x)
    disc, spread = 0.25 * m * radius * radius, m * h * h
    tt, tz = 2.0 * g[2], g[1]
    tt_x, tz_x = 8.0 * _slope(g, 3), 4.0 * _slope(g, 2)
    zz_x = -2.0 * g[2] - 8.0 * x * _slope(g, 3)
    rr = 2.0 * (4.0 * g[4] - f[4]) - f[2] * f[2]
    rz = 4.0 * g[3] - f[3] - f[2] * f[1]
    hh = 2.0 * g[2] - f[1] * f[1]
    rr_x = 2.0 * (16.0 * _slope(g, 5) - _slope(f, 5)) - 2.0 * f[2] * _slope(f, 3)
    rz_x = 16.0 * _slope(g, 4) - _slope(f, 4) - f[2] * _slope(f, 2) - f[1] * _slope(f, 3)
    hh_x = 8.0 * _slope(g, 3) - 2.0 * f[1] * _slope(f, 2)
    perp, mixed = disc * tt - spread * rr, disc * tz - spread * rz
    perp_x, mixed_x, axial_x = (
        disc * tt_x - spread * rr_x,
        disc * tz_x - spread * rz_x,
        disc * zz_x - spread * hh_x,
    )
    trace_x = spread * (rr_x * x + rr + hh_x)
    du, dv, dh = 2.0 * u, 2.0 * v, 2.0 * m * h
    along_u = (
        du * (trace_x + perp_x * v * v),
        -du * perp_x * u * v - perp * v,
        du * mixed_x * v,
        du * (trace_x + perp_x * u * u) + 2.0 * perp * u,
        -du * mixed_x * u - mixed,
        du * (trace_x + axial_x),
    )
    along_v = (
        dv * (trace_x + perp_x * v * v) + 2.0 * perp * v,
        -dv * perp_x * u * v - perp * u,
        dv * mixed_x * v + mixed,
        dv * (trace_x + perp_x * u * u),
        -dv * mixed_x * u,
        dv * (trace_x + axial_x),
    )
    along_h = (
        dh * (rr * x + hh - rr * v * v),
        dh * rr * u * v,
        -dh * rz * v,
        dh * (rr * x + hh - rr * u * u),
        dh * rz * u,
        dh * rr * x,
    )
    return along_u, along_v, along_h


@inline
def _slope(f: Entire, j: int) -> float:
    """d f_j / dx"""
    return -0.5 * (f[j] - j * f[j + 1])
