"""Energies of a chain, and its spring and damper forces."""

from __future__ import annotations

from numba import njit

from . import arc, vec3
from .arc import entire
from .chain import ARC, BALL, DISTRIBUTED, GAUSS_NODES, GAUSS_WEIGHTS, NO_MASS, SWING
from .kinematics import IDENTITY, bend, move, place


@njit(cache=True, error_model='numpy')
def gravity_energy(chain, x):
    """-sum m g.c over all masses; zero at the world's origin."""
    g = (chain[0].gx, chain[0].gy, chain[0].gz)
    energy = 0.0
    R, p = IDENTITY, vec3.ZERO
    for i in range(chain.size):
        e = chain[i]
        R, p = place(e, R, p)
        if e.kind == ARC and e.placement != NO_MASS:
            q = bend(e, x)
            square = q[0] * q[0] + q[1] * q[1]
            if e.placement == DISTRIBUTED:
                for k in range(e.points):
                    s = GAUSS_NODES[e.points, k]
                    c = arc.point_motion(s, q, vec3.ZERO, entire(s * s * square))[0]
                    m = e.arc_mass * GAUSS_WEIGHTS[e.points, k]
                    energy -= m * vec3.dot(g, vec3.add(p, vec3.rotate(R, c)))
            else:
                c = arc.centroid_motion(q, vec3.ZERO, entire(square))[0]
                energy -= e.arc_mass * vec3.dot(g, vec3.add(p, vec3.rotate(R, c)))
        R, p = move(e, x, R, p)
        energy -= e.m * vec3.dot(g, p) + vec3.dot(g, vec3.rotate(R, (e.hx, e.hy, e.hz)))
    return energy


@njit(cache=True, error_model='numpy')
def material(chain, x, v, elastic, damping):
    """Write spring forces and damper forces of the coordinates (nv,) each; return the springs' energy."""
    energy = 0.0
    for i in range(chain.size):
        e = chain[i]
        for j in range(e.n):
            damping[e.iv + j] = e.d[j] * v[e.iv + j]
            elastic[e.iv + j] = 0.0
            if e.kind != SWING and e.kind != BALL:
                stretch = x[e.iq + j] - e.rest[j]
                square = stretch * stretch
                elastic[e.iv + j] = stretch * (e.k[j] + e.k3[j] * square)
                energy += square * (0.5 * e.k[j] + 0.25 * e.k3[j] * square)
    return energy
