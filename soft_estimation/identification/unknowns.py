"""Unknown parameters of a robot file and their search ranges.

A key is `<segment or chamber>.<field>`, with `*` for any part of a name and `[i]` or `[i:j]` for entries of a list:

    joint1.stiffness    *.damping    actuator.stiffness[0:2]    *_p0.gain    vent_lag    tip_load

One key is one unknown: all numbers that it matches change together, by one factor or by one shift.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from soft_dynamics.array import Array
from soft_dynamics.description.actuation import Chamber
from soft_dynamics.description.robot_description import Description
from soft_dynamics.segments import Segment

KEY = re.compile(r'(?:([\w*?]+)\.)?(\w+)(?:\[(\d+)(?::(\d+))?\])?')
MATERIAL = ('stiffness', 'cubic_stiffness', 'damping', 'rest')
SHIFTED = {'rest': 0.1, 'offset': 0.1, 'position': 2e-3}  # [rad or m] typical size of a shift
ROBOT = {'valve_lag': 'actuation', 'fill_lag': 'actuation', 'vent_lag': 'actuation', 'tip_load': ''}
LAGS = ('valve_lag', 'fill_lag', 'vent_lag')
SPAN = 10.0  # default search range, as a factor on the value in the file
SCALES = 3.0  # the same for values that may change sign


@dataclass(frozen=True)
class Target:
    """A number of a description: which segment or chamber (by index), which field, which entry of a list."""

    owner: str  # segments, chambers, or the field's own name
    place: int
    field: str
    entry: int | None


@dataclass(frozen=True)
class Parameter:
    """An unknown x: its targets are start * exp(x) (factor), start * (1 + x) (scale) or start + unit x (shift)."""

    key: str
    targets: tuple[Target, ...]
    starts: tuple[float, ...]
    kind: str
    unit: float
    low: float  # of x
    high: float

    @property
    def shown(self) -> float:
        """The number in the file that represents all targets: the first nonzero one."""
        return next((start for start in self.starts if start), 0.0)

    def numbers(self, x: float) -> list[float]:
        """Return the values of the targets at x."""
        if self.kind == 'shift':
            return [start + self.unit * x for start in self.starts]
        factor = math.exp(x) if self.kind == 'factor' else 1.0 + x
        return [start * factor for start in self.starts]

    def value(self, x: float) -> float:
        """Return the representative value at x, in the unit of the file."""
        if self.kind == 'shift':
            return self.shown + self.unit * x
        return self.shown * (math.exp(x) if self.kind == 'factor' else 1.0 + x)

    def slope(self, x: float) -> float:
        """d value / dx"""
        return {'factor': self.value(x), 'scale': self.shown, 'shift': self.unit}[self.kind]

    def at(self, value: float) -> float:
        """Return the x of a value."""
        if self.kind == 'shift':
            return (value - self.shown) / self.unit
        ratio = value / self.shown
        return math.log(ratio) if self.kind == 'factor' else ratio - 1.0


def default_keys(robot: Description) -> list[str]:
    """Return the keys of stiffness and damping of every segment that has them in the file.         [Jensen, eq. 23]"""
    keys = []
    for field in ('stiffness', 'damping'):
        keys += [f'{s.name}.{field}' for s in robot.segments if any(_get(s, field) or ())]
    return keys


def select(robot: Description, keys: Iterable[str]) -> tuple[Parameter, ...]:
    """Return the unknowns of keys, each `key` or `key=low:high` with a range in the unit of the file.

    Raises ValueError, naming the key, if it matches nothing, a number twice, or a zero that must be positive.
    """
    found: list[Parameter] = []
    for text in keys:
        key, _, bounds = text.partition('=')
        parameter = _parameter(robot, key.strip())
        taken = {target: other.key for other in found for target in other.targets}
        for target in parameter.targets:
            if target in taken:
                raise ValueError(f'fit: {key} and {taken[target]} name the same number')
        found.append(_bounded(parameter, bounds) if bounds else parameter)
    if not found:
        raise ValueError('fit: expected at least one key, got none, and the file has no springs or dampers')
    return tuple(found)


def apply(robot: Description, parameters: Sequence[Parameter], x: Array) -> Description:
    """Return the description with the unknowns at x (p,)."""
    for parameter, now in zip(parameters, x, strict=True):
        for target, number in zip(parameter.targets, parameter.numbers(float(now)), strict=True):
            robot = _put(robot, target, number)
    return robot


def _parameter(robot: Description, key: str) -> Parameter:
    match = KEY.fullmatch(key)
    if not match:
        raise ValueError(f'fit: expected name.field, name.field[i] or valve_lag, got {key!r}')
    name, field, first, last = match.groups()
    entries = None if first is None else range(int(first), int(last or int(first) + 1))
    targets = list(_targets(robot, name, field, entries))
    if not targets:
        raise ValueError(f'fit: {key!r} matches no number of {robot.name}; {_choices(robot)}')
    starts = tuple(_number(robot, target) for target in targets)
    some = any(starts)
    if field in SHIFTED or (not some and _may_be_negative(robot, targets[0])):
        unit = SHIFTED.get(field) or _typical(robot, targets[0])
        return Parameter(key, tuple(targets), starts, 'shift', unit, -5.0, 5.0)
    if not some:
        raise ValueError(f'fit: {key} is 0 in the file; set a start value of the right size there')
    if _may_be_negative(robot, targets[0]):
        return Parameter(key, tuple(targets), starts, 'scale', 1.0, -SCALES - 1.0, SCALES - 1.0)
    return Parameter(key, tuple(targets), starts, 'factor', 1.0, -math.log(SPAN), math.log(SPAN))


def _bounded(parameter: Parameter, bounds: str) -> Parameter:
    try:
        low, high = (parameter.at(float(text)) for text in bounds.split(':'))
        if not math.isfinite(low + high):
            raise ValueError
    except (ValueError, ZeroDivisionError):
        raise ValueError(f'fit: {parameter.key}: expected =low:high, got {bounds!r}') from None
    low, high = min(low, high), max(low, high)
    if not low < high:
        raise ValueError(f'fit: {parameter.key}: expected a range, got {bounds!r}')
    return dataclasses.replace(parameter, low=low, high=high)


def _targets(robot: Description, name: str | None, field: str, entries: range | None) -> Iterable[Target]:
    if name is None:
        if field in ROBOT and entries is None:
            yield Target(field, 0, field, None)
        return
    chamber = field in {f.name for f in dataclasses.fields(Chamber)} - {'name', 'segment'}
    owner = 'chambers' if chamber else 'segments'
    blocks: Sequence[Chamber | Segment] = robot.actuation.chambers if chamber else robot.segments
    for place, block in enumerate(blocks):
        if not fnmatchcase(block.name, name):
            continue
        value = _get(block, field)
        if isinstance(value, tuple):
            wanted = range(len(value)) if entries is None else entries
            yield from (Target(owner, place, field, k) for k in wanted if k < len(value))
        elif isinstance(value, float) and entries is None:
            yield Target(owner, place, field, None)


def _choices(robot: Description) -> str:
    segments, chambers = (
        ', '.join(block.name for block in blocks) for blocks in (robot.segments, robot.actuation.chambers)
    )
    return f'its segments are {segments}; its chambers {chambers or "none"}'


def _holder(block: Any, field: str) -> Any:
    return block.material if field in MATERIAL and hasattr(block, 'material') else block


def _get(block: Any, field: str) -> Any:
    """Return a field of a segment, its material or a chamber; a missing list is as long as the springs' list."""
    holder = _holder(block, field)
    value = getattr(holder, field, None)
    if value == () and holder is not block:
        return (0.0,) * max(len(getattr(holder, other)) for other in MATERIAL)
    return value


def _block(robot: Description, target: Target) -> Any:
    return (robot.actuation.chambers if target.owner == 'chambers' else robot.segments)[target.place]


def _number(robot: Description, target: Target) -> float:
    if target.owner in ROBOT:
        return float(getattr(robot.actuation if ROBOT[target.owner] else robot, target.field))
    value = _get(_block(robot, target), target.field)
    return float(value if target.entry is None else value[target.entry])


def _may_be_negative(robot: Description, target: Target) -> bool:
    if target.owner in ROBOT:
        return False
    holder = _holder(_block(robot, target), target.field)
    (field,) = (f for f in dataclasses.fields(holder) if f.name == target.field)
    return field.metadata.get('least') is None and field.metadata.get('above') is None


def _typical(robot: Description, target: Target) -> float:
    """Return a size for a number that is zero in the file: the largest of its kind, or the springs' for a cubic one."""
    blocks = robot.actuation.chambers if target.owner == 'chambers' else robot.segments
    kind = 'stiffness' if target.field == 'cubic_stiffness' else target.field
    sizes = [
        abs(number) for block in blocks if isinstance(value := _get(block, kind), tuple) for number in value
    ]
    return max(sizes, default=0.0) or 1.0


def _put(robot: Description, target: Target, number: float) -> Description:
    if target.owner in ROBOT:
        change: dict[str, Any] = {target.field: number}
        if ROBOT[target.owner]:
            change = {'actuation': dataclasses.replace(robot.actuation, **change)}
        return dataclasses.replace(robot, **change)
    block = _block(robot, target)
    value: Any = number
    if target.entry is not None:
        old = _get(block, target.field)
        value = (*old[: target.entry], number, *old[target.entry + 1 :])
    holder = dataclasses.replace(_holder(block, target.field), **{target.field: value})
    block = holder if holder.__class__ is block.__class__ else dataclasses.replace(block, material=holder)
    if target.owner == 'segments':
        segments = (*robot.segments[: target.place], block, *robot.segments[target.place + 1 :])
        return dataclasses.replace(robot, segments=segments)
    chambers = robot.actuation.chambers
    chambers = (*chambers[: target.place], block, *chambers[target.place + 1 :])
    return dataclasses.replace(robot, actuation=dataclasses.replace(robot.actuation, chambers=chambers))
