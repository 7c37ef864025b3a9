"""What a robot file says of its limits."""

from __future__ import annotations

from dataclasses import dataclass

from ..reader import quantity


@dataclass(frozen=True)
class Safety:
    """When controllers and bridges vent the robot, and how fast."""

    state_timeout: float = quantity(0.1, unit='s', above=0.0)
    command_timeout: float = quantity(0.2, unit='s', above=0.0)
    vent_time: float = quantity(1.0, unit='s', above=0.0, doc='time from full pressure to zero')
    coordinate_limit: float = quantity(
        3.2,
        unit='rad',
        above=0.0,
        doc='largest plausible bend; difference coordinates: multiplied by the lever',
    )
    rate_limit: float = quantity(50.0, unit='rad/s', above=0.0, doc='largest plausible rate of a bend')
    stretch_limit: float = quantity(
        0.5, unit='-', above=0.0, doc='largest plausible change of a length, as a fraction of the length'
    )
    base_limit: float = quantity(
        3.0, unit='m', above=0.0, doc='moving base: largest distance from the origin of its coordinates'
    )
    base_rate_limit: float = quantity(
        10.0, unit='m/s and rad/s', above=0.0, doc='moving base: largest linear and angular speed'
    )
