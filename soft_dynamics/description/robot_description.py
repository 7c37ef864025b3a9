"""The contents of a robot file. SI units; docs/robot_file.md lists the frames and conventions.

Each class is the schema of one block of `robots/<name>.yaml`. `reader.read` fills them and collects all problems.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..errors import RobotFileError, shown
from ..reader import NAME, quantity, read
from ..segments import TYPES, Base, Segment
from ..strict_yaml import YamlError, load
from .actuation import Actuation, chamber_problems
from .robot_files import robot_file
from .safety import Safety
from .sensors import Sensor

Floats = tuple[float, ...]
MOST_SEGMENTS = (
    100  # segment_defaults is merged under each; the time of a step grows with the square of the number
)


@dataclass(frozen=True)
class Mount:
    """Pose of the world of this file in the ROS world (z up). Display and sensors use it; the dynamics do not."""

    position: Floats = quantity((0.0, 0.0, 0.0), unit='m', length=3)
    rpy: Floats = quantity((0.0, 0.0, 0.0), unit='rad', length=3)


@dataclass(frozen=True)
class Description:
    """The top level of a robot file."""

    format: Literal[1]
    name: str = quantity(form=NAME)
    segments: tuple[Segment, ...] = quantity(types=TYPES)
    source: str = ''
    gravity: Floats = quantity(
        (0.0, 0.0, 0.0), unit='m/s^2', length=3, doc='vector in the world of this file'
    )
    base: Base = Base()
    mount: Mount = Mount()
    tip_load: float = quantity(0.0, unit='kg', least=0.0, doc='point mass at the tip frame')
    spline_ends: Literal['not-a-knot', 'natural', 'clamped'] = quantity(
        'not-a-knot',
        doc='end conditions of the centreline spline (robots of hinges only); natural: zero curvature at base and tip; '
        'clamped: along y at the base, zero curvature at the tip',
    )
    actuation: Actuation = Actuation()
    sensors: tuple[Sensor, ...] = ()
    safety: Safety = Safety()


def _cross_checks(robot: Description) -> list[str]:
    """Problems that involve several values: duplicate or unknown names, lists of the wrong length."""
    problems = []
    if not robot.segments:
        problems.append('segments: expected at least one, found none')
    names = [segment.name for segment in robot.segments]
    for k, segment in enumerate(robot.segments):
        if segment.name in names[:k] or segment.name in ('base', 'tip', 'world', 'all'):
            problems.append(f'segments[{k}].name: expected a name not used yet, found {segment.name!r}')
        count = segment.entries
        for key in ('stiffness', 'cubic_stiffness', 'damping', 'rest'):
            given = getattr(getattr(segment, 'material', None), key, ())
            if given and len(given) != count:
                problems.append(f'segments[{k}].material.{key}: expected {count} entries, found {len(given)}')
    if robot.segments and not robot.base.moves and not any(s.moves for s in robot.segments):
        problems.append('segments: expected at least one that moves, found links only')
    if robot.spline_ends != 'not-a-knot' and not all(s.splined for s in robot.segments):
        problems.append(
            f'spline_ends: expected a robot of hinges only, found {robot.spline_ends} without one'
        )
    if len({segment.singular for segment in robot.segments}) > 1:
        problems.append('segments: discs stand alone, expected no other types beside them')
    problems += _repeated('actuation.chambers', [chamber.name for chamber in robot.actuation.chambers])
    problems += _repeated('sensors', [sensor.name for sensor in robot.sensors])
    for k, chamber in enumerate(robot.actuation.chambers):
        problems += chamber_problems(robot.segments, chamber, f'actuation.chambers[{k}]')
    for k, sensor in enumerate(robot.sensors):
        if sensor.frame not in ('base', 'tip', *names):
            problems.append(f'sensors[{k}].frame: expected base, tip or a segment, found {sensor.frame!r}')
    return problems


def _repeated(path: str, names: list[str]) -> list[str]:
    return [
        f'{path}[{k}].name: expected a name not used yet, found {name!r}'
        for k, name in enumerate(names)
        if name in names[:k]
    ]


def from_mapping(data: Any, source: str) -> Description:
    """Build a description. Raise RobotFileError with all problems."""
    problems: list[str] = []
    if isinstance(data, Mapping):
        data = dict(data)
        defaults = data.pop('segment_defaults', {})
        if not isinstance(defaults, Mapping):
            problems.append(f'segment_defaults: expected a mapping, found {shown(defaults)}')
        elif isinstance(segments := data.get('segments'), list):
            if len(segments) > MOST_SEGMENTS:
                found = f'expected at most {MOST_SEGMENTS} entries, found {len(segments)}'
                raise RobotFileError(source, [f'segments: {found}'])
            data['segments'] = [merge(defaults, s) if isinstance(s, Mapping) else s for s in segments]
    robot = read(Description, data, '', problems)
    if robot is not None:
        problems += _cross_checks(robot)
    if robot is None or problems:
        raise RobotFileError(source, problems)
    return robot


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two mappings key by key; `above` takes precedence. Lists and numbers are replaced as a whole."""
    joined = dict(below)
    for key, value in above.items():
        old = joined.get(key)
        joined[key] = merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return joined


def load_description(name: str | Path, overrides: Mapping[str, Any] | None = None) -> Description:
    """Read a shipped robot by name, or a file by path. `overrides` is merged over the file, key by key."""
    if overrides is not None and not isinstance(overrides, Mapping):
        raise ValueError(f'overrides: expected a mapping of keys of the robot file, got {shown(overrides)}')
    path = robot_file(name)
    try:
        data = load(path)
    except YamlError as error:
        raise RobotFileError(path.name, [str(error)]) from None
    if overrides and isinstance(data, Mapping):
        data = merge(data, overrides)
    return from_mapping(data, path.name)
