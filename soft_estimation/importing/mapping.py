"""Schema of `config/import/*.yaml`: the meaning of a recording's columns.

Each class is the schema of one block; `reader.read` fills them and lists all errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Literal

from soft_dynamics.description.robot_files import share_folder
from soft_dynamics.errors import shown
from soft_dynamics.reader import LABEL, NAME, TOPIC, quantity, read
from soft_dynamics.strict_yaml import YamlError, load

from .errors import MappingError

Texts = tuple[str, ...]
Floats = tuple[float, ...]
PRESSURE_UNITS = {'Pa': 1.0, 'kPa': 1e3, 'MPa': 1e6, 'bar': 1e5, 'mbar': 100.0, 'psi': 6894.757293168}
LENGTH_UNITS = {'m': 1.0, 'cm': 1e-2, 'mm': 1e-3}
ANGLE_UNITS = {'rad': 1.0, 'deg': 0.017453292519943295}
FORCE_UNITS = {'N': 1.0, 'mN': 1e-3}
TORQUE_UNITS = {'N m': 1.0, 'N mm': 1e-3}
TIME_UNITS = {'s': 1.0, 'ms': 1e-3, 'us': 1e-6, 'ns': 1e-9}
LengthUnit = Literal['m', 'cm', 'mm']
AngleUnit = Literal['rad', 'deg']


@dataclass(frozen=True)
class Time:
    """A column of times, or the rate of a recording without one (c3d files contain theirs)."""

    column: str = quantity('', form=LABEL)
    unit: Literal['s', 'ms', 'us', 'ns'] = 's'
    rate: float = quantity(0.0, unit='Hz', least=0.0)

    def __post_init__(self) -> None:
        if self.column and self.rate:
            raise ValueError('rate: expected either a column or a rate, found both')


@dataclass(frozen=True)
class Only:
    """Rows in which a column has a given value: one trial of a file with many."""

    column: str = quantity(form=LABEL)
    value: float = quantity()


@dataclass(frozen=True)
class World:
    """Pose of the recording's frame in the ROS world (z up)."""

    position: Floats = quantity((0.0, 0.0, 0.0), unit='m', length=3)
    rpy: Floats = quantity((0.0, 0.0, 0.0), unit='rad', length=3)


@dataclass(frozen=True)
class Pose:
    """A tracked body: position and quaternion (x, y, z, w), or at least three markers of a rigid body.

    trust: normal uses only the body's z axis, turned to point up, with the smallest rotation to it: for bodies that the
    tracking system flips.
    Markers: the origin is their centre, the axes equal the recording's at the time `reference`.
    """

    type: Literal['pose']
    topic: str = quantity(form=TOPIC)
    position: Texts = quantity((), form=LABEL)
    quaternion: Texts = quantity((), form=LABEL)
    markers: Texts = quantity((), form=LABEL)
    unit: LengthUnit = 'm'
    trust: Literal['all', 'normal'] = 'all'
    reference: float = quantity(0.0, unit='s', least=0.0)
    drop_repeats: float = quantity(
        0.0,
        unit='s',
        least=0.0,
        doc='drop rows that repeat the previous one within this time',
    )
    missing: Literal['refuse', 'drop'] = 'refuse'

    def __post_init__(self) -> None:
        tracked = len(self.position) == 3 and len(self.quaternion) == 4 and not self.markers
        if not tracked and (len(self.markers) < 3 or self.position or self.quaternion):
            raise ValueError(
                'position: expected 3 columns and a quaternion of 4, or 3 markers or more instead'
            )


@dataclass(frozen=True)
class Point:
    """A tracked point: three columns, or a marker."""

    type: Literal['point']
    topic: str = quantity(form=TOPIC)
    position: Texts = quantity((), form=LABEL)
    marker: str = quantity('', form=LABEL)
    unit: LengthUnit = 'm'
    drop_repeats: float = quantity(
        0.0,
        unit='s',
        least=0.0,
        doc='drop rows that repeat the previous one within this time',
    )
    missing: Literal['refuse', 'drop'] = 'refuse'

    def __post_init__(self) -> None:
        if (len(self.position) == 3) == bool(self.marker):
            raise ValueError('position: expected 3 columns, or a marker instead')


@dataclass(frozen=True)
class Pressures:
    """Gauge pressures of chambers: a column for each, or a constant for each if only the set point is known."""

    type: Literal['pressures']
    topic: str = quantity(form=TOPIC)
    chambers: Texts = quantity(form=NAME)
    columns: Texts = quantity((), form=LABEL)
    constants: Floats = ()
    unit: Literal['Pa', 'kPa', 'MPa', 'bar', 'mbar', 'psi'] = 'Pa'
    drop_repeats: float = quantity(
        0.0,
        unit='s',
        least=0.0,
        doc='drop rows that repeat the previous one within this time',
    )
    missing: Literal['refuse', 'drop'] = 'refuse'

    def __post_init__(self) -> None:
        if len(self.columns) + len(self.constants) != len(self.chambers) or (self.columns and self.constants):
            raise ValueError(
                f'columns: expected one for each of {len(self.chambers)} chambers (or constants instead), '
                f'found {len(self.columns)} and {len(self.constants)}'
            )


@dataclass(frozen=True)
class Wrench:
    """A force/torque sensor."""

    type: Literal['wrench']
    topic: str = quantity(form=TOPIC)
    force: Texts = quantity(length=3, form=LABEL)
    torque: Texts = quantity(length=3, form=LABEL)
    force_unit: Literal['N', 'mN'] = 'N'
    torque_unit: Literal['N m', 'N mm'] = 'N m'
    drop_repeats: float = quantity(
        0.0,
        unit='s',
        least=0.0,
        doc='drop rows that repeat the previous one within this time',
    )
    missing: Literal['refuse', 'drop'] = 'refuse'


@dataclass(frozen=True)
class Joints:
    """Angles of motors or other joints."""

    type: Literal['joints']
    topic: str = quantity(form=TOPIC)
    names: Texts = quantity(form=NAME)
    columns: Texts = quantity(form=LABEL)
    unit: AngleUnit = 'rad'
    drop_repeats: float = quantity(
        0.0,
        unit='s',
        least=0.0,
        doc='drop rows that repeat the previous one within this time',
    )
    missing: Literal['refuse', 'drop'] = 'refuse'

    def __post_init__(self) -> None:
        if len(self.columns) != len(self.names):
            raise ValueError(
                f'columns: expected {len(self.names)}, one for each name, found {len(self.columns)}'
            )


Topic = Pose | Point | Pressures | Wrench | Joints


@dataclass(frozen=True)
class Mapping:
    """A whole mapping. `names` are the column names of a file without header line."""

    format: Literal[1]
    topics: tuple[Topic, ...]
    source: str = ''
    names: Texts = quantity((), form=LABEL)
    delimiter: str = ','
    time: Time = Time()
    only: tuple[Only, ...] = ()
    world: World = World()
    frame_id: str = quantity('world', form=TOPIC)
    start: str = '2000-01-01T00:00:00+00:00'  # the meaning of time 0 of the recording

    def __post_init__(self) -> None:
        if not self.topics:
            raise ValueError('topics: expected at least one, found none')
        try:
            start = datetime.fromisoformat(self.start)
        except ValueError:
            raise ValueError(
                f'start: expected a time as 2000-01-01T00:00:00+00:00, found {shown(self.start)}'
            ) from None
        if not 1970 < start.year < 2038:
            raise ValueError(
                f'start: expected a year from 1971 to 2037, which stamps can hold, found {shown(self.start)}'
            )
        if len(self.delimiter) != 1 or self.delimiter == '\n':
            raise ValueError(f'delimiter: expected one character, found {shown(self.delimiter)}')
        if start.tzinfo is None:
            object.__setattr__(self, 'start', start.replace(tzinfo=timezone.utc).isoformat())

    @property
    def start_ns(self) -> int:
        return round(datetime.fromisoformat(self.start).timestamp()) * 1_000_000_000


def mapping_names() -> list[str]:
    """Return the names of the shipped mappings."""
    return sorted(path.stem for path in (share_folder() / 'config' / 'import').glob('*.yaml'))


def load_mapping(name: str | Path) -> Mapping:
    """Return a shipped mapping by name, or any by its path. Raises FileNotFoundError or MappingError."""
    path = Path(name)
    if path.suffix not in ('.yaml', '.yml'):
        path = share_folder() / 'config' / 'import' / f'{name}.yaml'
    if not path.is_file():
        shipped = ', '.join(mapping_names())
        raise FileNotFoundError(
            f'no mapping {str(name)!r}; shipped: {shipped}; or give the path of a .yaml file'
        )
    try:
        data = load(path)
    except YamlError as error:
        raise MappingError(path.name, [str(error)]) from None
    problems: list[str] = []
    mapping = read(Mapping, data, '', problems)
    if mapping is None or problems:
        raise MappingError(path.name, problems)
    return mapping
