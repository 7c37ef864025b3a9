"""Kernels of pose measurements: innovations, their derivatives and their covariance."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from soft_dynamics.geometry import so3
from soft_dynamics.geometry.se3 import rotation
from soft_dynamics.kernels import vec3

from .kernels import correct_all, solve_lower


@njit(cache=True, error_model='numpy')
def hung_on(X_P, X_ref, X_meas, out):
    """Write out = X_P X_ref^-1 X_meas: the measured pose, if the measured reference is moved to the model's."""
    for a in range(3):
        out[a, 3] = X_P[a, 3]
        for b in range(3):
            turn = X_P[a, 0] * X_ref[b, 0] + X_P[a, 1] * X_ref[b, 1] + X_P[a, 2] * X_ref[b, 2]
            out[a, 3] += turn * (X_meas[b, 3] - X_ref[b, 3])
            for c in range(3):
                out[a, c] = (0.0 if b == 0 else out[a, c]) + turn * X_meas[b, c]


@njit(cache=True, error_model='numpy')
def pose_innovations(X_M, J_tip, measured, place, size):
    """Return innovation (6k,), H (6k, size) and sensor positions p_MS (k, 3) of k tracked frames, from all frames X_M.

    The innovation is (log R_meas R^T, p_meas - p) at the sensor, in M's axes, with the measured pose relative to its
    reference frame. place: see sensing.Places. Coordinates between a frame and its reference move it as they move the
    tip, whose Jacobian is J_tip; other coordinates do not.
    """
    X_meas, X_ref = measured
    arms, frames, count = place.p_FS, place.frames, len(place.frames)
    tip, Z, back = X_M.shape[0] - 1, np.empty((3, 4)), np.empty(3)
    innovation, H, p_MS = np.empty(6 * count), np.zeros((6 * count, size)), np.empty((count, 3))
    for s in range(count):
        frame, columns, reference, first_column = frames[s]
        X, first = X_M[frame], 6 * s
        if reference >= 0:
            hung_on(X_M[reference], X_ref[s], X_meas[s], Z)
        else:
            Z[:] = X_meas[s, :3]
        turn = vec3.matmul(rotation(Z), vec3.transpose(rotation(X)))
        innovation[first], innovation[first + 1], innovation[first + 2] = so3.log_kernel(turn)
        for a in range(3):  # vector from the tip back to the sensor
            arm = X[a, 0] * arms[s, 0] + X[a, 1] * arms[s, 1] + X[a, 2] * arms[s, 2]
            arm_meas = Z[a, 0] * arms[s, 0] + Z[a, 1] * arms[s, 1] + Z[a, 2] * arms[s, 2]
            p_MS[s, a] = X[a, 3] + arm
            innovation[first + 3 + a] = Z[a, 3] + arm_meas - p_MS[s, a]
            back[a] = p_MS[s, a] - X_M[tip, a, 3]
        for j in range(first_column, columns):
            w0, w1, w2 = J_tip[0, j], J_tip[1, j], J_tip[2, j]
            H[first, j], H[first + 1, j], H[first + 2, j] = w0, w1, w2
            H[first + 3, j] = J_tip[3, j] + w1 * back[2] - w2 * back[1]
            H[first + 4, j] = J_tip[4, j] + w2 * back[0] - w0 * back[2]
            H[first + 5, j] = J_tip[5, j] + w0 * back[1] - w1 * back[0]
    return innovation, H, p_MS


@njit(cache=True, error_model='numpy')
def add_misfit(X_M, J_tip, span, misfit, R):
    """Add the model error of the segments between two frames to R (6, 6).

    A segment of length l that bends by b may end misfit[0] l b elsewhere, and rotated by misfit[1] b^2 about each axis
    about which its own coordinates do not rotate it. span: first and last frame, and the coordinates before each frame.
    """
    X_M, starts = X_M[span[0] : span[1] + 1], span[2]
    axes = np.empty((3, 3))
    for i in range(len(X_M) - 1):
        A, B = X_M[i], X_M[i + 1]
        length = 0.0
        for a in range(3):
            length += (B[a, 3] - A[a, 3]) ** 2
        r = so3.log_kernel(vec3.matmul(vec3.transpose(rotation(A)), rotation(B)))
        bend = math.sqrt(vec3.dot(r, r))
        turned, count = (misfit[1] * bend * bend) ** 2, 0
        for j in range(starts[span[0] + i], starts[span[0] + i + 1]):
            w = J_tip[:3, j].copy()
            for k in range(count):
                w -= (w[0] * axes[k, 0] + w[1] * axes[k, 1] + w[2] * axes[k, 2]) * axes[k]
            size = math.sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2])
            if size > 1e-6 and count < 3:
                axes[count] = w / size
                count += 1
        for a in range(3):
            R[3 + a, 3 + a] += (misfit[0] * bend) ** 2 * length
            R[a, a] += turned
            for b in range(3):
                for k in range(count):
                    R[a, b] -= turned * axes[k, a] * axes[k, b]


@njit(cache=True, error_model='numpy')
def pose_covariance(X_M, J_tip, p_MS, place, doubt):
    """Return R (6k, 6k) of the innovations of k poses without misfit, and the misfit (k, 6, 6) of each.

    e_k = n_k - T_k n_ref + misfit of the segments between,  T = [1, 0; -[d]x, 1],  d from the reference to the sensor.
    So the noise of a pose is also in the poses that refer to it.
    doubt: variance (k, 4) of rotation and position, of the pose and of its reference; misfit as in add_misfit.
    """
    variance, misfit = doubt
    count = len(place.frames)
    R, missed = np.zeros((6 * count, 6 * count)), np.zeros((count, 6, 6))
    T, own = np.zeros((count, 6, 6)), np.empty(6)
    for s in range(count):
        frame, _, reference, _ = place.frames[s]
        block = R[6 * s : 6 * s + 6, 6 * s : 6 * s + 6]
        add_misfit(X_M, J_tip, (max(reference, 0), frame, place.starts), misfit, missed[s])
        for a in range(6):
            block[a, a] = variance[s, a // 3]
        if reference < 0:
            continue
        X, arm, d = X_M[reference], place.p_ref[s], np.empty(3)
        for a in range(3):
            d[a] = p_MS[s, a] - X[a, 3] - X[a, 0] * arm[0] - X[a, 1] * arm[1] - X[a, 2] * arm[2]
            T[s, a, a] = T[s, 3 + a, 3 + a] = 1.0
        T[s, 3, 1], T[s, 3, 2], T[s, 4, 2] = d[2], -d[1], d[0]
        T[s, 4, 0], T[s, 5, 0], T[s, 5, 1] = -d[2], d[1], -d[0]
        for a in range(6):
            own[a] = variance[s, 2 + a // 3]
        block += np.dot(T[s] * own, T[s].T)
        for other in range(s):
            shared = R[6 * s : 6 * s + 6, 6 * other : 6 * other + 6]
            if other == place.parent[s]:
                shared -= T[s] * own
            elif place.parent[other] == place.parent[s] and place.parent[s] >= 0:
                shared += np.dot(T[s] * own, T[other].T)
    return R, missed


@njit(cache=True, error_model='numpy')
def pose_reading(X_M, J_tip, measured, place, doubt, size):
    """Return (white innovation, its H, innovation, H, R (k, 6, 6)) of k poses.

    White: each combined with those before it, so that the noise has unit variance. doubt: as in pose_covariance, and
    the number of samples that share a misfit; in the white innovation, one of many, it weighs as much as all of them.
    """
    innovation, H, p_MS = pose_innovations(X_M, J_tip, measured, place, size)
    R, missed = pose_covariance(X_M, J_tip, p_MS, place, doubt[:2])
    judged = np.empty_like(missed)
    for s in range(len(missed)):
        block = R[6 * s : 6 * s + 6, 6 * s : 6 * s + 6]
        judged[s] = block + missed[s]
        block += doubt[2] * missed[s]
    L = np.linalg.cholesky(R)
    white, white_H = innovation.copy().reshape(-1, 1), H.copy()
    solve_lower(L, white)
    solve_lower(L, white_H)
    return white.ravel(), white_H, innovation, H, judged


@njit(cache=True, error_model='numpy')
def correct_by_poses(belief, frames, measured, place, doubt, rule, after):
    """Write (x, P, nis) after the poses of the first sensors into `after`, and return how many these are.

    belief: x and P. frames: all X_M and the tip's Jacobian at x. See pose_reading for the poses, and correct_all for
    the rule.
    """
    x, P = belief
    reading = pose_reading(frames[0], frames[1], measured, place, doubt, x.size)
    update = (reading[0], reading[1], np.ones(reading[0].size))
    x, P, nis, count = correct_all(x, P, update, reading[2:], rule)
    after[0][:] = x
    after[1][:] = P
    after[2][: nis.size] = nis
    return count
