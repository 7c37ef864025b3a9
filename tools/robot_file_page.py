"""Write the tables of docs/robot_file.md from the classes that read a robot file.

    python -m tools.robot_file_page [--check]

It replaces the part between the two markers of the page. --check writes nothing and reports whether the page is up to
date.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import types
import typing
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from soft_dynamics import segments
from soft_dynamics.description import actuation, safety, sensors
from soft_dynamics.description.robot_description import Description, Mount
from soft_dynamics.reader import NAME, TOPIC_NAME

PAGE = Path(__file__).resolve().parent.parent / 'docs' / 'robot_file.md'
BEGIN = '<!-- tables: python -m tools.robot_file_page -->'
END = '<!-- end of tables -->'

BLOCKS: dict[str, type] = {
    'The file': Description,
    'base': segments.Base,
    'mount': Mount,
    **{f'Segment: {name}': cls for name, cls in segments.TYPES.items()},
    'material': segments.Material,
    'springs': segments.Spring,
    'actuation': actuation.Actuation,
    'chambers': actuation.Chamber,
    'sensors': sensors.Sensor,
    'safety': safety.Safety,
}

# Meaning of the keys whose field has no `doc`.
MEANING = {
    'Description.format': 'version of the file format',
    'Description.name': 'name of the robot',
    'Description.segments': 'from base to tip; each has one of the types below',
    'Description.source': 'origin of the numbers: paper, CAD, measurement',
    'Description.base': 'fixed, prescribed or free base',
    'Description.mount': 'pose in the lab, for display and sensors',
    'Description.actuation': 'chambers and valves',
    'Description.sensors': 'sensors and the frames they are mounted on',
    'Description.safety': 'limits and time-outs of controllers and bridges',
    'Base.type': 'prescribed and free add six coordinates x, y, z, alpha, beta, gamma before all others; '
    'a prescribed base has a given acceleration, and the force on it is computed',
    'Base.mass': 'of the base; required by a free base',
    'Base.inertia': 'principal moments about the origin of the base; required by a free base',
    'Mount.position': 'origin of the world of this file',
    'Mount.rpy': 'fixed-axis roll, pitch, yaw',
    '*.type': 'type of the segment',
    '*.name': 'unique; also names the frame at the far end',
    '*.mass': 'of the segment',
    '*.material': 'springs and dampers of the coordinates',
    'Arc.length': 'of the centreline; the rest length if extensible',
    'Arc.extensible': 'adds the length as a third coordinate',
    'Arc.placement': 'mass model: [placements](theory/placements.md)',
    'Arc.quadrature_points': 'Gauss-Legendre points; used with `placement: distributed`',
    'Arc.coordinates': 'bend: u, v [rad], h [m]; difference: dx, dy, dl [m]',
    'Link.length': 'along z',
    'Universal.lengths': 'fixed: theta1, theta2; free: d1, theta1, theta2, d2',
    'Universal.axis_order': 'axes of the two entries of each list in `material` and in the `gain` of its '
    'chambers; q itself is always theta1 (about y), theta2 (about x)',
    'Hinge.length': 'along y',
    'Spring.stiffness': 'spring constant',
    'Spring.rest_length': 'length of the relaxed spring',
    'Disc.thread_length': 'from rim to rim, from the previous disc',
    'Disc.radius': 'distance from thread to centre',
    'Disc.springs': 'between the rims of this disc and the previous one',
    'Disc.angles': 'R = Rz(a) Rx(b) Rz(-a), or Rz(a) Rx(b): [Schultz](theory/schultz.md)',
    'Disc.damping': 'of alpha, beta, gamma, psi, phi',
    'Material.stiffness': 'k, one entry per coordinate',
    'Material.cubic_stiffness': 'k3, one entry per coordinate',
    'Material.damping': 'd, one entry per coordinate',
    'Chamber.name': 'unique',
    'Chamber.segment': 'segment that the chamber acts on, or `all`',
    'Chamber.work': 'how pressure becomes force, see the list above',
    'Chamber.gain': 'force per pressure on each coordinate of the segment; used with `work: gain`',
    'Chamber.area': 'cross-section of the chamber; used with the other three',
    'Chamber.position': 'of the chamber centre in the cross-section, x and y; used with `volume` and `tip_wrench`',
    'Actuation.chambers': 'lists of pressures use this order',
    'Sensor.name': 'name of the tracked body or device',
    'Sensor.kind': 'motion capture body, Vive tracker, fiber shape sensor or force/torque sensor',
    'Sensor.frame': '`base`, `tip` or the name of a segment',
    'Sensor.position': 'of the sensor in that frame',
    'Sensor.rpy': 'fixed-axis roll, pitch, yaw in that frame',
    'Safety.state_timeout': 'vent if no state arrives for this long',
    'Safety.command_timeout': 'vent if no command arrives for this long',
}  # fmt: skip


def tables() -> str:
    """All blocks, each with the docstring of its class and one row per key."""
    return '\n\n'.join(f'### {title}\n\n{_intro(cls)}\n\n{table(cls)}' for title, cls in BLOCKS.items())


def _intro(cls: type) -> str:
    """The docstring of a block; its second part becomes a list of choices."""
    head, _, rest = (inspect.getdoc(cls) or '').partition('\n\n')
    items = [line.split(None, 1) for line in rest.splitlines()]
    return '\n'.join([head, *([''] if items else []), *(f'- `{name}`: {text}' for name, text in items)])


def table(cls: type) -> str:
    """One row per key of a block."""
    hints = typing.get_type_hints(cls)
    rows = [
        '| key | type | unit | default | meaning |',
        '|---|---|---|---|---|',
    ]
    for field in dataclasses.fields(cls):
        unit = field.metadata.get('unit', '')
        meaning = field.metadata.get('doc') or _meaning(cls, field.name)
        kind = _kind(hints[field.name], field.metadata)
        rows.append(f'| `{field.name}` | {kind} | {unit} | {_default(field)} | {meaning} |')
    return '\n'.join(rows)


def _meaning(cls: type, key: str) -> str:
    for name in (f'{cls.__name__}.{key}', f'*.{key}'):
        if name in MEANING:
            return MEANING[name]
    raise KeyError(f'{cls.__name__}.{key}: say what it means with doc= in {inspect.getsourcefile(cls)}')


def _kind(hint: Any, meta: Any) -> str:
    """The type and the bounds of a key, in words."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return _kind(get_args(hint)[0], meta)
    if origin is tuple:
        item, count = _kind(get_args(hint)[0], {**meta, 'length': None}), meta.get('length')
        return f'list of {count} x {item}' if count else f'list of {item}'
    if origin is Literal:
        return ', '.join(f'`{choice}`' for choice in get_args(hint))
    if meta.get('types'):
        return 'segment'
    if dataclasses.is_dataclass(hint):
        title = next(title for title, cls in BLOCKS.items() if cls is hint)
        return f'[{title}](#{title})'
    if meta.get('form') in (NAME, TOPIC_NAME):
        return 'name'
    name = {float: 'number', int: 'integer', str: 'text', bool: 'true or false'}[hint]
    bounds = [
        f'{sign} {meta[key]:g}'
        for key, sign in (('above', '>'), ('least', '≥'), ('most', '≤'))
        if meta.get(key) is not None
    ]
    return ' '.join([name, ', '.join(bounds)]).strip()


def _default(field: dataclasses.Field[Any]) -> str:
    value = field.default
    if value is dataclasses.MISSING:
        return '**required**'
    if value is None or dataclasses.is_dataclass(value):
        return ''
    if value in ((), ''):
        return 'none'
    if isinstance(value, tuple):
        return f'{value[0]:g} each' if len(set(value)) == 1 else ', '.join(f'{entry:g}' for entry in value)
    if isinstance(value, bool):
        return str(value).lower()
    return f'{value:g}' if isinstance(value, float) else str(value)


def page() -> str:
    """The page with regenerated tables."""
    before, rest = PAGE.read_text(encoding='utf-8').split(BEGIN)
    after = rest.split(END)[1]
    return f'{before}{BEGIN}\n\n{tables()}\n\n{END}{after}'


def main() -> None:
    parser = argparse.ArgumentParser(description='Write the tables of docs/robot_file.md.')
    parser.add_argument(
        '--check', action='store_true', help='report whether the tables are up to date; write nothing'
    )
    new = page()
    if parser.parse_args().check:
        if new != PAGE.read_text(encoding='utf-8'):
            parser.exit(1, f'{PAGE.name} is out of date: python -m tools.robot_file_page\n')
    else:
        PAGE.write_text(new, encoding='utf-8')


if __name__ == '__main__':
    main()
