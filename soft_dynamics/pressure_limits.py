"""Pressure limits of the chambers, shared by all safety stages between a command and the valves."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .description.robot_description import Description

LONGEST_STEP = 0.05  # [s]


@dataclass(frozen=True)
class ChamberLimits:
    """Limits of pressures and of their rates; pressures are gauge, so 0 is vented."""

    pressure_max: float  # [Pa]
    pressure_min: float = 0.0  # [Pa] negative with a vacuum supply
    slew: float = 1e6  # [Pa/s] largest rate while following a command
    vent_time: float = 1.0  # [s] from the largest pressure to zero

    def __post_init__(self) -> None:
        if not -math.inf < self.pressure_min <= 0 < self.pressure_max < math.inf:
            raise ValueError(
                f'pressure_min <= 0 < pressure_max must hold, got {self.pressure_min:g} and {self.pressure_max:g}'
            )
        for name in ('slew', 'vent_time'):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f'{name} must be > 0, got {getattr(self, name)}')

    @property
    def largest(self) -> float:
        """Return the largest pressure or vacuum [Pa]."""
        return max(self.pressure_max, -self.pressure_min)

    @property
    def vent_rate(self) -> float:
        """Return the rate of venting [Pa/s]."""
        return min(self.largest / self.vent_time, self.slew)

    @property
    def ramp_time(self) -> float:
        """Return the longest duration of venting [s]."""
        return self.largest / self.vent_rate

    @property
    def longest_step(self) -> float:
        """Return the largest time step [s] of one cycle, so that a delayed cycle does not cause a jump."""
        return LONGEST_STEP

    def reach(self, dt: float, is_followed: bool) -> float:
        """Return the largest change of pressure [Pa] in a cycle of dt [s], when following or venting."""
        return min(max(dt, 0.0), self.longest_step) * (self.slew if is_followed else self.vent_rate)


def chamber_limits(robot: Description) -> dict[str, float]:
    """Return the limits of a robot file as arguments of ChamberLimits and its subclasses."""
    return {
        'pressure_max': robot.actuation.pressure_max,
        'pressure_min': robot.actuation.pressure_min,
        'slew': robot.actuation.slew,
        'vent_time': robot.safety.vent_time,
    }
