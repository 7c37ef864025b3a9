"""Springs between the rims of neighbouring discs: V = sum k/2 (L - L0)^2.          [Schultz, eq. 5, sum from disc 2]

A spring depends only on the five coordinates of its disc relative to the previous disc, so it gives a force on these
five and a 5x5 block of stiffness. With d the vector between its ends, axis z_a through o_a of joint a, and p the outer
end:

    dd/dq_a = z_a x (p - o_a)          d2d/dq_a dq_b = z_a x (z_b x (p - o_b))  for a inboard of b
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ..geometry.so3 import quaternion_matrix
from . import vec3
from .joints import axis_matrix
from .vec3 import get3, inline


@inline
def _axes(angles, length, axes, R):
    """Axes of the five joints z, x, z, x, y in the frame of the previous disc; returns (R of the disc, thread end)."""
    end = vec3.ZERO
    for j in range(5):
        axis = 2 if j == 0 or j == 2 else (1 if j == 4 else 0)
        if j == 2:
            end = vec3.scale(length, (R[2], R[5], R[8]))
        axes[j, 0], axes[j, 1], axes[j, 2] = R[axis], R[3 + axis], R[6 + axis]
        R = vec3.matmul(R, axis_matrix(axis, math.sin(angles[j]), math.cos(angles[j])))
    return R, end


@inline
def _pull(spring, d):
    """(k (L - L0)/L, k L0/L^3): tension over length and its derivative with respect to d; zero at L = 0."""
    L = math.sqrt(vec3.dot(d, d))
    if L == 0.0:
        return 0.0, 0.0
    return spring.k * (1.0 - spring.rest / L), spring.k * spring.rest / (L * L * L)


@njit(cache=True, error_model='numpy')
def spring_forces(springs, x, force, stiffness):
    """Add dV/dx to `force` (nx,) and, if it has rows, d2V/dx2 to `stiffness` (nx, nx); return V. Joint angles x."""
    axes = np.empty((5, 3))
    arms = np.empty((5, 3))
    energy = 0.0
    for i in range(springs.size):
        s = springs[i]
        k = s.iq
        R, end = _axes(x[k : k + 5], s.length, axes, (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0))
        rim = vec3.rotate(R, get3(s.outer, 0))
        d = vec3.sub(vec3.add(end, rim), get3(s.inner, 0))
        tension, change = _pull(s, d)
        length = math.sqrt(vec3.dot(d, d))
        energy += 0.5 * s.k * (length - s.rest) ** 2
        for a in range(5):
            arm = vec3.cross(get3(axes[a], 0), vec3.add(end, rim) if a < 2 else rim)
            arms[a, 0], arms[a, 1], arms[a, 2] = arm
            force[k + a] += tension * vec3.dot(d, arm)
        if stiffness.shape[0] > 0:
            for a in range(5):
                for b in range(a, 5):
                    bend = vec3.dot(d, vec3.cross(get3(axes[a], 0), get3(arms[b], 0)))
                    spread = vec3.dot(get3(arms[a], 0), get3(arms[b], 0))
                    along = vec3.dot(d, get3(arms[a], 0)) * vec3.dot(d, get3(arms[b], 0))
                    h = tension * (spread + bend) + change * along
                    stiffness[k + a, k + b] += h
                    if b > a:
                        stiffness[k + b, k + a] += h
    return energy


@njit(cache=True, error_model='numpy')
def spring_forces_regular(springs, first, x, force):
    """Add the springs' forces on swing and ball rates to `force`; return V.

    `first[i]` is the first rate of spring i; its coordinates are two quaternions: thread, and disc relative to the
    thread.
    """
    energy = 0.0
    for i in range(springs.size):
        s = springs[i]
        k, v = s.iq, first[i]
        P = quaternion_matrix(x[k], x[k + 1], x[k + 2], x[k + 3])
        B = quaternion_matrix(x[k + 4], x[k + 5], x[k + 6], x[k + 7])
        rim_T = vec3.rotate(B, get3(s.outer, 0))
        point_T = vec3.add((0.0, 0.0, s.length), rim_T)
        d_T = vec3.sub(point_T, vec3.rotate_back(P, get3(s.inner, 0)))
        tension, _ = _pull(s, d_T)
        energy += 0.5 * s.k * (math.sqrt(vec3.dot(d_T, d_T)) - s.rest) ** 2
        pull_T = vec3.scale(tension, d_T)
        on_thread = vec3.cross(point_T, pull_T)
        on_disc = vec3.cross(get3(s.outer, 0), vec3.rotate_back(B, pull_T))
        force[v] += on_thread[0]
        force[v + 1] += on_thread[1]
        for j in range(3):
            force[v + 2 + j] += on_disc[j]
    return energy
