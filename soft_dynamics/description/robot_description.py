"""What a robot file says: the only source of robot facts. SI units; frames and conventions in docs/robot_file.md.

Every class here is the schema of one block of `robots/<name>.yaml`; `reader.read` fills them and lists all mistakes.
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
MOST_SEGMENTS = 100  # the defaults are merged under each, and the time of a step grows with their square


@dataclass(frozen=True)
class Material:
    """k (q - rest) + k3 (q - rest)^3 + d qd for each coordinate of a segment, in the order of its coordinates."""

    stiffness: Floats = quantity((), unit='N m/rad or N/m', least=0.0)
    cubic_stiffness: Floats = quantity((), unit='N m/rad^3 or N/m^3')
    damping: Floats = quantity((), unit='N m s/rad or N s/m', least=0.0)
    rest: Floats = quantity((), unit='rad or m', doc='where the springs are at rest')


@dataclass(frozen=True)
class Arc:
    """A constant-curvature piece of Jensen (bend) or Mehl (difference)."""

    type: Literal['arc']
    name: str = quantity(form=NAME)
    length: float = quantity(unit='m', above=0.0)
    mass: float = quantity(unit='kg', least=0.0)
    radius: float = quantity(0.0, unit='m', least=0.0, doc='of the thin discs the body is made of')
    extensible: bool = False
    placement: Literal['lumped', 'point', 'distributed'] = 'lumped'
    quadrature_points: int = quantity(8, least=1, most=16)
    coordinates: Literal['bend', 'difference'] = 'bend'
    lever: float = quantity(0.0, unit='m', least=0.0, doc='d, which difference coordinates need')
    material: Material = Material()

    def __post_init__(self) -> None:
        if self.coordinates == 'difference' and self.lever == 0.0:
            raise ValueError('lever: expected > 0 [m] with difference coordinates, found 0')


@dataclass(frozen=True)
class Link:
    """A rigid piece along z of the frame it starts from."""

    type: Literal['link']
    name: str = quantity(form=NAME)
    length: float = quantity(unit='m', least=0.0)
    mass: float = quantity(0.0, unit='kg', least=0.0)
    com: Floats | None = quantity(
        None, unit='m', length=3, doc='from the start of the link; default: its middle'
    )
    inertia: Floats = quantity((0.0, 0.0, 0.0), unit='kg m^2', doc='about the com: xx, yy, zz[, xy, xz, yz]')

    def __post_init__(self) -> None:
        if len(self.inertia) not in (3, 6) or min(self.inertia[:3]) < 0.0:
            raise ValueError(
                f'inertia: expected xx, yy, zz >= 0 [kg m^2] and maybe xy, xz, yz, found {shown(self.inertia)}'
            )
        check_inertia(self.inertia)


@dataclass(frozen=True)
class Universal:
    """A segment of Wang: two straight links joined by a universal joint, theta1 about y, then theta2 about x."""

    type: Literal['universal']
    name: str = quantity(form=NAME)
    length: float = quantity(
        unit='m', above=0.0, doc='of the straight segment; each link is half of it at rest'
    )
    mass: float = quantity(unit='kg', least=0.0)
    joint_mass_fraction: float = quantity(
        0.0, least=0.0, most=1.0, doc='part of the mass at the universal joint'
    )
    lengths: Literal['fixed', 'free'] = 'fixed'
    axis_order: Literal['yx', 'xy'] = 'yx'  # of lists of two, in material and in gain: the order of q is yx
    material: Material = Material()
    link_stiffness: float = quantity(0.0, unit='N/m', least=0.0, doc='of each link, when lengths are free')
    link_damping: float = quantity(0.0, unit='N s/m', least=0.0, doc='of each link, when lengths are free')


@dataclass(frozen=True)
class Hinge:
    """A planar link of Godage: a hinge about z, then a rigid piece along y."""

    type: Literal['hinge']
    name: str = quantity(form=NAME)
    length: float = quantity(unit='m', above=0.0)
    mass: float = quantity(unit='kg', least=0.0)
    com_distance: float | None = quantity(None, unit='m', doc='from the hinge; default: half the length')
    inertia: float | None = quantity(
        None, unit='kg m^2', least=0.0, doc='about the com, axis z; default m l^2/12'
    )
    offset: float = quantity(0.0, unit='rad', doc='bend of the unloaded actuator at this hinge')
    material: Material = Material()


@dataclass(frozen=True)
class Spring:
    """A spring between the rims of a disc and of the disc before it."""

    angle: float = quantity(unit='rad', doc='around +z from the thread, seen from the centre')
    stiffness: float = quantity(unit='N/m', least=0.0)
    rest_length: float = quantity(unit='m', least=0.0)


@dataclass(frozen=True)
class Disc:
    """A disc of Schultz on its inextensible thread: coordinates alpha, beta, gamma, psi, phi."""

    type: Literal['disc']
    name: str = quantity(form=NAME)
    thread_length: float = quantity(unit='m', above=0.0)
    radius: float = quantity(unit='m', above=0.0)
    mass: float = quantity(unit='kg', above=0.0)
    inertia: Floats | None = quantity(
        None, unit='kg m^2', length=3, above=0.0, doc='about the centre; default hoop'
    )
    inner_radius: float | None = quantity(
        None, unit='m', above=0.0, doc='of the disc before; default: that one'
    )
    springs: tuple[Spring, ...] = ()
    angles: Literal['axis_angle', 'zxz'] = 'axis_angle'
    damping: Floats = quantity((0.0,) * 5, unit='N m s/rad', length=5, least=0.0)
    damping_on: Literal['angles', 'rates'] = quantity(
        'angles',
        doc='angles: b qd, as in the paper; rates: b w on the body rates, which `simulate` always takes and the other '
        'calls then too: [Schultz](theory/schultz.md)',
    )

    def __post_init__(self) -> None:
        if self.inertia is not None:
            check_inertia(self.inertia)


Segment = Arc | Link | Universal | Hinge | Disc


@dataclass(frozen=True)
class Base:
    """What the robot stands on: fixed, moved by somebody (prescribed), or free to move."""

    type: Literal['fixed', 'prescribed', 'free'] = 'fixed'
    position: Floats = quantity(
        (0.0, 0.0, 0.0), unit='m', length=3, doc='of the base, or of its coordinates at zero'
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
    """Where the world of this file is in the world of ROS (z up): for display and sensors, not for the dynamics."""

    position: Floats = quantity((0.0, 0.0, 0.0), unit='m', length=3)
    rpy: Floats = quantity((0.0, 0.0, 0.0), unit='rad', length=3)


@dataclass(frozen=True)
class Chamber:
    """A pressure chamber and how it works on the coordinates.

    gain        an identified force per pressure on the coordinates of its segment
    volume      p dV of a chamber of `area` at `position` in the cross-section of an arc
    tip_wrench  the wrench of that chamber at the segment's tip, and minus its components at the segment's base [Mehl]
    end_force   p area along z at the centre of a disc [Schultz]
    """

    name: str = quantity(form=NAME)
    segment: str = quantity(form=NAME)  # or 'all'
    work: Literal['gain', 'volume', 'tip_wrench', 'end_force'] = 'gain'
    gain: Floats = quantity((), unit='N m/Pa')
    area: float = quantity(0.0, unit='m^2', least=0.0)
    position: Floats = quantity((0.0, 0.0), unit='m', length=2)


@dataclass(frozen=True)
class Actuation:
    """The chambers, and what every one of them has in common."""

    chambers: tuple[Chamber, ...] = ()
    pressure_min: float = quantity(0.0, unit='Pa', most=0.0, doc='gauge; a vented chamber has 0')
    pressure_max: float = quantity(0.0, unit='Pa', doc='gauge')
    slew: float = quantity(1e6, unit='Pa/s', above=0.0, doc='fastest change a command may ask for')
    valve_lag: float = quantity(0.0, unit='s', least=0.0, doc='time constant of the first-order valve')
    fill_lag: float = quantity(
        0.0, unit='s', least=0.0, doc='by which a chamber follows its pressure sensor upwards'
    )
    vent_lag: float = quantity(0.0, unit='s', least=0.0, doc='likewise downwards')

    def __post_init__(self) -> None:
        if self.chambers and not self.pressure_max > self.pressure_min:
            raise ValueError(
                f'pressure_max: expected > pressure_min {self.pressure_min:g}, found {self.pressure_max:g}'
            )


@dataclass(frozen=True)
class Sensor:
    """A tracked body, a fiber or a force/torque sensor and the frame it sits on."""

    name: str = quantity(form=NAME)
    kind: Literal['mocap', 'vive', 'fiber', 'ft'] = quantity()
    frame: str = quantity(form=NAME)
    position: Floats = quantity((0.0, 0.0, 0.0), unit='m', length=3)
    rpy: Floats = quantity((0.0, 0.0, 0.0), unit='rad', length=3)


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


@dataclass(frozen=True)
class Description:
    """A whole robot file."""

    format: Literal[1]
    name: str = quantity(form=NAME)
    segments: tuple[Segment, ...] = quantity()
    source: str = ''
    gravity: Floats = quantity((0.0, 0.0, 0.0), unit='m/s^2', length=3, doc='in the world of this file')
    base: Base = Base()
    mount: Mount = Mount()
    tip_load: float = quantity(0.0, unit='kg', least=0.0, doc='point mass at the tip')
    spline_ends: Literal['not-a-knot', 'natural', 'clamped'] = quantity(
        'not-a-knot',
        doc='of the centreline through hinges; natural: no curvature at base and tip; clamped: it leaves along y of '
        'the base and has no curvature at the tip',
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
    """Mistakes that no single value shows: names that clash or do not exist, lists of the wrong length."""
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
    """Build a description; raise RobotFileError with every problem found."""
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
    """Mappings joined key by key, `above` winning; lists and numbers are replaced whole."""
    joined = dict(below)
    for key, value in above.items():
        old = joined.get(key)
        joined[key] = merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return joined


def load_description(name: str | Path, overrides: Mapping[str, Any] | None = None) -> Description:
    """Read a shipped robot or a path; `overrides` is merged over the file, key by key."""
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
