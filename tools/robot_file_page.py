"""Write the tables of docs/robot_file.md from the classes that read a robot file.

    python -m tools.robot_file_page [--check]

The page holds the text; between its two markers stands what this writes. --check only says whether it is up to date.
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
from soft_dynamics.reader import NAME

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

# What a key means where its field has no `doc`.
MEANING = {
    'Description.format': 'version of this format',
    'Description.name': 'of the robot',
    'Description.segments': 'base to tip; each is one of the types below',
    'Description.source': 'where the numbers come from',
    'Description.base': 'what the robot stands on',
    'Description.mount': 'where it is in the lab, for display and sensors',
    'Description.actuation': 'chambers and valves',
    'Description.sensors': 'which sensor sits on which frame',
    'Description.safety': 'when controllers and bridges let the air out',
    'Base.type': 'prescribed and free put six coordinates x, y, z, alpha, beta, gamma in front of all others; '
    'of a prescribed base the acceleration is given and the force is found',
    'Base.mass': 'moves with the base; a free base needs it',
    'Base.inertia': 'about the origin of the base, principal',
    'Mount.position': 'origin of this file\'s world',
    'Mount.rpy': 'fixed-axis roll, pitch, yaw',
    '*.type': 'says which kind of segment this is',
    '*.name': 'unique; also the name of the frame at its far end',
    '*.mass': 'of the segment',
    '*.material': 'springs and dampers of its coordinates',
    'Arc.length': 'of the centreline; at rest, if extensible',
    'Arc.extensible': 'a third coordinate, the length',
    'Arc.placement': 'where its own mass is taken to be: [placements](theory/placements.md)',
    'Arc.quadrature_points': 'Gauss-Legendre points of the distributed placement',
    'Arc.coordinates': 'bend: u, v [rad], h [m]; difference: dx, dy, dl [m]',
    'Link.length': 'along z',
    'Universal.lengths': 'fixed: theta1, theta2; free: d1, theta1, theta2, d2',
    'Universal.axis_order': 'which axes the two entries of a list speak of, in `material` and in the `gain` of its '
    'chambers, each entry with its sign; q itself is always theta1 (y), theta2 (x)',
    'Hinge.length': 'along y',
    'Spring.stiffness': 'of the spring',
    'Spring.rest_length': 'of the spring',
    'Disc.thread_length': 'from the disc before, rim to rim',
    'Disc.radius': 'thread to centre',
    'Disc.springs': 'between the rims of this disc and the disc before it',
    'Disc.angles': 'R = Rz(a) Rx(b) Rz(-a), or Rz(a) Rx(b): [Schultz](theory/schultz.md)',
    'Disc.damping': 'of alpha, beta, gamma, psi, phi',
    'Material.stiffness': 'k, one entry per coordinate',
    'Material.cubic_stiffness': 'k3, one entry per coordinate',
    'Material.damping': 'd, one entry per coordinate',
    'Chamber.name': 'unique; pressures are listed in the order of the chambers',
    'Chamber.segment': 'name of the segment it works on, or all',
    'Chamber.work': 'how pressure becomes force, see above',
    'Chamber.gain': 'force per pressure on each coordinate of the segment; for work: gain',
    'Chamber.area': 'cross-section of the chamber; for the other three',
    'Chamber.position': 'of its centre in the cross-section, x and y; for volume and tip_wrench',
    'Actuation.chambers': 'in the order of every list of pressures',
    'Sensor.name': 'of the tracked body or device',
    'Sensor.kind': 'motion capture, Vive tracker, fiber shape sensor, force/torque sensor',
    'Sensor.frame': 'base, tip or a segment',
    'Sensor.position': 'of the sensor in that frame',
    'Sensor.rpy': 'fixed-axis roll, pitch, yaw in that frame',
    'Safety.state_timeout': 'no state for longer: vent',
    'Safety.command_timeout': 'no command for longer: vent',
}  # fmt: skip


def tables() -> str:
    """All blocks, each with the sentence of its class and one row per key."""
    return '\n\n'.join(f'### {title}\n\n{_intro(cls)}\n\n{table(cls)}' for title, cls in BLOCKS.items())


def _intro(cls: type) -> str:
    """The docstring of a block; its indented part is a list of choices."""
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
    raise KeyError(f'{cls.__name__}.{key}: say what it means, with doc= in {inspect.getsourcefile(cls)}')


def _kind(hint: Any, meta: Any) -> str:
    """The type of a key in words, with its bounds."""
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
    if meta.get('form') is NAME:
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
    """The page with its tables made anew."""
    before, rest = PAGE.read_text(encoding='utf-8').split(BEGIN)
    after = rest.split(END)[1]
    return f'{before}{BEGIN}\n\n{tables()}\n\n{END}{after}'


def main() -> None:
    parser = argparse.ArgumentParser(description='Write the tables of docs/robot_file.md.')
    parser.add_argument('--check', action='store_true', help='say whether they are up to date')
    new = page()
    if parser.parse_args().check:
        if new != PAGE.read_text(encoding='utf-8'):
            parser.exit(1, f'{PAGE.name} is out of date: python -m tools.robot_file_page\n')
    else:
        PAGE.write_text(new, encoding='utf-8')


if __name__ == '__main__':
    main()
