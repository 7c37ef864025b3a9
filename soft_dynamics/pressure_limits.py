"""What the chambers of a robot bear, for every safety that stands between a command and the valves."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .description.robot_description import Description

LONGEST_STEP = 0.05  # [s]


@dataclass(frozen=True)
class ChamberLimits:
    """Limits of pressures and of their changes; pressures are gauge, so 0 is vented."""

    pressure_max: float  # [Pa]
    pressure_min: float = 0.0  # [Pa] below 0 with a vacuum supply
    slew: float = 1e6  # [Pa/s] fastest change while a command is followed
    vent_time: float = 1.0  # [s] from the largest pressure to none

    def __post_init__(self) -> None:
        if not -math.inf < self.pressure_min <= 0 < self.pressure_max < math.inf:
            raise ValueError(
                f'pressure_min <= 0 < pressure_max is needed, got {self.pressure_min:g} and {self.pressure_max:g}'
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
        """Return the slope of venting [Pa/s]."""
        return min(self.largest / self.vent_time, self.slew)

    @property
    def ramp_time(self) -> float:
        """Return how long venting takes at most [s]."""
        return self.largest / self.vent_rate

    @property
    def longest_step(self) -> float:
        """Return the time [s] that one cycle may use; one that was held up longer does not catch up with a jump."""
        return LONGEST_STEP

    def reach(self, dt: float, is_followed: bool) -> float:
        """Return how far pressures may change [Pa] in a cycle of dt [s], followed or vented."""
        return min(max(dt, 0.0), self.longest_step) * (self.slew if is_followed else self.vent_rate)


def chamber_limits(robot: Description) -> dict[str, float]:
    """Return the limits that a robot file states, as arguments of ChamberLimits and of what is built on it."""
    return {
        'pressure_max': robot.actuation.pressure_max,
        'pressure_min': robot.actuation.pressure_min,
        'slew': robot.actuation.slew,
        'vent_time': robot.safety.vent_time,
    }
