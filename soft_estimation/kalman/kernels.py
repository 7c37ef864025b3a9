"""Matrix kernels of the filter, compiled because calls from Python would dominate."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

TAYLOR_TERMS, TAYLOR_RADIUS = 6, 0.5  # relative error of the first short step below 1e-7
BALANCING_SWEEPS = 3


@njit(cache=True, error_model='numpy')
def product(a, b, out):
    """Write out = a b for a sparse a; np.dot is faster for a dense one."""
    for i in range(a.shape[0]):
        row = out[i]
        row[:] = 0.0
        for k in range(a.shape[1]):
            if a[i, k] != 0.0:
                for j in range(b.shape[1]):
                    row[j] += a[i, k] * b[k, j]


@njit(cache=True, error_model='numpy')
def balanced_norm(A):
    """Return the largest row sum of D^-1 A D, for the diagonal D that balances rows and columns.   [Osborne 1960]"""
    n = A.shape[0]
    size, scale, back = np.abs(A), np.ones(n), np.ones(n)  # back = 1/scale
    largest = 0.0
    for sweep in range(BALANCING_SWEEPS + 1):
        largest = 0.0
        for i in range(n):
            own, row, column = size[i, i], 0.0, 0.0
            for j in range(n):
                row += size[i, j] * scale[j]
                column += size[j, i] * back[j]
            row, column = row * back[i] - own, column * scale[i] - own
            if sweep < BALANCING_SWEEPS:  # coordinates with an empty row or column may vanish
                scale[i] *= math.sqrt(max(row, 1e-9) / max(column, 1e-9))
                back[i] = 1.0 / scale[i]
            largest = max(largest, row + own)
    return largest


@njit(cache=True, error_model='numpy')
def dense_rows(a):
    """Return (first, last + 1) of the rows with several nonzeros, and the column of the nonzero of other rows."""
    first, end, only = a.shape[0], 0, np.zeros(a.shape[0], np.int64)
    for i in range(a.shape[0]):
        count = 0
        for j in range(a.shape[1]):
            if a[i, j] != 0.0:
                count += 1
                only[i] = j
        if count > 1:
            first, end = min(first, i), i + 1
    return min(first, end), end, only


@njit(cache=True, error_model='numpy')
def times(a, rows, b, out):
    """Write out = a b, given the dense_rows of a. For a chain with its rates, one block in three is dense."""
    first, end, only = rows
    np.dot(a[first:end], b, out[first:end])
    for i in range(a.shape[0]):
        if i < first or i >= end:
            for j in range(b.shape[1]):
                out[i, j] = a[i, only[i]] * b[only[i], j]


@njit(cache=True, error_model='numpy')
def short_step(A, dt):
    """Return (h, m) with h = dt/2^m so short that the Taylor series of exp(A h) converges within TAYLOR_TERMS.

    The balanced norm decides, so the result does not depend on the units of x.
    """
    doublings = max(0, math.ceil(math.log2(balanced_norm(A) * dt / TAYLOR_RADIUS + 1e-300)))
    return dt / 2**doublings, doublings


@njit(cache=True, error_model='numpy')
def discretise(A, f, Q, dt):
    """Return (Phi, step, covariance) of dx = f + A (x - x0) + noise of density Q over dt, from x0.

    Phi = exp(A dt)     step = int exp(A s) f ds     covariance = int exp(A s) Q exp(A s)^T ds
    by a Taylor series over a short step h and doublings: X(2h) = X(h) + Phi(h) X(h) [Phi(h)^T].
    """
    n = A.shape[0]
    h, doublings = short_step(A, dt)
    Ah, Phi, step, cov = h * A, np.eye(n) + h * A, h * f, h * Q
    power, moved, spread = Ah.copy(), step.copy(), cov.copy()
    work, other, rows = np.empty((n, n)), np.empty((n, n)), dense_rows(Ah)
    for k in range(2, TAYLOR_TERMS + 2):
        times(Ah, rows, power, work)
        times(Ah, rows, spread, other)
        share = 1.0 / k
        moved = share * np.dot(Ah, moved)
        step += moved
        for i in range(n):
            for j in range(n):
                power[i, j] = share * work[i, j]
                Phi[i, j] += power[i, j]
                spread[i, j] = share * (other[i, j] + other[j, i])
                cov[i, j] += spread[i, j]
    rows = dense_rows(Phi)
    for _ in range(doublings):
        step += np.dot(Phi, step)
        times(Phi, rows, cov, work)
        np.dot(work, Phi.T, other)
        cov += other
        times(Phi, rows, Phi, work)
        Phi, work = work, Phi
    return Phi, step, cov


@njit(cache=True, error_model='numpy')
def assemble(linear, x, noise):
    """Return (A, f, Q) of the state (q, qd, w) with the unknown forces w, or of (q, qd) if x has no w.

    linear: A (2n, 2n), B (2n, n) and rates (2n,) of (q, qd). noise (4, n): densities of the white force, of the drift
    of w and of the acceleration, and the rate [1/s] at which w is forgotten.
    """
    A_model, B, rates = linear
    n, size = B.shape[1], x.size
    A, Q, f = np.zeros((size, size)), np.zeros((size, size)), np.zeros(size)
    A[: 2 * n, : 2 * n] = A_model
    f[: 2 * n] = rates
    Q[n : 2 * n, n : 2 * n] = np.dot(B[n:] * noise[0], B[n:].T)
    for i in range(n):
        Q[n + i, n + i] += noise[2, i]
    if size > 2 * n:
        A[: 2 * n, 2 * n :] = B
        for i in range(2 * n, 3 * n):
            A[i, i], f[i] = -noise[3, i - 2 * n], -noise[3, i - 2 * n] * x[i]
            Q[i, i] = noise[1, i - 2 * n]
    return A, f, Q


@njit(cache=True, error_model='numpy')
def advance(linear, x, P, noise, dt):
    """Return (Phi, x, P) after dt; linear and noise as in assemble."""
    A, f, Q = assemble(linear, x, noise)
    Phi, step, cov = discretise(A, f, Q, dt)
    moved = np.dot(np.dot(Phi, P), Phi.T)
    for i in range(x.size):
        for j in range(i + 1):
            cov[i, j] = cov[j, i] = 0.5 * (cov[i, j] + cov[j, i] + moved[i, j] + moved[j, i])
    return Phi, x + step, cov


@njit(cache=True, error_model='numpy')
def noise_rate(Phi, push, noise, out):
    """Write out (2n,) = diagonal of Phi Q Phi^T of (q, qd); Q as in assemble, push (n, n) = root of its white part."""
    n = push.shape[0]
    row = np.empty(n)
    for i in range(2 * n):
        row[:] = 0.0
        out[i] = 0.0
        for k in range(n):
            out[i] += Phi[i, n + k] ** 2 * noise[2, k]
            for j in range(n):
                row[j] += Phi[i, n + k] * push[k, j]
        for k in range(2 * n, Phi.shape[0]):
            out[i] += Phi[i, k] ** 2 * noise[1, k - 2 * n]
        for j in range(n):
            out[i] += row[j] * row[j]


@njit(cache=True, error_model='numpy')
def glance(linear, x, P, noise, dt):
    """Return (x, variances of q and qd) after dt: x as by advance, at half the cost.

    The noise part of a variance is a trapezoidal integral over the times at which the doublings know Phi: 0, h, 2h, 4h
    ... It is at most a tenth too large.
    """
    A, f, _ = assemble(linear, x, noise)
    size, n, (h, doublings) = x.size, noise.shape[1], short_step(A, dt)
    push = linear[1][n:] * np.sqrt(noise[0])
    Ah, Phi, step = h * A, np.eye(size) + h * A, h * f
    power, moved, work, rows = Ah.copy(), step.copy(), np.empty((size, size)), dense_rows(Ah)
    before, now = np.empty(2 * n), np.empty(2 * n)
    noise_rate(np.eye(size), push, noise, before)
    for k in range(2, TAYLOR_TERMS + 2):
        times(Ah, rows, power, work)
        power, work = work, power
        power *= 1.0 / k
        Phi += power
        moved = np.dot(Ah, moved) / k
        step += moved
    rows = dense_rows(Phi)
    noise_rate(Phi, push, noise, now)
    added = 0.5 * h * (before + now)
    for _ in range(doublings):
        step += np.dot(Phi, step)
        times(Phi, rows, Phi, work)
        Phi, work, before, now = work, Phi, now, before
        noise_rate(Phi, push, noise, now)
        added += 0.5 * h * (before + now)
        h *= 2.0
    spread = np.dot(Phi[: 2 * n], P)
    for i in range(2 * n):
        for j in range(size):
            added[i] += spread[i, j] * Phi[i, j]
    return x + step, added


@njit(cache=True, error_model='numpy')
def factorise(S):
    """Overwrite the lower triangle of S with its Cholesky factor; return False if S is not positive definite."""
    for i in range(S.shape[0]):
        for j in range(i + 1):
            total = S[i, j]
            for k in range(j):
                total -= S[i, k] * S[j, k]
            if i == j:
                if not total > 0.0:
                    return False
                S[i, i] = math.sqrt(total)
            else:
                S[i, j] = total / S[j, j]
    return True


@njit(cache=True, error_model='numpy')
def solve_lower(L, b):
    """Overwrite b (n, m) with L^-1 b, for a lower triangle L."""
    for i in range(b.shape[0]):
        for k in range(i):
            for j in range(b.shape[1]):
                b[i, j] -= L[i, k] * b[k, j]
        for j in range(b.shape[1]):
            b[i, j] /= L[i, i]


@njit(cache=True, error_model='numpy')
def correct(x, P, residual, H, variance):
    """Return (x, P, nis) after an update. If S is not positive definite, nis is inf and nothing changes.

    S = H P H^T + R = L L^T     W = L^-1 H P     x += W^T L^-1 r     P -= W^T W     R = diag(variance)
    nis = r^T S^-1 r. P stays exactly symmetric.
    """
    rows, size = H.shape
    W, S = np.empty((rows, size)), np.empty((rows, rows))
    product(H, P, W)
    product(H, np.ascontiguousarray(W.T), S)
    for i in range(rows):
        S[i, i] += variance[i]
    if not factorise(S):
        return x, P, math.inf
    whitened = residual.copy().reshape(rows, 1)
    solve_lower(S, W)
    solve_lower(S, whitened)
    x_after, P_after = x.copy(), P.copy()
    for k in range(rows):
        x_after += whitened[k, 0] * W[k]
        for i in range(size):
            for j in range(size):
                P_after[i, j] -= W[k, i] * W[k, j]
    return x_after, P_after, np.sum(whitened * whitened)


@njit(cache=True, error_model='numpy')
def surprise(P, residual, H, R, misfit):
    """Return r^T (H P H^T + (1 + misfit^2) R)^-1 r; misfit is the allowed model error in units of R."""
    rows, size = H.shape
    HP, S = np.empty((rows, size)), np.empty((rows, rows))
    product(H, P, HP)
    product(H, np.ascontiguousarray(HP.T), S)
    S += (1.0 + misfit * misfit) * R
    if not factorise(S):
        return math.inf
    whitened = residual.copy().reshape(rows, 1)
    solve_lower(S, whitened)
    return np.sum(whitened * whitened)


@njit(cache=True, error_model='numpy')
def correct_all(x, P, update, check, rule):
    """Return (x, P, nis, count) after sequential updates with the first `count` sensors, all linearised at x.

    update: innovation, H and variance of all sensors; check: the innovation, H and R (k, rows, rows) for the gate of
    each sensor. rule: limit of the surprise, misfit in it, number of coordinates, and their largest move from x. The
    first sensor beyond these limits is rejected and ends the sequence; its value is the last in nis.
    """
    gate, misfit, n, reach = rule[0], rule[1], int(rule[2]), rule[3]
    innovation, H, variance = update
    innovation_c, H_c, R_c = check
    rows = R_c.shape[1]
    nis, start = np.empty(len(R_c)), x
    for k in range(len(nis)):
        part = slice(k * rows, (k + 1) * rows)
        moved = x - start
        judged = innovation_c[part] - np.dot(H_c[part], moved)
        residual = innovation[part] - np.dot(H[part], moved)
        x_after, P_after, nis[k] = correct(x, P, residual, H[part], variance[part])
        is_right = surprise(P, judged, H_c[part], R_c[k], misfit) <= gate
        if not (is_right and np.abs(x_after[:n] - start[:n]).max() < reach):
            return x, P, nis[: k + 1], k
        x, P = x_after, P_after
    return x, P, nis, len(nis)


@njit(cache=True, error_model='numpy')
def wrench_slopes(T, slopes, linear, H):
    """Write H (6, size) = T (dtau_0/d(q, qd) + M_0 dqdd/dx) of the last coordinates; see Process.base_wrench.

    slopes: dtau/dq, dtau/dqd and M of the robot, with the six base forces first; linear: its A and B.
    """
    dq, dqd, M = slopes
    A, B = linear
    n = B.shape[1]
    first = M.shape[0] - n
    dtau, M_0 = np.zeros((6, H.shape[1])), np.ascontiguousarray(M[:6, first:])
    dtau[:, :n], dtau[:, n : 2 * n] = dq[:6, first:], dqd[:6, first:]
    dtau[:, : 2 * n] += np.dot(M_0, A[n:])
    if H.shape[1] > 2 * n:
        dtau[:, 2 * n :] = np.dot(M_0, B[n:])
    np.dot(T, dtau, H)
