"""Compiled entry points of the kernels, for one state and for many."""

from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

from .chain import ELEMENT
from .derivatives import cholesky, cholesky_solve, inverse_derivatives
from .forward_dynamics import OK, forward_dynamics
from .inverse_dynamics import inverse_dynamics_in, workspace
from .kinematics import poses
from .vec3 import inline

BLOCKS = 64  # states that share scratch memory; each thread takes one block at a time


@inline
def _finite(a):
    """Return whether the sum of the numbers is finite; NaN and infinity make it false."""
    total = 0.0
    for i in range(a.size):
        total += a[i]
    return math.isfinite(total)


@inline
def _finite_state(a, b, c):
    return _finite(a) and _finite(b) and _finite(c)


@njit(cache=True, error_model='numpy')
def inverse_one(raw, q, qd, qdd, tau):
    """Write `inverse_dynamics` of one state into tau. Returns False if an argument or the result is not finite.

    raw: the chain as an array of doubles, which numba dispatches faster than an array of records.
    """
    if not _finite_state(q, qd, qdd):
        return False
    chain = raw.view(ELEMENT)
    work = workspace(chain)
    inverse_dynamics_in(chain, q, qd, qdd, work[:0], work, tau)
    return _finite(tau)


@njit(cache=True, error_model='numpy')
def forward_one(raw, q, qd, tau, qdd):
    """Same for `forward_dynamics`; qdd must be zero on entry."""
    if not _finite_state(q, qd, tau):
        return False
    status = forward_dynamics(raw.view(ELEMENT), q, qd, tau, raw[:0].reshape((0, 6)), qdd)
    return status == OK and _finite(qdd)


@njit(cache=True, error_model='numpy')
def linearize_one(raw, q, qd, tau, fixed, A, B):
    """Same for `state_matrices` under the forces tau."""
    chain, n = raw.view(ELEMENT), q.size
    qdd = np.zeros(n)
    if not forward_one(raw, q, qd, tau, qdd):
        return False
    dq, dv, M = np.empty((n, n)), np.empty((n, n)), np.empty((n, n))
    inverse_derivatives(chain, q, qd, qdd, raw[:0].reshape((0, 6)), dq, dv, M)
    status = state_matrices(dq, dv, M, fixed, A, B)
    return status == OK and math.isfinite(A.sum())


@njit(cache=True, error_model='numpy')
def derivatives_one(raw, q, qd, qdd, dq, dv, M):
    """Same for `inverse_derivatives`."""
    if not _finite_state(q, qd, qdd):
        return False
    inverse_derivatives(raw.view(ELEMENT), q, qd, qdd, raw[:0].reshape((0, 6)), dq, dv, M)
    return math.isfinite(dq.sum())


@njit(cache=True, parallel=True, error_model='numpy')
def inverse_many(chain, x, v, vd, external, tau, ground):
    """`inverse_dynamics` of many states in parallel; external (count, N, 6) or (count, 0, 6); ground (count, 6)."""
    count = x.shape[0]
    blocks = min(count, BLOCKS)
    for block in prange(blocks):
        work = workspace(chain)
        for i in range(block * count // blocks, (block + 1) * count // blocks):
            n, f = inverse_dynamics_in(chain, x[i], v[i], vd[i], external[i], work, tau[i])
            for k in range(3):
                ground[i, k], ground[i, 3 + k] = n[k], f[k]


@njit(cache=True, parallel=True, error_model='numpy')
def forward_many(chain, x, v, tau, external, vd, status):
    """`forward_dynamics` of many states in parallel; status (count,) is OK or the element that failed."""
    for i in prange(x.shape[0]):
        status[i] = forward_dynamics(chain, x[i], v[i], tau[i], external[i], vd[i])


@njit(cache=True, parallel=True, error_model='numpy')
def poses_many(chain, x, out):
    for i in prange(x.shape[0]):
        poses(chain, x[i], out[i])


@njit(cache=True, parallel=True, error_model='numpy')
def derivatives_many(chain, x, v, vd, external, dq, dv, M):
    for i in prange(x.shape[0]):
        inverse_derivatives(chain, x[i], v[i], vd[i], external[i], dq[i], dv[i], M[i])


@njit(cache=True, error_model='numpy')
def state_matrices(dq, dv, M, fixed, A, B):
    """Write A = d(qd, qdd)/d(q, qd) and B = d(qd, qdd)/d(tau) from the derivatives of inverse dynamics.

    fixed: coordinates with prescribed acceleration. M is overwritten. Returns OK, or the coordinate without inertia.
    """
    n = M.shape[0]
    right = np.empty((n, 3 * n))
    for i in range(n):
        for j in range(n):
            right[i, j], right[i, n + j], right[i, 2 * n + j] = -dq[i, j], -dv[i, j], 1.0 if i == j else 0.0
    for i in fixed:
        M[i, :] = 0.0
        M[:, i] = 0.0
        M[i, i] = 1.0
        right[i, :] = 0.0
    bad = cholesky(M)
    if bad != OK:
        return bad
    cholesky_solve(M, right)
    for i in range(n):
        for j in range(n):
            A[i, j], A[i, n + j], B[i, j] = 0.0, 1.0 if i == j else 0.0, 0.0
            A[n + i, j], A[n + i, n + j], B[n + i, j] = right[i, j], right[i, n + j], right[i, 2 * n + j]
    return OK
