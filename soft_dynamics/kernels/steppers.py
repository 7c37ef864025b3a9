"""Compiled fixed-step integration of a chain under pressures and forces.

SDIRK4: five stages, order 4, L-stable, stiffly accurate [Hairer, table IV.6.5], solved in the form

    inverse_dynamics(Q_i, V_i, K_i) = force_i       V_i = v + h sum a_ij K_j      Q_i = q + h sum a_ij V_j

so no mass matrix is inverted. The method handles stiff springs and dampers, and coordinates without mass if they have a
spring or a damper. The Newton matrix M + h g D + (h g)^2 K is exact and reused while Newton converges.
RK4: the classical explicit method on forward dynamics; it normalises quaternions after every step.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit, prange

from .chain import BALL, SWING
from .derivatives import inverse_derivatives
from .disc_springs import spring_forces_regular
from .forward_dynamics import OK, forward_dynamics
from .inverse_dynamics import inverse_dynamics
from .vec3 import inline

SDIRK_A = np.array(
    [
        [1 / 4, 0.0, 0.0, 0.0, 0.0],
        [1 / 2, 1 / 4, 0.0, 0.0, 0.0],
        [17 / 50, -1 / 25, 1 / 4, 0.0, 0.0],
        [371 / 1360, -137 / 2720, 15 / 544, 1 / 4, 0.0],
        [25 / 24, -49 / 48, 125 / 16, -85 / 12, 1 / 4],
    ]
)
SDIRK_C = SDIRK_A.sum(axis=1)
RK4_C = np.array([0.0, 0.5, 1.0])

GAMMA = 0.25
NEWTON_LIMIT = 12
SLOW = 4  # iterations after which the Newton matrix is recomputed
NEVER = NEWTON_LIMIT + 1

DONE = -1


class Plant(NamedTuple):
    """A chain, its springs between discs with their first rates, and the actuation by inputs."""

    chain: Any  # (N,) of ELEMENT
    springs: Any  # of SPRING
    first: Any  # as `springs`: first rate of each
    columns: Any  # (nv, m): forces of the inputs
    wrenches: Any  # (m, N, 6) or (m, 0, 6): wrenches of the inputs on the frames


class Steps(NamedTuple):
    """Steps h (count,) [s] with the inputs u (count, stages, m).

    After step i with keep[i] >= 0, the state is stored in row keep[i] of the result.
    """

    h: Any
    u: Any
    keep: Any


@njit(cache=True, error_model='numpy')
def lu_factor(A, pivots):
    """Factor A in place with row exchanges; return False if it is singular."""
    n = A.shape[0]
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[p, k]):
                p = i
        pivots[k] = p
        if not abs(A[p, k]) > 0.0:
            return False
        if p != k:
            for j in range(n):
                A[k, j], A[p, j] = A[p, j], A[k, j]
        for i in range(k + 1, n):
            A[i, k] /= A[k, k]
            t = A[i, k]
            for j in range(k + 1, n):
                A[i, j] -= t * A[k, j]
    return True


@njit(cache=True, error_model='numpy')
def lu_solve(A, pivots, b):
    """Solve in place with the factors and row exchanges of `lu_factor`."""
    n = A.shape[0]
    for k in range(n):
        p = pivots[k]
        b[k], b[p] = b[p], b[k]
    for k in range(n):
        for i in range(k + 1, n):
            b[i] -= A[i, k] * b[k]
    for k in range(n - 1, -1, -1):
        for j in range(k + 1, n):
            b[k] -= A[k, j] * b[j]
        b[k] /= A[k, k]


@njit(cache=True, error_model='numpy')
def apply_input(plant, u, force, external):
    """Forces and frame wrenches of the inputs u."""
    columns, wrenches = plant.columns, plant.wrenches
    for i in range(force.size):
        t = 0.0
        for k in range(u.size):
            t += columns[i, k] * u[k]
        force[i] = t
    for i in range(external.shape[0]):
        for j in range(6):
            t = 0.0
            for k in range(u.size):
                t += wrenches[k, i, j] * u[k]
            external[i, j] = t


@njit(cache=True, error_model='numpy')
def _newton_matrix(chain, x, v, vd, external, hg, J, pivots):
    n = v.size
    dq = np.empty((n, n))
    dv = np.empty((n, n))
    inverse_derivatives(chain, x, v, vd, external, dq, dv, J)
    for i in range(n):
        for j in range(n):
            J[i, j] += hg * (dv[i, j] + hg * dq[i, j])
    for k in range(chain.size):
        if chain[k].prescribed:
            i = chain[k].iv
            J[i, :] = 0.0
            J[:, i] = 0.0
            J[i, i] = 1.0
    return lu_factor(J, pivots)


@njit(cache=True, error_model='numpy')
def _residual(chain, x, v, vd, external, force, r):
    inverse_dynamics(chain, x, v, vd, external, r)
    for i in range(r.size):
        r[i] = force[i] - r[i]
    for k in range(chain.size):
        if chain[k].prescribed:
            r[chain[k].iv] = -vd[chain[k].iv]


@inline
def _stage_state(stage, h, x, v, K, V, xi):
    """Write the coordinates xi and rates V[stage] from the previous stages and K[stage]."""
    for j in range(v.size):
        a, b = v[j], x[j]
        for k in range(stage):
            a += h * SDIRK_A[stage, k] * K[k, j]
            b += h * SDIRK_A[stage, k] * V[k, j]
        V[stage, j] = a + GAMMA * h * K[stage, j]
        xi[j] = b + GAMMA * h * V[stage, j]


@njit(cache=True, error_model='numpy')
def _solve_stage(chain, J, pivots, stage, h, x, v, K, V, external, force, tolerance, xi, r):
    """Solve for K[stage] by Newton's method from its present value; return the number of iterations, or NEVER."""
    for iteration in range(1, NEWTON_LIMIT + 1):
        _stage_state(stage, h, x, v, K, V, xi)
        _residual(chain, xi, V[stage], K[stage], external, force, r)
        lu_solve(J, pivots, r)
        size = 0.0
        for j in range(r.size):
            K[stage, j] += r[j]
            size = max(size, abs(r[j]))
        if size * (GAMMA * h) ** 2 <= tolerance:
            _stage_state(stage, h, x, v, K, V, xi)
            return iteration
        if not math.isfinite(size):
            return NEVER
    return NEVER


@njit(cache=True, error_model='numpy')
def sdirk4(plant, x, v, vd, steps, tolerance, xs, vs):
    """Take the steps with inputs at five stages; x, v, vd hold the state, and xs, vs receive the stored rows.

    Returns DONE or the step that failed.
    """
    n, chain, h = v.size, plant.chain, steps.h
    K, V = np.empty((5, n)), np.empty((5, n))
    xi, r, force = np.empty(n), np.empty(n), np.empty(n)
    external = np.zeros((plant.wrenches.shape[1], 6))
    J, pivots = np.empty((n, n)), np.empty(n, np.int64)
    made_for = 0.0  # the step length of the Newton matrix
    for i in range(h.size):
        for stage in range(5):
            apply_input(plant, steps.u[i, stage], force, external)
            iterations = NEVER
            for _ in range(2):
                if made_for != h[i]:
                    if not _newton_matrix(chain, x, v, vd, external, GAMMA * h[i], J, pivots):
                        return i
                    made_for = h[i]
                K[stage] = vd
                iterations = _solve_stage(
                    chain, J, pivots, stage, h[i], x, v, K, V, external, force, tolerance, xi, r
                )
                if iterations > SLOW:
                    made_for = 0.0
                if iterations != NEVER:
                    break
            if iterations == NEVER:
                return i
        for j in range(n):
            x[j], v[j], vd[j] = xi[j], V[4, j], K[4, j]
        if steps.keep[i] >= 0:
            xs[steps.keep[i]], vs[steps.keep[i]] = x, v
    return DONE


@njit(cache=True, error_model='numpy')
def coordinate_rates(chain, x, v, xd):
    """Write the rates of the coordinates (nx,): v itself, and half of quaternion times body rate."""
    for i in range(chain.size):
        e = chain[i]
        k = e.iq
        if e.kind == SWING or e.kind == BALL:
            a, b, c = v[e.iv], v[e.iv + 1], v[e.iv + 2] if e.kind == BALL else 0.0
            qx, qy, qz, qw = x[k], x[k + 1], x[k + 2], x[k + 3]
            xd[k] = 0.5 * (qw * a + qy * c - qz * b)
            xd[k + 1] = 0.5 * (qw * b + qz * a - qx * c)
            xd[k + 2] = 0.5 * (qw * c + qx * b - qy * a)
            xd[k + 3] = -0.5 * (qx * a + qy * b + qz * c)
        else:
            for j in range(e.n):
                xd[k + j] = v[e.iv + j]


@njit(cache=True, error_model='numpy')
def normalise(chain, x):
    """Normalise every quaternion."""
    for i in range(chain.size):
        if chain[i].kind == SWING or chain[i].kind == BALL:
            k = chain[i].iq
            s = 1.0 / math.sqrt(x[k] ** 2 + x[k + 1] ** 2 + x[k + 2] ** 2 + x[k + 3] ** 2)
            for j in range(4):
                x[k + j] *= s


@njit(cache=True, error_model='numpy')
def accelerations(plant, x, v, u, work, external, vd):
    """Forward dynamics under inputs u and disc springs; `work` (2, nv) and `external` are scratch; OK or not."""
    apply_input(plant, u, work[0], external)
    if plant.springs.size > 0:
        work[1, :] = 0.0
        spring_forces_regular(plant.springs, plant.first, x, work[1])
        for j in range(v.size):
            work[0, j] -= work[1, j]
    return forward_dynamics(plant.chain, x, v, work[0], external, vd)


@njit(cache=True, error_model='numpy')
def rk4(plant, x, v, steps, xs, vs):
    """Explicit counterpart of `sdirk4`: inputs at the start, middle and end of each step."""
    nx, n = x.size, v.size
    xi, vi, xd, vd = np.empty(nx), np.empty(n), np.empty((4, nx)), np.zeros((4, n))
    work = np.empty((2, n))
    external = np.zeros((plant.wrenches.shape[1], 6))
    for i in range(steps.h.size):
        h = steps.h[i]
        for stage in range(4):
            part = 0.0 if stage == 0 else (h if stage == 3 else 0.5 * h)
            for j in range(nx):
                xi[j] = x[j] + part * xd[stage - 1, j] if stage > 0 else x[j]
            for j in range(n):
                vi[j] = v[j] + part * vd[stage - 1, j] if stage > 0 else v[j]
            u = steps.u[i, (stage + 1) // 2]
            coordinate_rates(plant.chain, xi, vi, xd[stage])
            vd[stage, :] = 0.0
            if accelerations(plant, xi, vi, u, work, external, vd[stage]) != OK:
                return i
        for j in range(nx):
            x[j] += h / 6.0 * (xd[0, j] + 2.0 * (xd[1, j] + xd[2, j]) + xd[3, j])
        for j in range(n):
            v[j] += h / 6.0 * (vd[0, j] + 2.0 * (vd[1, j] + vd[2, j]) + vd[3, j])
        normalise(plant.chain, x)
        if not math.isfinite(v.sum()):
            return i
        if steps.keep[i] >= 0:
            xs[steps.keep[i]], vs[steps.keep[i]] = x, v
    return DONE


@njit(cache=True, parallel=True, error_model='numpy')
def rk4_many(plant, x, v, steps, xs, vs, failed):
    """`rk4` of many motions in parallel: x (motions, nx), u (motions, count, 3, m), or (1, ...) for common inputs."""
    chain, springs, first, columns, wrenches = plant
    h, u, keep = steps
    for i in prange(x.shape[0]):
        own = Steps(h, u[i] if u.shape[0] > 1 else u[0], keep)
        failed[i] = rk4(Plant(chain, springs, first, columns, wrenches), x[i], v[i], own, xs[i], vs[i])


@njit(cache=True, parallel=True, error_model='numpy')
def sdirk4_many(plant, x, v, vd, steps, tolerance, xs, vs, failed):
    """`sdirk4` of many motions in parallel; shapes as in `rk4_many`, with five stages."""
    chain, springs, first, columns, wrenches = plant
    h, u, keep = steps
    for i in prange(x.shape[0]):
        own = Steps(h, u[i] if u.shape[0] > 1 else u[0], keep)
        one = Plant(chain, springs, first, columns, wrenches)
        failed[i] = sdirk4(one, x[i], v[i], vd[i], own, tolerance, xs[i], vs[i])
