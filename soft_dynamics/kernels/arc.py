"""Constant-curvature arc: rotation vector (u, v, 0), length h, regular at the straight pose.

    R = exp([(u, v, 0)]x)        r = h V(u, v) e_z = h (f2 v, -f2 u, f1)        x = u^2 + v^2
    centroid  r_c = h (f3 v, -f3 u, f2)                                  [Jensen, eq. 2, 4, 9] [Mehl, eq. 2, 3, 8]

At the fraction s of the length, the same formulas hold with (s u, s v) and s h. All vectors are in the proximal frame.

The entire functions f_j make the formulas free of singularities:

    f_j(x) = sum_k (-x)^k / (2k + j)!          x = phi^2
    f_1 = sin(phi)/phi   f_2 = (1 - cos(phi))/phi^2   f_3 = (phi - sin(phi))/phi^3   ...
    f_j = 1/j! - x f_{j+2}          d f_j/dx = -(f_{j+1} - j f_{j+2})/2

Rotation, tip and Jacobian of the arc, and all their derivatives, are polynomials in the bend and these functions, so
the straight pose is not singular.
"""

from __future__ import annotations

import math

from .vec3 import Mat3, Sym3, Vec3, inline, sym_add_scaled

Entire = tuple[float, float, float, float, float, float, float, float, float]

# Up to here the series of f_8 and f_9 is summed and the others follow downwards without cancellation;
# beyond, they follow upwards from sine and cosine. The loss at the seam is below 1e-13 for f_9.
SERIES_LIMIT = 4.0
# Ten terms: the remainder is below 1e-18 of the sum.
SERIES_8 = tuple((-1.0) ** k / math.factorial(2 * k + 8) for k in range(10))
SERIES_9 = tuple((-1.0) ** k / math.factorial(2 * k + 9) for k in range(10))


@inline
def _series(x: float, c: tuple[float, ...]) -> float:
    """Evaluate the polynomial with coefficients c by Horner's rule in x^2; both halves run in parallel."""
    y = x * x
    even = c[0] + y * (c[2] + y * (c[4] + y * (c[6] + y * c[8])))
    return even + x * (c[1] + y * (c[3] + y * (c[5] + y * (c[7] + y * c[9]))))


@inline
def entire(x: float) -> Entire:
    """(f_1, ..., f_9) at x >= 0."""
    if x <= SERIES_LIMIT:
        f9, f8 = _series(x, SERIES_9), _series(x, SERIES_8)
        f7 = 1.0 / 5040.0 - x * f9
        f6 = 1.0 / 720.0 - x * f8
        f5 = 1.0 / 120.0 - x * f7
        f4 = 1.0 / 24.0 - x * f6
        f3 = 1.0 / 6.0 - x * f5
        f2 = 0.5 - x * f4
        f1 = 1.0 - x * f3
        return f1, f2, f3, f4, f5, f6, f7, f8, f9
    phi = math.sqrt(x)
    over_x = 1.0 / x
    f1 = math.sin(phi) / phi
    f2 = (1.0 - math.cos(phi)) * over_x
    f3 = (1.0 - f1) * over_x
    f4 = (0.5 - f2) * over_x
    f5 = (1.0 / 6.0 - f3) * over_x
    f6 = (1.0 / 24.0 - f4) * over_x
    f7 = (1.0 / 120.0 - f5) * over_x
    f8 = (1.0 / 720.0 - f6) * over_x
    f9 = (1.0 / 5040.0 - f7) * over_x
    return f1, f2, f3, f4, f5, f6, f7, f8, f9


@inline
def first_derivatives(f: Entire) -> tuple[float, float, float]:
    """(f_1', f_2', f_3') with respect to x."""
    return -0.5 * (f[1] - f[2]), -0.5 * (f[2] - 2.0 * f[3]), -0.5 * (f[3] - 3.0 * f[4])


@inline
def second_derivatives(f: Entire) -> tuple[float, float, float]:
    """(f_1'', f_2'', f_3'') with respect to x."""
    return (
        0.25 * (f[2] - 3.0 * f[3] + 3.0 * f[4]),
        0.25 * (f[3] - 5.0 * f[4] + 8.0 * f[5]),
        0.25 * (f[4] - 7.0 * f[5] + 15.0 * f[6]),
    )


@inline
def third_derivatives(f: Entire) -> tuple[float, float, float]:
    """(f_1''', f_2''', f_3''') with respect to x."""
    return (
        -0.125 * (f[3] - 6.0 * f[4] + 15.0 * f[5] - 15.0 * f[6]),
        -0.125 * (f[4] - 9.0 * f[5] + 33.0 * f[6] - 48.0 * f[7]),
        -0.125 * (f[5] - 12.0 * f[6] + 57.0 * f[7] - 105.0 * f[8]),
    )


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
def _inertia(trace: float, perp: float, mixed: float, axial: float, u: float, v: float) -> Sym3:
    """trace 1 + perp t t^T + mixed (t e_z^T + e_z t^T) + axial e_z e_z^T with t = (v, -u, 0)"""
    return trace + perp * v * v, -perp * u * v, mixed * v, trace + perp * u * u, -mixed * u, trace + axial


@inline
def _spreads(f: Entire, g: Entire) -> Vec3:
    """Second moments of the centreline about its centroid: across, mixed and along, for h = 1; f at x, g at 4x."""
    rr = 2.0 * (4.0 * g[4] - f[4]) - f[2] * f[2]
    return rr, 4.0 * g[3] - f[3] - f[2] * f[1], 2.0 * g[2] - f[1] * f[1]


@inline
def lumped_inertia(m: float, radius: float, q: Vec3, f: Entire) -> Sym3:
    """Rotary inertia of the bent stack of thin discs about its centroid, in proximal axes.

    I_c = int (m r^2/4 (1 + t t^T) + m (|rho|^2 1 - rho rho^T)) ds, rho = r(s) - r_c     [Jensen, eq. 19-22]
    The integrals of t t^T and r r^T are closed forms in the entire functions at x and 4x.
    """
    u, v, h = q
    x = u * u + v * v
    g = entire(4.0 * x)
    disc, spread = 0.25 * m * radius * radius, m * h * h
    rr, rz, hh = _spreads(f, g)
    perp, mixed = disc * 2.0 * g[2] - spread * rr, disc * g[1] - spread * rz
    axial = disc * (1.0 - 2.0 * x * g[2]) - spread * hh
    return _inertia(disc + spread * (rr * x + hh), perp, mixed, axial, u, v)


@inline
def lumped_inertia_slopes(m: float, radius: float, q: Vec3, f: Entire) -> tuple[Sym3, Sym3, Sym3]:
    """Derivatives of `lumped_inertia` with respect to u, v and h."""
    u, v, h = q
    x = u * u + v * v
    g = entire(4.0 * x)
    disc, spread = 0.25 * m * radius * radius, m * h * h
    rr, rz, hh = _spreads(f, g)
    rr_x = 2.0 * (16.0 * _slope(g, 5) - _slope(f, 5)) - 2.0 * f[2] * _slope(f, 3)
    rz_x = 16.0 * _slope(g, 4) - _slope(f, 4) - f[2] * _slope(f, 2) - f[1] * _slope(f, 3)
    hh_x = 8.0 * _slope(g, 3) - 2.0 * f[1] * _slope(f, 2)
    perp, mixed = disc * 2.0 * g[2] - spread * rr, disc * g[1] - spread * rz
    perp_x, mixed_x = disc * 8.0 * _slope(g, 3) - spread * rr_x, disc * 4.0 * _slope(g, 2) - spread * rz_x
    axial_x = -disc * (2.0 * g[2] + 8.0 * x * _slope(g, 3)) - spread * hh_x
    along_x = _inertia(spread * (rr_x * x + rr + hh_x), perp_x, mixed_x, axial_x, u, v)
    with_u = (0.0, -perp * v, 0.0, 2.0 * perp * u, -mixed, 0.0)
    with_v = (2.0 * perp * v, -perp * u, mixed, 0.0, 0.0, 0.0)
    k = 2.0 * m * h
    along_h = _inertia(k * (rr * x + hh), -k * rr, -k * rz, -k * hh, u, v)
    return sym_add_scaled(with_u, 2.0 * u, along_x), sym_add_scaled(with_v, 2.0 * v, along_x), along_h


@inline
def _slope(f: Entire, j: int) -> float:
    """d f_j / dx"""
    return -0.5 * (f[j] - j * f[j + 1])
