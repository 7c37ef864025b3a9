"""The mass that a robot carries at its tip, from its motion, its pressures and the base F/T sensor."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from soft_dynamics.array import Array, as_array, as_states
from soft_dynamics.robot import Robot

LEAST_IN_BLOCK = 4  # states
Call = Callable[[Array, Array, Array], Array]


class TipLoad:
    """Estimates the mass at the tip beyond the robot file, from motion, pressures and, if present, a base F/T sensor.

    The generalised force of a motion and the wrench at the base are both linear in that mass m:
        tau - tau_0 = m (tau_1 - tau_0)        W - W_0 = m (W_1 - W_0)
    where 0 is the robot as it is and 1 the robot with 1 kg more. The estimate is weighted least squares over a sliding
    window. The equation of the wrench is multiplied by its right side at rest, not in motion: accelerations are noisy,
    occur on both sides, and would bias m (method of instrumental variables).

    memory [s]: length of the window; force_noise: standard deviation of the model error of tau [N m or N];
    wrench_noise: that of torque [N m] and force [N] at the base. The base force determines a mass best: it does not
    depend on springs and hardly on the exact place of the mass.
    """

    def __init__(
        self,
        robot: Robot,
        memory: float = 2.0,
        force_noise: float = 0.5,
        wrench_noise: tuple[float, float] = (0.5, 0.2),
    ) -> None:
        if not memory > 0.0:
            raise ValueError(f'memory must be > 0, got {memory}')
        self._without = robot
        self._with = robot.with_tip_load(robot.description.tip_load + 1.0)
        self._memory, self._force_weight = memory, force_noise**-2
        self._wrench_weight = 1.0 / np.repeat(wrench_noise, 3) ** 2
        self._rows: deque[tuple[float, float, float]] = (
            deque()
        )  # t, and the row's contributions to the two sums
        self._information = self._product = 0.0

    def feed(self, t: float, q: Any, qd: Any, qdd: Any, pressure: Any, wrench_B: Any = None) -> None:
        """Take state, pressures [Pa] and the wrench on the robot at its base, in its axes, at time t [s]."""
        if self._rows and not t >= self._rows[-1][0]:
            raise ValueError(f't: expected at least {self._rows[-1][0]:.6f} s, got {t:.6f}')
        states, _ = as_states(self._without.nq, q=q, qd=qd, qdd=qdd)
        state = states['q'][0], states['qd'][0], states['qdd'][0]
        tau = self._without.actuation(state[0]) @ as_array('pressure', pressure)
        free = slice(6 if self._without.description.base.type == 'prescribed' else 0, None)
        light, heavy = self._without, self._with
        moving, left = _terms(light.inverse_dynamics, heavy.inverse_dynamics, state, tau)
        weighted = self._force_weight * moving[free]
        information, product = weighted @ moving[free], weighted @ left[free]
        if wrench_B is not None:
            still = state[0], *np.zeros((2, state[0].size))
            weighted = self._wrench_weight * (heavy.base_wrench(*still) - light.base_wrench(*still))
            moving, left = _terms(light.base_wrench, heavy.base_wrench, state, as_array('wrench_B', wrench_B))
            information, product = information + weighted @ moving, product + weighted @ left
        self._rows.append((t, float(information), float(product)))
        while self._rows[0][0] < t - self._memory:
            self._rows.popleft()
        self._information, self._product = (sum(row[k] for row in self._rows) for k in (1, 2))

    @property
    def mass(self) -> float:
        """[kg]; NaN until it is determined."""
        return self._product / self._information if self._information > 0.0 else math.nan

    @property
    def standard_deviation(self) -> float:
        """[kg]"""
        return self._information**-0.5 if self._information > 0.0 else math.inf


def _terms(
    light: Call, heavy: Call, state: tuple[Array, Array, Array], measured: Array
) -> tuple[Array, Array]:
    """Return the force of 1 kg more, and the part of the measured force that the robot without it does not explain."""
    known = light(*state)
    return heavy(*state) - known, measured - known


class TipLoadOfStates:
    """`TipLoad` from estimated states, whose own accelerations come from a model without the load.

    It averages over blocks of `block` [s] and takes accelerations from the rates at both ends.
    """

    def __init__(self, load: TipLoad, block: float = 0.1) -> None:
        if not block > 0.0:
            raise ValueError(f'block must be > 0, got {block}')
        self._load, self._block = load, block
        self._rows: list[tuple[float, Array, Array, Array, Any]] = []  # t, q, qd, pressure, wrench

    def feed(self, t: float, q: Any, qd: Any, pressure: Any, wrench_B: Any = None) -> bool:
        """Take state, pressures [Pa] and, if present, the wrench on the robot at its base, at time t [s].

        Return whether a block ended, so that there is a new estimate. Skips a state that is not newer than the last.
        """
        if self._rows and not t > self._rows[-1][0]:
            return False
        wrench = None if wrench_B is None else as_array('wrench_B', wrench_B)
        self._rows.append((t, as_array('q', q), as_array('qd', qd), as_array('pressure', pressure), wrench))
        if t - self._rows[0][0] < self._block:
            return False
        times, qs, qds, pressures, wrenches = zip(*self._rows, strict=True)
        seen = [w for w in wrenches if w is not None]
        self._rows = self._rows[-1:]
        if len(times) < LEAST_IN_BLOCK:  # a gap, during which anything may have happened
            return False
        qdd = (qds[-1] - qds[0]) / (times[-1] - times[0])
        mean_wrench = np.mean(seen, 0) if len(seen) == len(times) else None
        self._load.feed(t, np.mean(qs, 0), np.mean(qds, 0), qdd, np.mean(pressures, 0), mean_wrench)
        return True

    @property
    def mass(self) -> float:
        """[kg]; NaN until it is determined."""
        return self._load.mass

    @property
    def standard_deviation(self) -> float:
        """[kg]"""
        return self._load.standard_deviation
