"""What a robot file says of its limits."""

from __future__ import annotations

from dataclasses import dataclass

from ..reader import quantity


@dataclass(frozen=True)
class Safety:
    """When a controller gives up, and how fast it lets the air out."""

    state_timeout: float = quantity(0.1, unit='s', above=0.0)
    command_timeout: float = quantity(0.2, unit='s', above=0.0)
    vent_time: float = quantity(1.0, unit='s', above=0.0, doc='full pressure to none')
    coordinate_limit: float = quantity(
        3.2, unit='rad', above=0.0, doc='largest plausible bend; of a difference of lengths, times its lever'
    )
    rate_limit: float = quantity(50.0, unit='rad/s', above=0.0, doc='likewise of its rate')
    stretch_limit: float = quantity(
        0.5, unit='-', above=0.0, doc='largest plausible change of a length, in that length'
    )
    base_limit: float = quantity(
        3.0, unit='m', above=0.0, doc='of a moving base: how far from where its coordinates are zero'
    )
    base_rate_limit: float = quantity(
        10.0, unit='m/s and rad/s', above=0.0, doc='of a moving base: how fast it moves and turns'
    )
