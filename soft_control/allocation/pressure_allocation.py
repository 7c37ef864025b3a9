"""From generalised forces to chamber pressures within limits: the inverse of tau = A(q) p.

Three wishes, each weighing far less than the one before it:

1. the forces:         |W (A p - tau)|, in the least squares sense where a limit or the robot stands against it;
2. no idle tension:    the modes of a segment's chambers that make no force, but for all of them together, stay out.
                       For Wang's four chambers that is p1 + p4 = p2 + p3, for Jensen's p0 + p1 = p2 + p3;
3. co-contraction:     the rest of the freedom brings the mean pressure near the wished level, which sets the stiffness.

With level 0, Wang's eq. 22 and Jensen's eq. 24 come out as the pressures with a vented chamber in each segment.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from soft_dynamics.array import Array, as_array
from soft_dynamics.robot import Robot

from .box_qp import minimise_in_box

BALANCE, EASE = 1e-2, 1e-7  # [-] weights of the second and third wish, squared, beside 1 for the first


class Allocation:
    """Pressures of one robot.

    level: co-contraction, 0 (pressures as low as can be) to 1 (as high as can be).
    weights (nq,): how much each force counts when not all can be had; forces of a moving base never count.
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
            raise ValueError('weights: no chamber works on a force that counts')
        self._unit = actuation.pressure_max - actuation.pressure_min
        self._weights = w / (largest * self._unit)
        self._blocks = _blocks(A)
        self._idle = _idle_modes(A, self._blocks)

    def __call__(self, A: Array, tau: Array, low: Array | None = None, high: Array | None = None) -> Array:
        """Pressures [Pa] for the forces tau (nq,) under the matrix A (nq, chambers) of the present pose.

        low, high: bounds of this moment inside the robot's own, for example what the slew rate leaves.
        """
        p = np.empty(self.low.size)
        lowest = self.low if low is None else low
        highest = self.high if high is None else high
        idle, level = self._idle, self.low[0] + self.level * self._unit
        _allocate(A, tau, self._weights, self._unit, idle, level, lowest, highest, self._blocks, p)
        return p


def first_actuated(robot: Robot) -> int:
    """Index of the first coordinate that chambers may work on: after those of a moving base."""
    return 0 if robot.description.base.type == 'fixed' else 6


def generic_pose(robot: Robot) -> Array:
    """A slightly bent pose: no entry of its actuation matrix is zero by chance, no pose is singular."""
    return robot.rest + 1e-3 * np.cos(np.arange(robot.nq))


def _blocks(A: Array) -> Array:
    """Label of each chamber: those with the same label work, directly or through others, on the same forces."""
    label = np.arange(A.shape[1])
    for row in np.abs(A) > 1e-9 * np.max(np.abs(A)):
        touched = np.unique(label[row])
        if touched.size:
            label[np.isin(label, touched)] = touched[0]
    return np.unique(label, return_inverse=True)[1]


def _idle_modes(A: Array, label: Array) -> Array:
    """Projector (chambers, chambers) on the pressures without force, except those equal in a whole block."""
    projector = np.zeros((label.size, label.size))
    for block in range(label.max() + 1):
        own = np.flatnonzero(label == block)
        _, sigma, Vt = np.linalg.svd(A[:, own])
        null = Vt[np.count_nonzero(sigma > 1e-6 * sigma[0]) :].T
        even = null @ (null.T @ np.ones(own.size))
        P = null @ null.T
        if even @ even > 0.5 * own.size:  # all together make no force either: that is co-contraction
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
