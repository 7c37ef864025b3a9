"""The matrix work of the filter, compiled: matrices of ten to fifty rows cost less here than a call of BLAS.

All in one file, because numba's cache looks at no other.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

TAYLOR_TERMS, TAYLOR_RADIUS = 7, 0.25  # relative error of the first short step below 1e-9
BALANCING_SWEEPS = 3


@njit(cache=True, error_model='numpy')
def product(a, b, out):
    """out = a b; the zeros of a cost nothing."""
    for i in range(a.shape[0]):
        row = out[i]
        row[:] = 0.0
        for k in range(a.shape[1]):
            if a[i, k] != 0.0:
                for j in range(b.shape[1]):
                    row[j] += a[i, k] * b[k, j]


@njit(cache=True, error_model='numpy')
def congruence(a, p, work, out):
    """out = a p a^T of a symmetric p."""
    product(a, p, work)
    product(a, np.ascontiguousarray(work.T), out)
    for i in range(out.shape[0]):
        for j in range(i):
            out[i, j] = out[j, i] = 0.5 * (out[i, j] + out[j, i])


@njit(cache=True, error_model='numpy')
def balanced_norm(A):
    """Largest row sum of D^-1 A D, for the diagonal D that makes rows and columns alike.   [Osborne 1960]"""
    n = A.shape[0]
    scale = np.ones(n)
    largest = 0.0
    for sweep in range(BALANCING_SWEEPS + 1):
        largest = 0.0
        for i in range(n):
            row, column = 0.0, 0.0
            for j in range(n):
                if j != i:
                    row += abs(A[i, j]) * scale[j] / scale[i]
                    column += abs(A[j, i]) * scale[i] / scale[j]
            if sweep < BALANCING_SWEEPS:  # what only gives or only takes may vanish
                scale[i] *= math.sqrt(max(row, 1e-9) / max(column, 1e-9))
            largest = max(largest, row + abs(A[i, i]))
    return largest


@njit(cache=True, error_model='numpy')
def discretise(A, f, Q, dt):
    """(Phi, step, covariance) of dx = f + A (x - x0) + noise of density Q over dt, from x0.

    Phi = exp(A dt)     step = int exp(A s) f ds     covariance = int exp(A s) Q exp(A s)^T ds
    by a Taylor series over dt/2^m and m doublings: X(2h) = X(h) + Phi(h) X(h) [Phi(h)^T]. None of it depends on the
    units of x, so the balanced norm decides on m.
    """
    n = A.shape[0]
    doublings = max(0, math.ceil(math.log2(balanced_norm(A) * dt / TAYLOR_RADIUS + 1e-300)))
    h = dt / 2**doublings
    Ah, Phi, step, cov = h * A, np.eye(n) + h * A, h * f, h * Q
    power, moved, spread = Ah.copy(), step.copy(), cov.copy()
    work, vector, other = np.empty((n, n)), np.empty(n), np.empty((n, n))
    for k in range(2, TAYLOR_TERMS + 2):
        product(Ah, power, work)
        product(Ah, spread, other)
        for i in range(n):
            vector[i] = 0.0
            for j in range(n):
                power[i, j] = work[i, j] / k
                spread[i, j] = (other[i, j] + other[j, i]) / k
                vector[i] += Ah[i, j] * moved[j] / k
                Phi[i, j] += power[i, j]
                cov[i, j] += spread[i, j]
        moved[:] = vector
        step += moved
    for _ in range(doublings):
        for i in range(n):
            vector[i] = 0.0
            for j in range(n):
                vector[i] += Phi[i, j] * step[j]
        step += vector
        congruence(Phi, cov, work, other)
        cov += other
        product(Phi, Phi, work)
        Phi[:] = work
    return Phi, step, cov


@njit(cache=True, error_model='numpy')
def advance(linear, x, P, noise, dt):
    """(Phi, x, P) after dt of the state (q, qd, w) with the unknown forces w, or of (q, qd) if x has no w.

    linear: A (2n, 2n), B (2n, n) and rates (2n,) of (q, qd). noise (4, n): densities of white force, of the drift of w
    and of acceleration, and the rate [1/s] at which w is forgotten.
    """
    A_model, B, rates = linear
    n, size = B.shape[1], x.size
    A, Q, f = np.zeros((size, size)), np.zeros((size, size)), np.zeros(size)
    A[: 2 * n, : 2 * n] = A_model
    f[: 2 * n] = rates
    for i in range(n, 2 * n):
        for j in range(n, 2 * n):
            for k in range(n):
                Q[i, j] += B[i, k] * noise[0, k] * B[j, k]
        Q[i, i] += noise[2, i - n]
    if size > 2 * n:
        A[: 2 * n, 2 * n :] = B
        for i in range(2 * n, 3 * n):
            A[i, i], f[i] = -noise[3, i - 2 * n], -noise[3, i - 2 * n] * x[i]
            Q[i, i] = noise[1, i - 2 * n]
    Phi, step, cov = discretise(A, f, Q, dt)
    moved, work = np.empty((size, size)), np.empty((size, size))
    congruence(Phi, P, work, moved)
    return Phi, x + step, moved + cov


@njit(cache=True, error_model='numpy')
def factorise(S):
    """Overwrite the lower triangle of S with its Cholesky factor; False if S is not positive definite."""
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
    """Overwrite b (n, m) with L^-1 b, of a lower triangle L."""
    for i in range(b.shape[0]):
        for k in range(i):
            b[i] -= L[i, k] * b[k]
        b[i] /= L[i, i]


@njit(cache=True, error_model='numpy')
def correct(x, P, residual, H, variance, misfit):
    """(x, P, nis, test) after an update in Joseph's form; infinite, and nothing changed, if S is not positive.

    S = H P H^T + R     K = P H^T S^-1     P = (1 - K H) P (1 - K H)^T + K R K^T     R = diag(variance)
    nis = r^T S^-1 r; test is the same with R larger by misfit^2: what the model may be off, in units of the noise.
    """
    rows, size = H.shape
    HP, S = np.empty((rows, size)), np.empty((rows, rows))
    product(H, P, HP)
    product(H, np.ascontiguousarray(HP.T), S)
    wider = S.copy()
    for i in range(rows):
        S[i, i] += variance[i]
        wider[i, i] += (1.0 + misfit * misfit) * variance[i]
    if not (factorise(S) and factorise(wider)):
        return x, P, math.inf, math.inf
    gain, whitened, tested = HP.copy(), residual.copy().reshape(rows, 1), residual.copy().reshape(rows, 1)
    solve_lower(S, gain)
    solve_lower(S, whitened)
    solve_lower(wider, tested)
    x_after = x.copy()
    for i in range(rows):
        x_after += whitened[i, 0] * gain[i]
    for i in range(rows - 1, -1, -1):
        for k in range(i + 1, rows):
            gain[i] -= S[k, i] * gain[k]
        gain[i] /= S[i, i]
    K = np.ascontiguousarray(gain.T)
    keep, work, P_after = np.empty((size, size)), np.empty((size, size)), np.empty((size, size))
    product(K, -H, keep)
    for i in range(size):
        keep[i, i] += 1.0
    congruence(keep, P, work, P_after)
    for i in range(rows):
        gain[i] *= variance[i]
    product(K, gain, work)
    return x_after, P_after + work, np.sum(whitened * whitened), np.sum(tested * tested)


@njit(cache=True, error_model='numpy')
def correct_all(x, P, innovation, H, variance, rule):
    """(x, P, nis, count) after the updates of the first `count` sensors, one after the other, all linearised at x.

    rule: rows of each sensor, the limit of its test, the misfit in it, coordinates, and how far these may move from x.
    The first sensor beyond these limits is not let in and ends it; nis holds its value last.
    """
    rows, gate, misfit, n, reach = int(rule[0]), rule[1], rule[2], int(rule[3]), rule[4]
    nis = np.empty(len(variance) // rows)
    start, residual = x, np.empty(rows)
    for k in range(len(nis)):
        first = k * rows
        H_k = H[first : first + rows]
        for i in range(rows):
            residual[i] = innovation[first + i]
            for j in range(len(x)):
                residual[i] -= H_k[i, j] * (x[j] - start[j])
        x_after, P_after, nis[k], test = correct(x, P, residual, H_k, variance[first : first + rows], misfit)
        if not (test <= gate and np.abs(x_after[:n] - start[:n]).max() < reach):
            return x, P, nis[: k + 1], k
        x, P = x_after, P_after
    return x, P, nis, len(nis)


@njit(cache=True, error_model='numpy')
def rotation_vector(R, out):
    """out = log R, of length 0 to pi [rad]; by the longest row of the quaternion's products, good at every angle."""
    x, y, z = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    w = 1.0 + R[0, 0] + R[1, 1] + R[2, 2]
    if w < 1.0:  # more than 120 degrees
        k = 0
        for j in range(1, 3):
            if R[j, j] > R[k, k]:
                k = j
        sign = 1.0 if (x, y, z)[k] >= 0.0 else -1.0
        w = abs((x, y, z)[k])
        a, b, c = (R[k, 0] + R[0, k]), (R[k, 1] + R[1, k]), (R[k, 2] + R[2, k])
        own = 1.0 + 2.0 * R[k, k] - R[0, 0] - R[1, 1] - R[2, 2]
        x, y, z = (own if k == 0 else a), (own if k == 1 else b), (own if k == 2 else c)
        x, y, z = sign * x, sign * y, sign * z
    sine = math.sqrt(x * x + y * y + z * z)
    scale = 2.0 * math.atan2(sine, w) / sine if sine > 0.0 else 2.0 / w
    out[0], out[1], out[2] = scale * x, scale * y, scale * z


@njit(cache=True, error_model='numpy')
def hung_on(X_P, X_ref, X_meas, out):
    """out = X_P X_ref^-1 X_meas: a measured pose, as it is if the measured reference is where the model has it."""
    for a in range(3):
        out[a, 3] = X_P[a, 3]
        for b in range(3):
            turn = X_P[a, 0] * X_ref[b, 0] + X_P[a, 1] * X_ref[b, 1] + X_P[a, 2] * X_ref[b, 2]
            out[a, 3] += turn * (X_meas[b, 3] - X_ref[b, 3])
            for c in range(3):
                out[a, c] = (0.0 if b == 0 else out[a, c]) + turn * X_meas[b, c]


@njit(cache=True, error_model='numpy')
def pose_innovations(X_M, J_tip, measured, arms, frames, size):
    """Innovation (6k,) and H (6k, size) of k tracked frames from all frames X_M and the tip's Jacobian.

    Innovation (log R_meas R^T, p_meas - p) of the sensor's place, `arms` away from the frame's origin, in M's axes, the
    measured pose hung on the frame it refers to. frames (k, 4): index of the frame, and how many coordinates lie before
    it; the same of the frame it refers to, or -1 and 0. Coordinates between the two turn and move the frame as they
    do the tip; no other does.
    """
    X_meas, X_ref = measured
    tip, R, Z, back = X_M.shape[0] - 1, np.empty((3, 3)), np.empty((3, 4)), np.empty(3)
    innovation, H = np.empty(6 * len(frames)), np.zeros((6 * len(frames), size))
    for s in range(len(frames)):
        frame, columns, reference, first_column = frames[s]
        X, first = X_M[frame], 6 * s
        if reference >= 0:
            hung_on(X_M[reference], X_ref[s], X_meas[s], Z)
        else:
            Z[:] = X_meas[s, :3]
        for a in range(3):
            for b in range(3):
                R[a, b] = Z[a, 0] * X[b, 0] + Z[a, 1] * X[b, 1] + Z[a, 2] * X[b, 2]
        rotation_vector(R, innovation[first : first + 3])
        for a in range(3):  # back: from the tip to the sensor's place
            arm = X[a, 0] * arms[s, 0] + X[a, 1] * arms[s, 1] + X[a, 2] * arms[s, 2]
            arm_meas = Z[a, 0] * arms[s, 0] + Z[a, 1] * arms[s, 1] + Z[a, 2] * arms[s, 2]
            innovation[first + 3 + a] = Z[a, 3] + arm_meas - X[a, 3] - arm
            back[a] = X[a, 3] + arm - X_M[tip, a, 3]
        for j in range(first_column, columns):
            w0, w1, w2 = J_tip[0, j], J_tip[1, j], J_tip[2, j]
            H[first, j], H[first + 1, j], H[first + 2, j] = w0, w1, w2
            H[first + 3, j] = J_tip[3, j] + w1 * back[2] - w2 * back[1]
            H[first + 4, j] = J_tip[4, j] + w2 * back[0] - w0 * back[2]
            H[first + 5, j] = J_tip[5, j] + w0 * back[1] - w1 * back[0]
    return innovation, H


@njit(cache=True, error_model='numpy')
def are_rigid(X, tolerance):
    """True if all X (k, 4, 4) are rigid displacements with finite numbers."""
    for pose in X:
        total = 0.0
        for a in range(3):
            total += pose[a, 3]
            for b in range(a + 1):
                dot = pose[a, 0] * pose[b, 0] + pose[a, 1] * pose[b, 1] + pose[a, 2] * pose[b, 2]
                if not abs(dot - (1.0 if a == b else 0.0)) <= tolerance:
                    return False
        volume = 0.0
        for a in range(3):
            b, c = (a + 1) % 3, (a + 2) % 3
            volume += pose[0, a] * (pose[1, b] * pose[2, c] - pose[1, c] * pose[2, b])
        last = pose[3, 0] == 0.0 and pose[3, 1] == 0.0 and pose[3, 2] == 0.0 and pose[3, 3] == 1.0
        if not (volume > 0.0 and last and math.isfinite(total)):
            return False
    return True


@njit(cache=True, error_model='numpy')
def carry_frames(tangents, frames):
    """Write the axes (k, 3, 3) that are carried from the world's along a curve without twist; z becomes the tangent.

    Each step turns by the shortest way: R = 1 + [v]x + [v]x^2/(1 + a.b), v = a x b, of unit vectors a into b.
    """
    R = np.eye(3)
    column = np.empty(3)
    for k in range(len(tangents)):
        size = math.sqrt(tangents[k, 0] ** 2 + tangents[k, 1] ** 2 + tangents[k, 2] ** 2)
        a0, a1, a2 = R[0, 2], R[1, 2], R[2, 2]
        b0, b1, b2 = tangents[k, 0] / size, tangents[k, 1] / size, tangents[k, 2] / size
        v = (a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0)
        share = 1.0 / (1.0 + a0 * b0 + a1 * b1 + a2 * b2)
        for j in range(3):
            x, y, z = R[0, j], R[1, j], R[2, j]
            along = share * (v[0] * x + v[1] * y + v[2] * z)
            cosine = a0 * b0 + a1 * b1 + a2 * b2
            column[0] = cosine * x + v[1] * z - v[2] * y + along * v[0]
            column[1] = cosine * y + v[2] * x - v[0] * z + along * v[1]
            column[2] = cosine * z + v[0] * y - v[1] * x + along * v[2]
            R[:, j] = column
        frames[k] = R
