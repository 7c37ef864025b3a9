"""Optimal commands over a horizon within limits: a Riccati recursion with a box-constrained quadratic in each step.

x and c are deviations from a nominal motion, x_{k+1} = F_k x_k + G_k c_k. The cost is

    sum over k of  x+^T Q_k x+/2 + q_k^T x+ + |v_k + A c_k - x_k^tau|_R^2/2 + ease |c_k + away_k|^2/2,   x+ = x_{k+1},

with low_k <= c_k <= high_k. The backward pass solves the command of each step exactly within its box; components at
no limit respond to the state linearly. This is control-limited differential dynamic programming after Tassa, Mansard,
Todorov (2014). x^tau are the last entries of x: the forces behind the valves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from soft_dynamics.array import Array

from ..allocation.box_qp import minimise_in_box


class Horizon(NamedTuple):
    """One quadratic problem of N steps, states of size m, forces of size n and commands of size c."""

    F: Array  # (N, m, m)
    G: Array  # (N, m, c)
    Q: Array  # (N, m, m) cost of the state after step k
    q: Array  # (N, m)
    A: Array  # (n, c) forces per command
    R: Array  # (n,)
    v: Array  # (N, n) nominal A c - tau
    away: Array  # (N, c) nominal minus desired commands
    ease: float
    low: Array  # (N, c)
    high: Array  # (N, c)


@njit(cache=True)
def best_commands(horizon: Horizon, c: Array) -> None:
    """Write the optimal commands (N, c), relative to the nominal ones, for a motion that starts on the nominal one."""
    F, G, Q, q, A, R, v, away, ease, low, high = horizon
    N, m, size = G.shape
    n = R.size
    K = np.zeros((N, size, m))
    S, s = np.zeros((m, m)), np.zeros(m)
    AR = A.T * R  # (c, n)
    effort = AR @ A + ease * np.eye(size)
    for k in range(N - 1, -1, -1):
        P, p = S + Q[k], s + q[k]
        FP, GP = F[k].T @ P, G[k].T @ P
        Hxx, Hux, Huu = FP @ F[k], GP @ F[k], GP @ G[k] + effort
        hx, hu = F[k].T @ p, G[k].T @ p + AR @ v[k] + ease * away[k]
        Hux[:, m - n :] -= AR
        for i in range(n):
            Hxx[m - n + i, m - n + i] += R[i]
            hx[m - n + i] -= R[i] * v[k, i]
        minimise_in_box(Huu, -hu, low[k], high[k], c[k])
        free = np.flatnonzero((c[k] > low[k]) & (c[k] < high[k]))
        if free.size:
            L = np.empty((free.size, free.size))
            sides = np.empty((free.size, m))
            for i in range(free.size):
                sides[i] = -Hux[free[i]]
                for j in range(free.size):
                    L[i, j] = Huu[free[i], free[j]]
            gains = np.linalg.solve(L, sides)
            for i in range(free.size):
                K[k, free[i]] = gains[i]
        KH = K[k].T @ Huu
        S = Hxx + KH @ K[k] + K[k].T @ Hux + Hux.T @ K[k]
        S = 0.5 * (S + S.T)
        s = hx + KH @ c[k] + K[k].T @ hu + Hux.T @ c[k]
    x = np.zeros(m)
    for k in range(N):
        c[k] = np.minimum(np.maximum(c[k] + K[k] @ x, low[k]), high[k])
        x = F[k] @ x + G[k] @ c[k]
