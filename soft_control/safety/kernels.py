"""Per-coordinate rules of `state_machine`, compiled: as NumPy calls they took longer than the law."""

from __future__ import annotations

import math

from numba import njit

from soft_dynamics.array import Array

NOTHING, OTHER_SIZE, NOT_FINITE, TOO_FAR, TOO_FAST, JUMPS = range(6)  # faults of a motion


@njit(cache=True, error_model='numpy')
def all_finite(x: Array) -> bool:
    """Whether every number of a vector is finite."""
    good = True
    for i in range(x.size):
        good &= math.isfinite(x[i])
    return good


@njit(cache=True, error_model='numpy')
def first_wrong(
    limits: tuple[Array, Array, Array], q: Array, qd: Array, before: Array, dt: float
) -> tuple[int, int]:
    """Return the first fault of coordinates, rates, or the step from `before`, and the index of its coordinate.

    |q - centre| <= most,  |qd| <= fastest,  |q - before| <= fastest dt,    limits = (centre, most, fastest)
    qd and before may be empty; then they are not checked.
    """
    centre, most, fastest = limits
    n = centre.size
    if q.size != n or (qd.size != n and qd.size > 0) or (before.size != n and before.size > 0):
        return OTHER_SIZE, 0
    if not (all_finite(q) and all_finite(qd)):
        return NOT_FINITE, 0
    for i in range(n):
        if abs(q[i] - centre[i]) > most[i]:
            return TOO_FAR, i
    for i in range(qd.size):
        if abs(qd[i]) > fastest[i]:
            return TOO_FAST, i
    for i in range(before.size):
        if abs(q[i] - before[i]) > fastest[i] * dt:
            return JUMPS, i
    return NOTHING, 0


@njit(cache=True, error_model='numpy')
def approach(start: Array, target: Array, reach: float, low: float, high: float, p: Array) -> None:
    """Write p: the target, clipped to within `reach` of the start and to between low and high."""
    for i in range(p.size):
        near = min(max(target[i], start[i] - reach), start[i] + reach)
        p[i] = min(max(near, low), high)
