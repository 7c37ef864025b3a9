"""What a robot file says of its chambers, and of their pressures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..errors import one_line
from ..reader import NAME, quantity
from ..segments import TYPES, Segment

Floats = tuple[float, ...]


@dataclass(frozen=True)
class Chamber:
    """A pressure chamber and the generalised forces that it causes.

    gain        identified force per pressure on each coordinate of the segment
    volume      virtual work p dV of a chamber of `area` at `position` in the cross-section of an arc
    tip_wrench  wrench of such a chamber at the segment's tip, and minus its components at the segment's base [Mehl]
    end_force   force p area along z at the centre of a disc [Schultz]
    """

    name: str = quantity(form=NAME)
    segment: str = quantity(form=NAME)  # or 'all'
    work: Literal['gain', 'volume', 'tip_wrench', 'end_force'] = 'gain'
    gain: Floats = quantity((), unit='N m/Pa')
    area: float = quantity(0.0, unit='m^2', least=0.0)
    position: Floats = quantity((0.0, 0.0), unit='m', length=2)


@dataclass(frozen=True)
class Actuation:
    """The chambers and the values they share."""

    chambers: tuple[Chamber, ...] = ()
    pressure_min: float = quantity(0.0, unit='Pa', most=0.0, doc='lower limit, gauge; a vented chamber has 0')
    pressure_max: float = quantity(0.0, unit='Pa', doc='upper limit, gauge; greater than `pressure_min`')
    slew: float = quantity(1e6, unit='Pa/s', above=0.0, doc='largest rate of change of a commanded pressure')
    valve_lag: float = quantity(0.0, unit='s', least=0.0, doc='time constant of the valves, first order')
    fill_lag: float = quantity(
        0.0, unit='s', least=0.0, doc='time constant with which a chamber fills behind its pressure sensor'
    )
    vent_lag: float = quantity(0.0, unit='s', least=0.0, doc='time constant with which it vents')

    def __post_init__(self) -> None:
        if self.chambers and not self.pressure_max > self.pressure_min:
            raise ValueError(
                f'pressure_max: expected > pressure_min {self.pressure_min:g}, found {self.pressure_max:g}'
            )


def chamber_problems(segments: Sequence[Segment], chamber: Chamber, path: str) -> list[str]:
    """The first mistake of a chamber that shows only beside the segments."""
    names = [segment.name for segment in segments]
    if chamber.segment != 'all' and chamber.segment not in names:
        known = one_line(', '.join(names), 500)
        return [f'{path}.segment: expected all or one of {known}, found {chamber.segment!r}']
    targets = [s for s in segments if chamber.segment in ('all', s.name) and s.moves]
    if not targets:
        return [f'{path}.segment: expected a segment that moves, found {chamber.segment!r}']
    if not all(chamber.work in target.works for target in targets):
        wanted = ' or '.join(name for name, cls in TYPES.items() if chamber.work in cls.works)
        return [f'{path}.work: {chamber.work} needs a segment of type {wanted}']
    if chamber.work != 'gain':
        return [] if chamber.area > 0.0 else [f'{path}.area: expected > 0 [m^2], found {chamber.area:g}']
    counts = {target.entries for target in targets}
    if counts != {len(chamber.gain)}:
        expected = ' and '.join(map(str, sorted(counts)))
        return [f'{path}.gain: expected {expected} entries, found {len(chamber.gain)}']
    return []
