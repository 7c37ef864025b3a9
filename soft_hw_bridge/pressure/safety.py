"""The guard between whatever commands pressures and the valves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from soft_dynamics.pressure_limits import ChamberLimits

Array = npt.NDArray[np.float64]

_CYCLES_PER_STEP = 2.0  # a cycle that was held up longer does not catch up with a jump
_AHEAD = (
    0.1  # of the largest pressure: the output may be this far above the measurement, besides the valve's lag
)
_SENSIBLE = 2.0  # times the largest pressure: a command beyond is a mistake, not a wish for the largest
_NEAR_ZERO = 0.02  # of the largest pressure: from vented on, commands begin here
_OVERPRESSURE = 1.1  # of the largest pressure or vacuum: a chamber measured beyond it ...
_OVERPRESSURE_S = 0.1  # ... for this long is filled or emptied by something else than commands


@dataclass(frozen=True)
class PressureLimits(ChamberLimits):
    """What the chambers bear, and how commands and measurements must come."""

    command_timeout: float = 0.2  # [s] without a new command, then vent
    valve_lag: float = 0.0  # [s] by which a measurement follows its set point
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
        """Return how far the output may be ahead of what is measured [Pa], towards pressure or vacuum."""
        return self.slew * self.valve_lag + _AHEAD * self.largest

    @property
    def longest_step(self) -> float:
        return _CYCLES_PER_STEP * self.cycle


class PressureGuard:
    """Follows commands within limits; without a good one it vents.

    It starts disarmed and vented. Armed, it follows the last command at most at the slew rate. It vents along
    a ramp when disarmed, when commands stop or one is unusable (not finite, wrong number, old), and follows again
    with the next good one. `stop` vents at once; after it the guard must be disarmed before it can be armed. Too
    high a measurement stops it too, and so does too deep a vacuum where there is a vacuum supply.

    The output stays within `limits.ahead` of the measured pressure; a chamber that fills more slowly, or not at all,
    holds its own output back. Measurements only bring the output nearer to zero, so a sensor that lies cannot fill a
    chamber. If no measurement is finite for command_timeout, the guard vents and refuses commands; a single chamber
    that is not finite keeps its last finite measurement.

    Once all is vented, for any reason, or the guard was armed or disarmed, it follows nothing until a command is near
    zero and was decided after the first step from then: a sender that commands more has not noticed.

    Times are seconds of a clock that runs in suspend too (CLOCK_BOOTTIME).
    """

    def __init__(self, names: Sequence[str], limits: PressureLimits) -> None:
        self.limits = limits
        self._names = list(names)  # of the chambers
        self.reason = 'disarmed'  # why it vents; '' while a command is followed
        self.clamped = 0  # commands that asked for more than the limits
        self.refused = 0  # commands that were unusable
        self._output: Array = np.zeros(len(names))
        self._target: Array | None = None
        self._commanded_t = self._stepped_t = 0.0
        self._begins_at_zero = True  # waits for a command near zero ...
        self._zero_t = math.inf  # ... that was decided from this time on
        self._measured: Array = np.zeros(len(names))  # [Pa] the last finite measurement of each chamber
        self._over_t: Array = np.full(len(names), math.inf)  # since when each chamber has too much
        self._blind_t = math.inf  # since when no measurement is finite
        self._measured_t = 0.0  # of the last measurement
        self.is_armed = False  # commands are taken
        self.is_stopped = False  # by an emergency stop

    def arm(self) -> None:
        """Allow commands from now on."""
        if self.is_stopped:
            raise ValueError(f'cannot arm: {self.reason}')
        self.is_armed = True
        self._begin_at_zero()  # commands from before are still under way
        self._vent('no command yet')

    def disarm(self) -> None:
        """Vent along the ramp, and follow nothing until armed again."""
        self.is_armed = self.is_stopped = False
        self._begin_at_zero()
        self._vent('disarmed')

    def stop(self, reason: str = 'emergency stop') -> None:
        """Vent at once, and stay vented whatever is commanded."""
        self.is_armed, self.is_stopped = False, True
        self._vent(reason)
        self.lost()

    def lost(self) -> None:
        """Begin from zero: the device is vented, by us or by itself."""
        self._output = np.zeros(len(self._output))
        self._measured = np.zeros(len(self._output))
        self._begin_at_zero()
        if self.is_armed:
            self._vent('no command yet')

    def command(self, t: float, pressure: Sequence[float], age: float = 0.0) -> None:
        """Take a command [Pa] that was decided `age` seconds before time t."""
        if not self.is_armed:
            self.refused += 1
            return
        decided_t = t - max(age, 0.0)
        problem = self._nonsense(pressure, age) or self._hindrance(pressure, decided_t)
        if problem:
            self.refuse(problem)
            return
        self._begins_at_zero = False
        wanted = np.asarray(pressure, np.float64)
        self._target = np.clip(wanted, self.limits.pressure_min, self.limits.pressure_max)
        self.clamped += not np.array_equal(wanted, self._target)
        self._commanded_t = decided_t
        self.reason = ''

    def refuse(self, reason: str) -> None:
        """Vent because of a command that cannot be followed."""
        self.refused += 1
        if self.is_armed:
            self._vent(reason)

    def step(self, t: float) -> Array:
        """Return the pressures to put out at time t [Pa]."""
        dt, self._stepped_t = t - self._stepped_t, t
        if self._target is not None and not 0 <= t - self._commanded_t <= self.limits.command_timeout:
            self._vent(f'no command for {self.limits.command_timeout:g} s')
        vented: Array = np.zeros(len(self._output))
        target = vented if self._target is None else self._target
        most = np.maximum(self._measured + self.limits.ahead, 0.0)
        least = np.minimum(self._measured - self.limits.ahead, 0.0)
        target = np.clip(target, least, most)
        reach = self.limits.reach(dt, self._target is not None)
        moved = np.clip(target, self._output - reach, self._output + reach)
        self._output = np.clip(moved, self.limits.pressure_min, self.limits.pressure_max)
        if self._target is None and not self._output.any() and not self._begins_at_zero:
            self._begin_at_zero()
        self._zero_t = min(self._zero_t, t)
        return self._output.copy()

    def measured(self, t: float, pressure: Array) -> None:
        """Take a measurement [Pa]; stop if a chamber has had more, or less, than it bears for a while."""
        most, least = _OVERPRESSURE * self.limits.pressure_max, _OVERPRESSURE * self.limits.pressure_min
        too_low = np.isfinite(pressure) & (pressure < (least if least < 0.0 else -math.inf))
        self._measured = np.where(np.isfinite(pressure), pressure, self._measured)
        self._measured_t = t
        self._blind_t = math.inf if np.isfinite(pressure).any() else min(self._blind_t, t)
        over_t = np.where((pressure > most) | too_low, np.minimum(self._over_t, t), math.inf)
        self._over_t = np.where(np.isnan(pressure), self._over_t, over_t)
        over = t - self._over_t >= _OVERPRESSURE_S
        if over.any() and not self.is_stopped:
            k = int(np.argmax(over))
            self.stop(
                f'{self._names[k]} measured {f"below {least:g}" if too_low[k] else f"above {most:g}"} Pa'
            )

    def _nonsense(self, pressure: Sequence[float], age: float) -> str:
        """Say what is wrong with a command."""
        if len(pressure) != len(self._output):
            return f'command with {len(pressure)} pressures for {len(self._output)} chambers'
        if not all(map(math.isfinite, pressure)):
            return 'command that is not finite'
        if max(map(abs, pressure), default=0.0) > _SENSIBLE * self.limits.largest:
            return f'command of more than {_SENSIBLE:g} times the largest pressure'
        if not abs(age) <= self.limits.command_timeout:
            return f'command not from the last {self.limits.command_timeout:g} s'
        return ''

    def _hindrance(self, pressure: Sequence[float], decided_t: float) -> str:
        """Say why a good command cannot be followed now."""
        if self._measured_t - self._blind_t > self.limits.command_timeout:
            return 'measured pressures are not finite'
        is_near_zero = max(map(abs, pressure)) <= _NEAR_ZERO * self.limits.largest
        if self._begins_at_zero and not (is_near_zero and decided_t >= self._zero_t):
            return 'waits for a command near zero'
        return ''

    def _begin_at_zero(self) -> None:
        self._begins_at_zero, self._zero_t = True, math.inf

    def _vent(self, reason: str) -> None:
        self._target = None
        self.reason = reason
