"""Check that the state follows the pressures: the forces that the motion needs against those of the chambers.

    r = M(q) qdd + c(q, qd) + k(q) + d(q, qd) + g(q) - A(q) p,     |mean of r| <= LOAD tau_max + MISMATCH (|k| + |g|)

A correct state leaves a small r, even with model errors and a load. A state that is frozen, drifts, has a wrong sign
or comes from mirrored frames leaves an r that grows with the pressures, because it does not show their effect. qdd is
the difference of the rates, so errors of single rates cancel in the mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numba import njit

from soft_dynamics.array import Array
from soft_dynamics.pressure_limits import LONGEST_STEP
from soft_dynamics.robot import Robot

from ..allocation.pressure_allocation import first_actuated, generic_pose
from .state_machine import State

LOAD = 0.3  # [-] allowance for loads and obstacles, relative to the largest force of the chambers
MISMATCH = 0.3  # [-] allowance for model errors, relative to elastic force and weight
MEAN_TIME = 0.3  # [s] averaging time of the unexplained force, in which swings and lags cancel
_PERIOD = 0.04  # [s] between two checks; a check costs as much as a law


class ForceBalance:
    """Averages the forces that pressures and model do not explain, on the coordinates that chambers act on."""

    def __init__(self, robot: Robot, matrix: Array | None) -> None:
        """matrix: A of the robot if it is the same in every pose, else None."""
        self._robot, self._matrix = robot, matrix
        actuation = robot.description.actuation
        A = robot.actuation(generic_pose(robot)) if matrix is None else matrix
        low, high = np.full((2, A.shape[1]), [[actuation.pressure_min], [actuation.pressure_max]])
        reach = np.zeros((2, robot.nq))
        _forces(A, low, high, reach[0], reach[1])
        self._allowed = LOAD * np.abs(reach).max(0)  # [N m or N]
        self._allowed[: first_actuated(robot)] = 0.0
        if any(segment.singular for segment in robot.description.segments):
            self._allowed[:] = 0.0  # their directions are undefined near the straight pose
        self.begin()

    def begin(self) -> None:
        """Reset."""
        self._mean: Array = np.zeros(self._robot.nq)  # [N m or N]
        self._last: State | None = None
        self.wrong = ''  # name of the coordinate that does not follow

    def feed(self, state: State, bounds: Callable[[], tuple[Array, Array]]) -> None:
        """Take a plausible state; bounds() returns lower and upper bounds of the pressures [Pa]."""
        last, robot = self._last, self._robot
        if last is None or not 0.0 < state.t - last.t <= MEAN_TIME:
            self._last = state
            return
        passed = state.t - last.t
        if passed < _PERIOD:
            return
        self._last = state
        needed = robot.inverse_dynamics(state.q, state.qd, (state.qd - last.qd) / passed)
        A = robot.actuation(state.q) if self._matrix is None else self._matrix
        part = 1.0 - math.exp(-min(passed, LONGEST_STEP) / MEAN_TIME)
        known = robot.elastic(state.q), robot.gravity(state.q)
        worst = _average(A, bounds(), needed, part, self._allowed, known, self._mean)
        self.wrong = robot.coordinate_names[worst] if worst >= 0 else ''


@njit(cache=True, error_model='numpy')
def _forces(A: Array, low: Array, high: Array, least: Array, most: Array) -> None:
    """Write the bounds of A p for pressures within low and high."""
    for i in range(A.shape[0]):
        least[i] = most[i] = 0.0
        for j in range(A.shape[1]):
            a, b = A[i, j] * low[j], A[i, j] * high[j]
            least[i] += min(a, b)
            most[i] += max(a, b)


@njit(cache=True, error_model='numpy')
def _average(
    A: Array,
    pressure: tuple[Array, Array],
    needed: Array,
    part: float,
    allowed: Array,
    known: tuple[Array, Array],
    mean: Array,
) -> int:
    """Update the mean of the unexplained forces; return the coordinate furthest beyond its limit, or -1."""
    least, most = np.empty(mean.size), np.empty(mean.size)
    _forces(A, pressure[0], pressure[1], least, most)
    worst, excess = -1, 1.0
    for i in range(mean.size):
        explained = min(max(needed[i], least[i]), most[i])
        mean[i] += part * (needed[i] - explained - mean[i])
        if allowed[i] > 0.0:
            beyond = abs(mean[i]) / (allowed[i] + MISMATCH * (abs(known[0][i]) + abs(known[1][i])))
            if beyond > excess:
                worst, excess = i, beyond
    return worst
