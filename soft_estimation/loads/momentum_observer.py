"""The external generalised force, by the momentum observer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from soft_dynamics.array import Array
from soft_dynamics.robot import Robot


class MomentumObserver:
    """Estimates the external generalised force on the robot, without accelerations.

        r = K (p(t) - p(0) - int (dp/dt of the model + r) dt)       dr/dt = K (tau_external - r)

    p = M qd is the momentum. r follows the external force with the time constant 1/K = `time_constant` [s].
    """

    def __init__(self, robot: Robot, time_constant: float = 0.1) -> None:
        if not time_constant > 0.0:
            raise ValueError(f'time_constant must be > 0, got {time_constant}')
        self._robot, self._time_constant = robot, time_constant
        self._t = -math.inf
        zero: Array = np.zeros(robot.nq)
        self._momentum = self._rate = self._force = zero

    def feed(self, t: float, q: Any, qd: Any, tau: Any) -> Array:
        """Take state and known force (pressures: `robot.actuation(q) @ p`) at time t [s]; return the external force."""
        if not t > self._t:
            raise ValueError(f't: expected after {self._t:.6f} s, got {t:.6f}')
        momentum, rate = self._robot.momentum(q, qd), self._robot.momentum_rate(q, qd, tau)
        if math.isfinite(self._t):
            dt = t - self._t
            mean = (momentum - self._momentum) / dt - 0.5 * (rate + self._rate)  # of the external force
            self._force = mean + (self._force - mean) * math.exp(-dt / self._time_constant)
        self._t, self._momentum, self._rate = t, momentum, rate
        return self._force.copy()
