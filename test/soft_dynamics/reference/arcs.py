"""Constant-curvature arc: pose along it, mass in three placements, length of its chambers."""

from typing import Literal

import casadi as ca
import numpy as np

from .mechanics import SX, Array, Body, Frame, entire, vector

Placement = Literal['lumped', 'point', 'distributed']

QUADRATURE_POINTS = 20


def gauss_legendre() -> Array:
    """Nodes and weights on [0, 1], shape (2, QUADRATURE_POINTS)."""
    x, w = np.polynomial.legendre.leggauss(QUADRATURE_POINTS)
    return np.vstack([(x + 1) / 2, w / 2])


def arc(u: SX, v: SX, h: SX) -> tuple[SX, SX]:
    """R = exp([(u, v, 0)]x) and tip p of an arc of length h along z   [Jensen, eqs. 2 and 4]."""
    x = u**2 + v**2
    f1, f2 = entire(1, x), entire(2, x)
    R = ca.vertcat(
        ca.horzcat(1 - f2 * v**2, f2 * u * v, f1 * v),
        ca.horzcat(f2 * u * v, 1 - f2 * u**2, -f1 * u),
        ca.horzcat(-f1 * v, f1 * u, entire(0, x)),
    )
    return R, h * vector(f2 * v, -f2 * u, f1)


def arc_centroid(u: SX, v: SX, h: SX) -> SX:
    """Mean of the centre line   [Jensen, eq. 9; Mehl, eq. 8]."""
    x = u**2 + v**2
    return h * vector(entire(3, x) * v, -entire(3, x) * u, entire(2, x))


def disc_inertia(mass: SX | float, radius: float) -> SX:
    """Thin disc about its centre, z its normal   [Jensen, eq. 20 times the length of the disc]."""
    return mass * radius**2 * ca.diag(vector(1 / 4, 1 / 4, 1 / 2))


def lumped_inertia(u: SX, v: SX, h: SX, mass: float, radius: float) -> SX:
    """Inertia of all discs about the centroid, in the axes of the distal frame   [Jensen, eqs. 19-22]."""
    R_tip, _ = arc(u, v, h)
    centroid = arc_centroid(u, v, h)
    total = ca.SX.zeros(3, 3)
    for s, w in gauss_legendre().T:
        R_disc, p_disc = arc(s * u, s * v, s * h)
        R, r = R_tip.T @ R_disc, R_tip.T @ (p_disc - centroid)
        total += R @ disc_inertia(w * mass, radius) @ R.T - w * mass * ca.skew(r) @ ca.skew(r)
    return total


def arc_body(base: Frame, u: SX, v: SX, h: SX, mass: float, radius: float, placement: Placement) -> Body:
    """Mass of the arc that starts at `base`."""
    if placement == 'distributed':
        s, w = ca.SX.sym('s'), ca.SX.sym('w')
        disc = base.then(*arc(s * u, s * v, s * h))
        inertia = disc_inertia(w * mass, radius)
        return Body(w * mass, disc.p, disc.R, inertia, vector(s, w), gauss_legendre())
    p_W = base.point(arc_centroid(u, v, h))
    if placement == 'point':
        return Body(mass, p_W)
    if placement != 'lumped':
        raise ValueError(f"placement must be 'lumped', 'point' or 'distributed', got {placement!r}")
    return Body(mass, p_W, base.R @ arc(u, v, h)[0], lumped_inertia(u, v, h, mass, radius))


def chamber_length(u: SX, v: SX, h: SX, r_x: float, r_y: float) -> SX:
    """Length of the fibre through (r_x, r_y) of every disc: its tangent along the disc normal, integrated."""
    s = ca.SX.sym('s')
    R, p = arc(s * u, s * v, s * h)
    stretch = ca.dot(R[:, 2], ca.jacobian(p + R @ vector(r_x, r_y, 0), s))
    return sum(w * ca.substitute(stretch, s, node) for node, w in gauss_legendre().T)
