"""The guard between commands and valves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from soft_dynamics.pressure_limits import ChamberLimits

Array = npt.NDArray[np.float64]

_CYCLES_PER_STEP = 2.0  # a delayed cycle does not catch up with a jump
_AHEAD = 0.1  # of the largest pressure: allowed distance of the output above the measurement, plus valve lag
_SENSIBLE = 2.0  # times the largest pressure: a larger command is an error
_NEAR_ZERO = 0.02  # of the largest pressure: limit of the first command after venting
_OVERPRESSURE = 1.1  # of the largest pressure: a chamber measured above it ...
_OVERPRESSURE_S = 0.1  # ... for this long triggers an emergency stop


@dataclass(frozen=True)
class PressureLimits(ChamberLimits):
    """Limits of the chambers, and timing of commands and measurements."""

    command_timeout: float = 0.2  # [s] vent after this time without a command
    valve_lag: float = 0.0  # [s] lag of a measurement behind its set point
    cycle: float = 0.005  # [s] between two steps

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ('command_timeout', 'cycle'):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f'{name} must be > 0, got {getattr(self, name)}')
        if not 0 <= self.valve_lag < math.inf:
            raise ValueError(f'valve_lag must be >= 0, got {self.valve_lag}')

    @property
    def ahead(self) -> float:
        """Return the allowed distance of the output above the measurement [Pa]."""
        return self.slew * self.valve_lag + _AHEAD * self.largest

    @property
    def longest_step(self) -> float:
        return _CYCLES_PER_STEP * self.cycle


class PressureGuard:
    """Follows commands within limits; vents without a valid one.

    It starts disarmed and vented. Armed, it follows the last command at most at the slew rate. It vents along a ramp
    when disarmed, when commands stop, or when a command is invalid (not finite, wrong number, old), and resumes with
    the next valid command. `stop` vents at once; then disarm the guard before you arm it again. Overpressure also
    stops it.

    The output stays at most `limits.ahead` above the measured pressure, so a chamber that fills slowly, or not at all,
    limits its own output. Measurements only lower the output, so a wrong sensor cannot raise it. If no measurement is
    finite for command_timeout, the guard vents and rejects commands; a single non-finite chamber keeps its last finite
    measurement.

    After venting completely, for any reason, and after disarming, the guard follows only a command near zero. A sender
    that commands more has not noticed the fault.

    Times are seconds of a clock that also runs during suspend (CLOCK_BOOTTIME).
    """

    def __init__(self, names: Sequence[str], limits: PressureLimits) -> None:
        self.limits = limits
        self._names = list(names)  # of the chambers
        self.reason = 'disarmed'  # why it vents; '' while it follows a command
        self.clamped = 0  # commands beyond the limits
        self.refused = 0  # invalid commands
        self._output: Array = np.zeros(len(names))
        self._target: Array | None = None
        self._commanded_t = self._stepped_t = 0.0
        self._begins_at_zero = True  # waits for a command near zero
        self._measured: Array = np.zeros(len(names))  # [Pa] the last finite measurement of each chamber
        self._over_t: Array = np.full(len(names), math.inf)  # start of the overpressure of each chamber
        self._blind_t = math.inf  # start of the time without finite measurements
        self._measured_t = 0.0  # of the last measurement
        self.is_armed = False  # accepts commands
        self.is_stopped = False  # by an emergency stop

    def arm(self) -> None:
        """Accept commands from now on."""
        if self.is_stopped:
            raise ValueError(f'cannot arm: {self.reason}')
        self.is_armed = True
        self._vent('no command yet')

    def disarm(self) -> None:
        """Vent along the ramp, and follow no commands until armed again."""
        self.is_armed = self.is_stopped = False
        self._begins_at_zero = True
        self._vent('disarmed')

    def stop(self, reason: str = 'emergency stop') -> None:
        """Vent at once, and stay vented until disarmed and armed."""
        self.is_armed, self.is_stopped = False, True
        self._vent(reason)
        self.lost()

    def lost(self) -> None:
        """Start from zero: the device has vented."""
        self._output = np.zeros(len(self._output))
        self._measured = np.zeros(len(self._output))
        self._begins_at_zero = True
        if self.is_armed:
            self._vent('no command yet')

    def command(self, t: float, pressure: Sequence[float], age: float = 0.0) -> None:
        """Handle a command [Pa] that was decided `age` seconds before time t."""
        if not self.is_armed:
            self.refused += 1
            return
        problem = self._nonsense(pressure, age) or self._hindrance(pressure)
        if problem:
            self.refuse(problem)
            return
        self._begins_at_zero = False
        wanted = np.asarray(pressure, np.float64)
        self._target = np.clip(wanted, self.limits.pressure_min, self.limits.pressure_max)
        self.clamped += not np.array_equal(wanted, self._target)
        self._commanded_t = t - max(age, 0.0)
        self.reason = ''

    def refuse(self, reason: str) -> None:
        """Vent because of an invalid command."""
        self.refused += 1
        if self.is_armed:
            self._vent(reason)

    def step(self, t: float) -> Array:
        """Return the set points at time t [Pa]."""
        dt, self._stepped_t = t - self._stepped_t, t
        if self._target is not None and not 0 <= t - self._commanded_t <= self.limits.command_timeout:
            self._vent(f'no command for {self.limits.command_timeout:g} s')
        vented: Array = np.zeros(len(self._output))
        target = vented if self._target is None else self._target
        target = np.minimum(target, np.maximum(self._measured + self.limits.ahead, 0.0))
        reach = self.limits.reach(dt, self._target is not None)
        moved = np.clip(target, self._output - reach, self._output + reach)
        self._output = np.clip(moved, self.limits.pressure_min, self.limits.pressure_max)
        self._begins_at_zero |= self._target is None and not self._output.any()
        return self._output.copy()

    def measured(self, t: float, pressure: Array) -> None:
        """Handle a measurement [Pa]; stop if a chamber had overpressure for too long."""
        bearable = _OVERPRESSURE * self.limits.pressure_max
        self._measured = np.where(np.isfinite(pressure), pressure, self._measured)
        self._measured_t = t
        self._blind_t = math.inf if np.isfinite(pressure).any() else min(self._blind_t, t)
        over_t = np.where(pressure > bearable, np.minimum(self._over_t, t), math.inf)
        self._over_t = np.where(np.isnan(pressure), self._over_t, over_t)
        over = t - self._over_t >= _OVERPRESSURE_S
        if over.any() and not self.is_stopped:
            self.stop(f'{self._names[int(np.argmax(over))]} measured above {bearable:g} Pa')

    def _nonsense(self, pressure: Sequence[float], age: float) -> str:
        """Return what is wrong with a command, or ''."""
        if len(pressure) != len(self._output):
            return f'command has {len(pressure)} pressures for {len(self._output)} chambers'
        if not all(map(math.isfinite, pressure)):
            return 'command is not finite'
        if max(map(abs, pressure), default=0.0) > _SENSIBLE * self.limits.largest:
            return f'command is more than {_SENSIBLE:g} times the largest pressure'
        if not abs(age) <= self.limits.command_timeout:
            return f'command is not from the last {self.limits.command_timeout:g} s'
        return ''

    def _hindrance(self, pressure: Sequence[float]) -> str:
        """Return why a valid command cannot be followed now, or ''."""
        if self._measured_t - self._blind_t > self.limits.command_timeout:
            return 'measured pressures are not finite'
        if self._begins_at_zero and max(map(abs, pressure)) > _NEAR_ZERO * self.limits.largest:
            return 'waits for a command near zero'
        return ''

    def _vent(self, reason: str) -> None:
        self._target = None
        self.reason = reason
