"""Placement of an arc's own mass, as a list of small bodies that move with neither end frame.

LUMPED       a point mass at the centroid and the disc-integrated inertia turning with the distal frame [Jensen]
POINT        a point mass at the centroid [Mehl]
DISTRIBUTED  thin discs at the Gauss-Legendre points of the centreline: the exact kinetic energy

The recursions use piece k of the arc as a point mass m with its motion, and a rotary inertia with its rotation; either
may be zero.
"""

from __future__ import annotations

from . import arc
from .arc import Entire, entire
from .chain import DISTRIBUTED, GAUSS_NODES, GAUSS_WEIGHTS, LUMPED, NO_MASS
from .vec3 import Sym3, Vec3, inline

NO_INERTIA: Sym3 = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@inline
def piece_count(placement: int, points: int) -> int:
    """Number of small bodies that represent the arc's own mass."""
    if placement == NO_MASS:
        return 0
    return points if placement == DISTRIBUTED else 1


@inline
def disc_inertia(m: float, radius: float, t: Vec3) -> Sym3:
    """Rotary inertia of a thin disc with the axis t: m r^2/4 (1 + t t^T)"""
    d = 0.25 * m * radius * radius
    return (
        d * (1.0 + t[0] * t[0]),
        d * t[0] * t[1],
        d * t[0] * t[2],
        d * (1.0 + t[1] * t[1]),
        d * t[1] * t[2],
        d * (1.0 + t[2] * t[2]),
    )


@inline
def piece(e, k: int, q: Vec3, qd: Vec3, f: Entire):
    """(m, point motion, rotary inertia, turning) of piece k of the arc element e; f at x."""
    if e.placement == DISTRIBUTED:
        s = GAUSS_NODES[e.points, k]
        m = e.arc_mass * GAUSS_WEIGHTS[e.points, k]
        fs = entire(s * s * (q[0] * q[0] + q[1] * q[1]))
        t = arc.tangent(s, q[0], q[1], fs)
        inertia = disc_inertia(m, e.radius, t)
        return m, arc.point_motion(s, q, qd, fs), inertia, arc.turning(s, q, qd, fs)
    inertia = NO_INERTIA
    if e.placement == LUMPED:
        inertia = arc.lumped_inertia(e.arc_mass, e.radius, q, f)
    return e.arc_mass, arc.centroid_motion(q, qd, f), inertia, arc.turning(1.0, q, qd, f)
