"""Box-constrained quadratic program, solved exactly by an active set: the kernel of the pressure allocation."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from soft_dynamics.array import Array

Flags = NDArray[np.int64]

FREE, AT_LOW, AT_HIGH = 0, 1, 2
TOLERANCE = 1e-12  # [-] of the gradient, relative to the largest entry of f


@njit(cache=True)
def _newton_direction(H: Array, g: Array, held: Flags, L: Array, d: Array) -> None:
    """Write d with H_ff d_f = -g_f on the free variables and 0 on the held ones, by Cholesky."""
    n = g.size
    for i in range(n):
        d[i] = 0.0
        if held[i] != FREE:
            continue
        for j in range(i + 1):
            if held[j] != FREE:
                continue
            s = H[i, j]
            for k in range(j):
                if held[k] == FREE:
                    s -= L[i, k] * L[j, k]
            L[i, j] = np.sqrt(s) if i == j else s / L[j, j]
        s = -g[i]
        for k in range(i):
            if held[k] == FREE:
                s -= L[i, k] * d[k]
        d[i] = s / L[i, i]
    for i in range(n - 1, -1, -1):
        if held[i] == FREE:
            s = d[i]
            for k in range(i + 1, n):
                if held[k] == FREE:
                    s -= L[k, i] * d[k]
            d[i] = s / L[i, i]


@njit(cache=True)
def _step(x: Array, d: Array, low: Array, high: Array, held: Flags) -> bool:
    """Move along d to the minimum, or to the first bound and hold that variable; return False in the second case."""
    length, blocking = 1.0, -1
    for i in range(x.size):
        room = (low[i] if d[i] < 0.0 else high[i]) - x[i]
        if held[i] == FREE and abs(d[i]) * length > abs(room):
            length, blocking = room / d[i], i
    for i in range(x.size):
        x[i] = min(max(x[i] + length * d[i], low[i]), high[i])
    if blocking >= 0:
        held[blocking] = AT_LOW if d[blocking] < 0.0 else AT_HIGH
        x[blocking] = low[blocking] if d[blocking] < 0.0 else high[blocking]
    return blocking < 0


@njit(cache=True)
def _gradient(H: Array, f: Array, x: Array, g: Array) -> None:
    """Write g = H x - f. At this size a loop is faster than a BLAS call."""
    for i in range(x.size):
        g[i] = -f[i]
        for j in range(x.size):
            g[i] += H[i, j] * x[j]


@njit(cache=True)
def minimise_in_box(H: Array, f: Array, low: Array, high: Array, x: Array) -> int:
    """Write the x that minimises x^T H x/2 - f^T x with low <= x <= high; return the number of steps.

    Primal active-set method; H must be positive definite. It starts from the unconstrained minimum, clipped to the
    bounds, so few steps remain. x always ends inside the box.
    """
    n = f.size
    held = np.zeros(n, np.int64)
    L, d, g = np.empty((n, n)), np.empty(n), -f
    _newton_direction(H, g, held, L, d)
    for i in range(n):
        x[i] = min(max(d[i], low[i]), high[i])
        if d[i] != x[i]:
            held[i] = AT_LOW if d[i] < low[i] else AT_HIGH
    threshold = TOLERANCE * np.max(np.abs(f))
    for steps in range(1, 8 * n + 1):
        _gradient(H, f, x, g)
        _newton_direction(H, g, held, L, d)
        if not _step(x, d, low, high, held):
            continue
        _gradient(H, f, x, g)
        worst, wrong = threshold, -1
        for i in range(n):
            push = -g[i] if held[i] == AT_LOW else g[i] if held[i] == AT_HIGH else 0.0
            if push > worst:
                worst, wrong = push, i
        if wrong < 0:
            return steps
        held[wrong] = FREE
    return 8 * n
