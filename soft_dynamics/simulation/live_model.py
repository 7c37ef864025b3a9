"""Live model of a robot, driven by its measured pressures."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..array import Array, as_array, as_states
from ..errors import NotConverged
from ..robot import Robot

LONGEST_GAP = 0.5  # [s] longest gap between measured pressures


class Twin:
    """State predicted by the model from a measured start and all pressures since.

    resync_period [s]: period of resetting the model to the measured state; 0: never. The model also resets after a gap,
    a step back in time or a failed simulation; `restarts` counts these.
    """

    def __init__(self, robot: Robot, resync_period: float = 0.0) -> None:
        if not resync_period >= 0.0:
            raise ValueError(f'resync_period must be >= 0 s, got {resync_period}')
        self.robot = robot
        self.resync_period = resync_period
        self.restarts = 0
        self._given = slice(0, 6 if robot.description.base.type == 'prescribed' else 0)
        self._t: float | None = None
        self._start_t = 0.0
        self._q: Array = np.zeros(robot.nq)
        self._qd: Array = np.zeros(robot.nq)
        self._pressure: Array = np.zeros(len(robot.chamber_names))
        self._predict(0.0, 1e-3, self._pressure)  # compile now, so that the first prediction is not late

    def feed(self, t: float, q: Any, qd: Any, pressure: Any) -> tuple[Array, Array]:
        """Feed the measured state and pressures at time t [s]; return the predicted q and qd."""
        states, _ = as_states(self.robot.nq, q=q, qd=qd)
        q, qd, pressure = states['q'][0], states['qd'][0], as_array('pressure', pressure)
        predicted = None if self._t is None else self._predict(self._t, t, pressure)
        if predicted is None:
            self.restarts += self._t is not None
        else:
            self._q, self._qd = predicted
        due = 0.0 < self.resync_period <= t - self._start_t
        if predicted is None or due:
            self._q, self._qd, self._start_t = q.copy(), qd.copy(), t
        self._q[self._given], self._qd[self._given] = q[self._given], qd[self._given]
        self._t, self._pressure = t, pressure
        return predicted or (q, qd)

    def _predict(self, t0: float, t1: float, pressure: Array) -> tuple[Array, Array] | None:
        if not 0.0 < t1 - t0 <= LONGEST_GAP:
            return None
        try:
            motion = self.robot.simulate(self._q, self._qd, [self._pressure, pressure], [t0, t1])
        except NotConverged:
            return None
        return motion.q[-1], motion.qd[-1]
