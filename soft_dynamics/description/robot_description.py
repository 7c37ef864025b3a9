"""The contents of a robot file. SI units; docs/robot_file.md lists the frames and conventions.

Each class is the schema of one block of `robots/<name>.yaml`. `reader.read` fills them and collects all problems.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..errors import RobotFileError, one_line, shown
from ..reader import NAME, quantity, read
from ..strict_yaml import YamlError, load
from .inertia import check_inertia
from .robot_files import robot_file

Floats = tuple[float, ...]
MOST_SEGMENTS = (
    100  # segment_defaults is merged under each; the time of a step grows with the square of the number
)


@dataclass(frozen=True)
class Material:
    """Spring and damper of each coordinate of a segment: k (q - rest) + k3 (q - rest)^3 + d qd."""

    stiffness: Floats = quantity((), unit='N m/rad or N/m', least=0.0)
    cubic_stiffness: Floats = quantity((), unit='N m/rad^3 or N/m^3')
    damping: Floats = quantity((), unit='N m s/rad or N s/m', least=0.0)
    rest: Floats = quantity((), unit='rad or m', doc='coordinate at which the spring is relaxed')


@dataclass(frozen=True)
class Arc:
    """A constant-curvature segment: Jensen (`bend` coordinates) or Mehl (`difference` coordinates)."""

    type: Literal['arc']
    name: str = quantity(form=NAME)
    length: float = quantity(unit='m', above=0.0)
    mass: float = quantity(unit='kg', least=0.0)
    radius: float = quantity(0.0, unit='m', least=0.0, doc='of the cross-section; gives the rotary inertia')
    extensible: bool = False
    placement: Literal['lumped', 'point', 'distributed'] = 'lumped'
    quadrature_points: int = quantity(8, least=1, most=16)
    coordinates: Literal['bend', 'difference'] = 'bend'
    lever: float = quantity(0.0, unit='m', least=0.0, doc='d; required by difference coordinates')
    material: Material = Material()

    def __post_init__(self) -> None:
        if self.coordinates == 'difference' and self.lever == 0.0:
            raise ValueError('lever: expected > 0 [m] with difference coordinates, found 0')


@dataclass(frozen=True)
class Link:
    """A rigid link along z of the frame it starts from."""

    type: Literal['link']
    name: str = quantity(form=NAME)
    length: float = quantity(unit='m', least=0.0)
    mass: float = quantity(0.0, unit='kg', least=0.0)
    com: Floats | None = quantity(
        None, unit='m', length=3, doc='measured from the start of the link; default: its midpoint'
    )
    inertia: Floats = quantity(
        (0.0, 0.0, 0.0), unit='kg m^2', doc='about the centre of mass: xx, yy, zz[, xy, xz, yz]'
    )

    def __post_init__(self) -> None:
        if len(self.inertia) not in (3, 6) or min(self.inertia[:3]) < 0.0:
            raise ValueError(
                f'inertia: expected xx, yy, zz >= 0 [kg m^2] and maybe xy, xz, yz, found {shown(self.inertia)}'
            )
        check_inertia(self.inertia)


@dataclass(frozen=True)
class Universal:
    """A segment of Wang: two straight links and a universal joint, theta1 about y, then theta2 about x."""

    type: Literal['universal']
    name: str = quantity(form=NAME)
    length: float = quantity(
        unit='m', above=0.0, doc='of the straight segment; each link has half of it at rest'
    )
    mass: float = quantity(unit='kg', least=0.0)
    joint_mass_fraction: float = quantity(
        0.0, least=0.0, most=1.0, doc='fraction of the mass located at the universal joint'
    )
    lengths: Literal['fixed', 'free'] = 'fixed'
    axis_order: Literal['yx', 'xy'] = 'yx'  # of the lists in material and gain; q is always in the order yx
    material: Material = Material()
    link_stiffness: float = quantity(
        0.0, unit='N/m', least=0.0, doc='of each link; used with `lengths: free`'
    )
    link_damping: float = quantity(
        0.0, unit='N s/m', least=0.0, doc='of each link; used with `lengths: free`'
    )


@dataclass(frozen=True)
class Hinge:
    """A planar segment of Godage: a hinge about z, then a rigid link along y."""

    type: Literal['hinge']
    name: str = quantity(form=NAME)
    length: float = quantity(unit='m', above=0.0)
    mass: float = quantity(unit='kg', least=0.0)
    com_distance: float | None = quantity(
        None, unit='m', doc='from the hinge to the centre of mass; default: half the length'
    )
    inertia: float | None = quantity(
        None, unit='kg m^2', least=0.0, doc='about z through the centre of mass; default: m l^2/12'
    )
    offset: float = quantity(0.0, unit='rad', doc='angle of this hinge in the unloaded actuator')
    material: Material = Material()


@dataclass(frozen=True)
class Spring:
    """A spring between the rim of a disc and the rim of the previous disc."""

    angle: float = quantity(
        unit='rad', doc='place on the rim: angle about +z from the thread, seen from the centre'
    )
    stiffness: float = quantity(unit='N/m', least=0.0)
    rest_length: float = quantity(unit='m', least=0.0)


@dataclass(frozen=True)
class Disc:
    """A disc of Schultz on an inextensible thread, with coordinates alpha, beta, gamma, psi, phi."""

    type: Literal['disc']
    name: str = quantity(form=NAME)
    thread_length: float = quantity(unit='m', above=0.0)
    radius: float = quantity(unit='m', above=0.0)
    mass: float = quantity(unit='kg', above=0.0)
    inertia: Floats | None = quantity(
        None, unit='kg m^2', length=3, above=0.0, doc='about the centre; default: that of a hoop'
    )
    inner_radius: float | None = quantity(
        None,
        unit='m',
        above=0.0,
        doc='radius of the previous disc, where the springs start; default: its `radius`',
    )
    springs: tuple[Spring, ...] = ()
    angles: Literal['axis_angle', 'zxz'] = 'axis_angle'
    damping: Floats = quantity((0.0,) * 5, unit='N m s/rad', length=5, least=0.0)
    damping_on: Literal['angles', 'rates'] = quantity(
        'angles',
        doc='angles: b qd, as in the paper; rates: b w on the body rates. `simulate` always uses rates: '
        '[Schultz](theory/schultz.md)',
    )

    def __post_init__(self) -> None:
        if self.inertia is not None:
            check_inertia(self.inertia)


Segment = Arc | Link | Universal | Hinge | Disc


@dataclass(frozen=True)
class Base:
    """The base of the robot: fixed, moved by a prescribed motion, or free."""

    type: Literal['fixed', 'prescribed', 'free'] = 'fixed'
    position: Floats = quantity(
        (0.0, 0.0, 0.0),
        unit='m',
        length=3,
        doc='of the base; prescribed, free: of the origin of its coordinates',
    )
    rpy: Floats = quantity((0.0, 0.0, 0.0), unit='rad', length=3, doc='fixed-axis roll, pitch, yaw')
    mass: float = quantity(0.0, unit='kg', least=0.0)
    inertia: Floats = quantity((0.0, 0.0, 0.0), unit='kg m^2', length=3, least=0.0)

    def __post_init__(self) -> None:
        check_inertia(self.inertia)
        if self.type == 'free' and not (self.mass > 0.0 and min(self.inertia) > 0.0):
            raise ValueError(
                'mass: a free base needs mass and inertia, or its acceleration is not determined'
            )


@dataclass(frozen=True)
class Mount:
    """Pose of the world of this file in the ROS world (z up). Display and sensors use it; the dynamics do not."""

    position: Floats = quantity((0.0, 0.0, 0.0), unit='m', length=3)
    rpy: Floats = quantity((0.0, 0.0, 0.0), unit='rad', length=3)


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


@dataclass(frozen=True)
class Sensor:
    """A sensor and the frame it is mounted on."""

    name: str = quantity(form=NAME)
    kind: Literal['mocap', 'vive', 'fiber', 'ft'] = quantity()
    frame: str = quantity(form=NAME)
    position: Floats = quantity((0.0, 0.0, 0.0), unit='m', length=3)
    rpy: Floats = quantity((0.0, 0.0, 0.0), unit='rad', length=3)


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


@dataclass(frozen=True)
class Description:
    """The top level of a robot file."""

    format: Literal[1]
    name: str = quantity(form=NAME)
    segments: tuple[Segment, ...] = quantity()
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


COORDINATES: dict[type, Any] = {
    Arc: lambda s: 3 if s.extensible else 2,
    Link: lambda s: 0,
    Universal: lambda s: 2,
    Hinge: lambda s: 1,
    Disc: lambda s: 5,
}


def _cross_checks(robot: Description) -> list[str]:
    """Problems that involve several values: duplicate or unknown names, lists of the wrong length."""
    problems = []
    if not robot.segments:
        problems.append('segments: expected at least one, found none')
    names = [segment.name for segment in robot.segments]
    for k, segment in enumerate(robot.segments):
        if segment.name in names[:k] or segment.name in ('base', 'tip', 'world', 'all'):
            problems.append(f'segments[{k}].name: expected a name not used yet, found {segment.name!r}')
        count = COORDINATES[type(segment)](segment)
        for key in ('stiffness', 'cubic_stiffness', 'damping', 'rest'):
            given = getattr(getattr(segment, 'material', None), key, ())
            if given and len(given) != count:
                problems.append(f'segments[{k}].material.{key}: expected {count} entries, found {len(given)}')
    if (
        robot.segments
        and robot.base.type == 'fixed'
        and not any(COORDINATES[type(s)](s) for s in robot.segments)
    ):
        problems.append('segments: expected at least one that moves, found links only')
    if robot.spline_ends != 'not-a-knot' and not all(isinstance(s, Hinge) for s in robot.segments):
        problems.append(
            f'spline_ends: expected a robot of hinges only, found {robot.spline_ends} without one'
        )
    kinds = {isinstance(segment, Disc) for segment in robot.segments}
    if len(kinds) > 1:
        problems.append('segments: discs stand alone, expected no other types beside them')
    problems += _repeated('actuation.chambers', [chamber.name for chamber in robot.actuation.chambers])
    problems += _repeated('sensors', [sensor.name for sensor in robot.sensors])
    for k, chamber in enumerate(robot.actuation.chambers):
        problems += _chamber_problems(robot, names, chamber, f'actuation.chambers[{k}]')
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


def _chamber_problems(robot: Description, names: list[str], chamber: Chamber, path: str) -> list[str]:
    if chamber.segment != 'all' and chamber.segment not in names:
        known = one_line(', '.join(names), 500)
        return [f'{path}.segment: expected all or one of {known}, found {chamber.segment!r}']
    targets = [s for s in robot.segments if chamber.segment in ('all', s.name) and COORDINATES[type(s)](s)]
    if not targets:
        return [f'{path}.segment: expected a segment that moves, found {chamber.segment!r}']
    wanted = {'volume': Arc, 'tip_wrench': Arc, 'end_force': Disc}.get(chamber.work)
    if wanted and not all(isinstance(target, wanted) for target in targets):
        return [f'{path}.work: {chamber.work} needs a segment of type {wanted.__name__.lower()}']
    if wanted and not chamber.area > 0.0:
        return [f'{path}.area: expected > 0 [m^2], found {chamber.area:g}']
    counts = {COORDINATES[type(target)](target) for target in targets}
    if not wanted and counts != {len(chamber.gain)}:
        expected = ' and '.join(map(str, sorted(counts)))
        return [f'{path}.gain: expected {expected} entries, found {len(chamber.gain)}']
    return []


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
