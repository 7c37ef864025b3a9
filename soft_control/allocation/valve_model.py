"""Valve model, T dp/dt = c - p, and a check that the valves follow their commands."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from soft_dynamics.array import Array
from soft_dynamics.description.robot_description import Description

_INFLATED = 0.05  # relative to the largest pressure: check chambers above this
_EMPTY = 0.3  # relative to the expected pressure: with less in all chambers ...
_EMPTY_TIME, _EMPTY_LAGS = 0.5, 5.0  # [s], [-] ... for this time plus this many lags, report a fault


class Valves:
    """Modelled pressures, and measured ones once they arrive.

    If the pressure bridge is gone, stopped, waiting for a restart, or without air, the chambers stay empty whatever the
    command. When the bridge recovers, a controller that kept commanding would inflate them unexpectedly. So silence and
    empty chambers are faults. A single chamber that does not follow is not; the bridge reports it.
    """

    def __init__(self, robot: Description) -> None:
        actuation = robot.actuation
        self._lag, self._timeout = actuation.valve_lag, robot.safety.command_timeout  # [s]
        self._range = actuation.pressure_min, actuation.pressure_max  # [Pa]
        self._inflated = _INFLATED * max(actuation.pressure_max, -actuation.pressure_min)  # [Pa]
        self._patience = _EMPTY_TIME + _EMPTY_LAGS * actuation.valve_lag  # [s]
        self.begin(np.zeros(len(actuation.chambers)))

    def begin(self, pressure: Array) -> None:
        """Reset; the chambers have these pressures [Pa]."""
        self.pressure = pressure.copy()
        self._measured: Array = np.full(pressure.size, np.nan)  # [Pa]
        self._measured_t = math.inf  # [s] of the last measurement
        self._followed_t = math.inf  # [s] of the last measurement in which chambers were not empty

    def advance(self, dt: float, command: Array) -> None:
        """Advance the model by dt [s] with a command [Pa]."""
        part = 1.0 - math.exp(-dt / self._lag) if self._lag > 0.0 else 1.0
        self.pressure = self.pressure + part * (command - self.pressure)

    def measured(self, t: float, pressure: Array) -> None:
        """Take the measured pressures [Pa] at time t. Values that are not finite count as not measured and empty."""
        if pressure.size != self.pressure.size:
            raise ValueError(f'pressure: expected {self.pressure.size} numbers, got {pressure.size}')
        measured, empty = _look(self.pressure, pressure, self._inflated)
        if not measured:
            return
        if not empty or math.isinf(self._measured_t):
            self._followed_t = t
        self._measured_t, self._measured = t, np.clip(pressure, *self._range)

    def bounds(self) -> tuple[Array, Array]:
        """Return (least, most) [Pa] of model and measurement, so that a stuck sensor does not discredit the state."""
        return np.fmin(self.pressure, self._measured), np.fmax(self.pressure, self._measured)

    def fault(self, t: float) -> str:
        """Return why commands have no effect at time t, or ''; also '' before the first measurement."""
        if t - self._measured_t > self._timeout:
            return f'no measured pressures for {self._timeout:g} s'
        if self._measured_t - self._followed_t > self._patience:
            return 'chambers stay empty'
        return ''


@njit(cache=True, error_model='numpy')
def reachable(
    limits: tuple[float, float], last: Array, reach: float, p: Array, k: float, bounds: Array
) -> None:
    """Write the bounds (2, chambers) of the pressures that commands c = p + k (bound - p) can aim at.

    Commands stay within the limits and within `reach` of the last ones.
    """
    low, high = limits
    for i in range(p.size):
        bounds[0, i] = p[i] + (max(low, last[i] - reach) - p[i]) / k
        bounds[1, i] = p[i] + (min(high, last[i] + reach) - p[i]) / k


@njit(cache=True, error_model='numpy')
def _look(expected: Array, measured: Array, inflated: float) -> tuple[bool, bool]:
    """Return (any chamber was measured, all chambers that should be inflated are empty)."""
    any_measured, any_inflated, any_there = False, False, False
    for wanted, found in zip(expected, measured):  # noqa: B905, numba has no strict
        is_measured = math.isfinite(found)
        any_measured |= is_measured
        if abs(wanted) > inflated:
            any_inflated = True
            any_there |= is_measured and abs(found) >= _EMPTY * abs(wanted)
    return any_measured, any_inflated and not any_there
