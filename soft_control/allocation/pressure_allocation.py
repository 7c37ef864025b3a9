"""From generalised forces to chamber pressures within limits: the inverse of tau = A(q) p.

Three objectives, each with far less weight than the one before it:

1. forces:             minimise |W (A p - tau)|; least squares if a limit or the robot prevents an exact solution;
2. no idle tension:    suppress pressure modes of a segment that make no force, except all chambers together.
                       For Wang's four chambers this gives p1 + p4 = p2 + p3, for Jensen's p0 + p1 = p2 + p3;
3. co-contraction:     use the remaining freedom to bring the mean pressure near the desired level, which sets the
                       stiffness.

With level 0, this gives Wang's eq. 22 and Jensen's eq. 24: the pressures with a vented chamber in each segment.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from soft_dynamics.array import Array, as_array
from soft_dynamics.robot import Robot

from .box_qp import minimise_in_box

BALANCE, EASE = 1e-2, 1e-7  # [-] squared weights of objectives 2 and 3; objective 1 has 1


class Allocation:
    """Pressures of one robot.

    level: co-contraction, from 0 (lowest pressures) to 1 (highest).
    weights (nq,): weight of each force if not all are feasible; forces on a moving base have weight 0.
    """

    def __init__(self, robot: Robot, level: float = 0.0, weights: Array | None = None) -> None:
        if not robot.chamber_names:
            raise ValueError(f'robot {robot.name} has no chambers')
        if not 0.0 <= level <= 1.0:
            raise ValueError(f'level: expected 0 to 1, got {level:g}')
        actuation = robot.description.actuation
        self.robot, self.level = robot, level
        self.low = np.full(len(robot.chamber_names), actuation.pressure_min)  # [Pa]
        self.high = np.full(len(robot.chamber_names), actuation.pressure_max)
        w = np.ones(robot.nq) if weights is None else as_array('weights', weights).copy()
        if w.shape != (robot.nq,) or np.any(w < 0.0):
            raise ValueError(f'weights: expected {robot.nq} numbers >= 0, got {w.tolist()}')
        w[: first_actuated(robot)] = 0.0
        A = w[:, None] * robot.actuation(generic_pose(robot))
        largest = float(np.max(np.linalg.norm(A, axis=0)))
        if not largest > 0.0:
            raise ValueError('weights: no chamber acts on a force with weight > 0')
        self._unit = actuation.pressure_max - actuation.pressure_min
        self._weights = w / (largest * self._unit)
        self._blocks = _blocks(A)
        self._idle = _idle_modes(A, self._blocks)

    def __call__(self, A: Array, tau: Array, low: Array | None = None, high: Array | None = None) -> Array:
        """Return pressures [Pa] for the forces tau (nq,), with the matrix A (nq, chambers) of the current pose.

        low, high: current bounds within the robot's own, for example from the slew rate.
        """
        p = np.empty(self.low.size)
        lowest = self.low if low is None else low
        highest = self.high if high is None else high
        idle, level = self._idle, self.low[0] + self.level * self._unit
        _allocate(A, tau, self._weights, self._unit, idle, level, lowest, highest, self._blocks, p)
        return p


def first_actuated(robot: Robot) -> int:
    """Return the index of the first coordinate that chambers can act on: after those of a moving base."""
    return 0 if robot.description.base.type == 'fixed' else 6


def generic_pose(robot: Robot) -> Array:
    """Return a slightly bent pose, which is not singular and whose actuation matrix has no accidental zeros."""
    return robot.rest + 1e-3 * np.cos(np.arange(robot.nq))


def _blocks(A: Array) -> Array:
    """Return a label per chamber; chambers with the same label act, directly or through others, on the same forces."""
    label = np.arange(A.shape[1])
    for row in np.abs(A) > 1e-9 * np.max(np.abs(A)):
        touched = np.unique(label[row])
        if touched.size:
            label[np.isin(label, touched)] = touched[0]
    return np.unique(label, return_inverse=True)[1]


def _idle_modes(A: Array, label: Array) -> Array:
    """Return the projector (chambers, chambers) on pressures without force, except equal pressure in a block."""
    projector = np.zeros((label.size, label.size))
    for block in range(label.max() + 1):
        own = np.flatnonzero(label == block)
        _, sigma, Vt = np.linalg.svd(A[:, own])
        null = Vt[np.count_nonzero(sigma > 1e-6 * sigma[0]) :].T
        even = null @ (null.T @ np.ones(own.size))
        P = null @ null.T
        if even @ even > 0.5 * own.size:  # equal pressures make no force either: that is co-contraction
            P -= np.outer(even, even) / (even @ even)
        projector[np.ix_(own, own)] = P
    return projector


@njit(cache=True)
def _allocate(
    A: Array,
    tau: Array,
    weights: Array,
    unit: float,
    idle: Array,
    level: float,
    low: Array,
    high: Array,
    label: Array,
    p: Array,
) -> None:
    """p = argmin |W (A p - tau)|^2 + BALANCE |idle p|^2 + EASE |p - level|^2 in the box, block by block."""
    for block in range(label.max() + 1):
        own = np.flatnonzero(label == block)
        n = own.size
        H, f, x = np.zeros((n, n)), np.empty(n), np.empty(n)
        for i in range(n):
            f[i] = EASE * level / unit
            for r in range(tau.size):
                a = weights[r] * A[r, own[i]] * unit
                if a != 0.0:
                    f[i] += a * weights[r] * tau[r]
                    for j in range(n):
                        H[i, j] += a * weights[r] * A[r, own[j]] * unit
            for j in range(n):
                H[i, j] += BALANCE * idle[own[i], own[j]]
            H[i, i] += EASE
        minimise_in_box(H, f, low[own] / unit, high[own] / unit, x)
        for i in range(n):
            p[own[i]] = min(max(x[i] * unit, low[own[i]]), high[own[i]])
