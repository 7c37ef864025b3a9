"""Assemble the chain of a robot: each segment type is a choice of primitives, mass placement and material.

arc        ARC (u, v[, h]); difference coordinates are a linear map of these             [Jensen] [Mehl]
link       FIXED
universal  [PRISMATIC z] REVOLUTE y, REVOLUTE x [PRISMATIC z]                            [Wang, eq. 3]
hinge      REVOLUTE z, then FIXED along y                                               [Godage, eq. 1]
disc       REVOLUTE z, x (thread), z, x, y (disc): the five angles, gamma minus alpha if axis_angle
           and, for integration, SWING (thread) and BALL (disc), without singular poses       [Schultz, sec. II]
base       PRISMATIC x, y, z, REVOLUTE x, y, z before all others                        [Mehl, eq. 6, 7]
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ..description.robot_description import Arc, Base, Description, Disc, Hinge, Link, Material, Universal
from ..geometry import so3
from ..kernels.chain import (
    ARC,
    BALL,
    COORDINATES,
    DISTRIBUTED,
    ELEMENT,
    FIXED,
    LUMPED,
    NO_BODY,
    POINT,
    POINT_BODY,
    PRISMATIC,
    RATES,
    REVOLUTE,
    RIGID_BODY,
    SWING,
    Elements,
)

Array = npt.NDArray[np.float64]

X, Y, Z = 0, 1, 2
PLACEMENTS = {'lumped': LUMPED, 'point': POINT, 'distributed': DISTRIBUTED}

SPRING = np.dtype(
    [
        ('iq', np.int64),  # first of the five joint angles
        ('length', np.float64),  # of the thread
        ('inner', np.float64, (3,)),  # rim point of the previous disc, in its frame
        ('outer', np.float64, (3,)),  # rim point of this disc, in its frame
        ('k', np.float64),
        ('rest', np.float64),
    ],
    align=True,
)


@dataclass
class Assembly:
    """A chain under construction, with the names and indices that `Robot` needs."""

    rows: list[Any] = field(default_factory=list)
    names: list[str] = field(default_factory=list)  # public coordinates
    frames: dict[str, int] = field(default_factory=dict)  # frame name -> element
    starts: dict[str, int] = field(default_factory=dict)  # segment name -> element before its proximal frame
    rates_of: dict[str, slice] = field(default_factory=dict)  # segment name -> its coordinates
    springs: list[Any] = field(default_factory=list)
    blocks: list[tuple[int, Array, Array]] = field(
        default_factory=list
    )  # coordinate changes: first index, T, offset
    disc_radius: float = 0.0  # of the last disc
    nq: int = 0
    nv: int = 0

    def element(self, kind: int, **values: Any) -> Any:
        """Append an element; return its row for further settings."""
        e = np.zeros((), ELEMENT)
        e['kind'], e['iq'], e['iv'] = kind, self.nq, self.nv
        n = values.pop('n', RATES.get(kind, 0))
        e['n'] = n
        shift = values.pop('shift', None)
        if shift is not None:
            e['shifted'], (e['px'], e['py'], e['pz']) = 1, shift
        for key, value in values.items():
            e[key] = value
        self.nq += COORDINATES.get(kind, n)
        self.nv += n
        self.rows.append(e)
        return e

    @property
    def elements(self) -> Elements:
        self.rows[0]['nx'], self.rows[0]['nv'] = self.nq, self.nv
        self.rows[0]['one_axis'] = all(e['kind'] in (FIXED, REVOLUTE, PRISMATIC) for e in self.rows)
        return np.array(self.rows, ELEMENT)


def assemble(robot: Description, regular: bool = False) -> Assembly:
    """Build the chain of a robot; `regular` selects swing and ball joints for discs, which have no singular pose."""
    build = Assembly()
    world = build.element(FIXED, shift=robot.base.position)
    world['gx'], world['gy'], world['gz'] = robot.gravity
    if any(robot.base.rpy):
        world['turned'], world['R'] = 1, so3.from_rpy(robot.base.rpy).ravel()
    _base(build, robot.base)
    build.frames['base'] = len(build.rows) - 1
    for segment in robot.segments:
        first, start = build.nv, len(build.rows) - 1
        if isinstance(segment, Disc):
            (_disc_regular if regular else _disc)(build, segment)
        else:
            _BUILDERS[type(segment)](build, segment)
        build.starts[segment.name] = start
        build.frames[segment.name] = len(build.rows) - 1
        build.rates_of[segment.name] = slice(first, build.nv)
    _add_mass(build.rows[-1], robot.tip_load, (0.0, 0.0, 0.0))
    return build


def _add_mass(e: Any, m: float, c: tuple[float, float, float], inertia: Any = (0.0, 0.0, 0.0)) -> None:
    """Add a rigid body with centre of mass c and inertia (xx, yy, zz[, xy, xz, yz]) about it to an element's frame."""
    if m == 0.0 and not np.any(inertia):
        return
    r = np.asarray(c, float)
    e['m'] += m
    e['hx'], e['hy'], e['hz'] = np.array([e['hx'], e['hy'], e['hz']]) + m * r
    xx, yy, zz, xy, xz, yz = (*inertia, 0.0, 0.0, 0.0)[:6]
    about_com = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    about_origin = about_com + m * (r @ r * np.eye(3) - np.outer(r, r))
    e['I'] += about_origin[np.triu_indices(3)]
    e['body'] = RIGID_BODY if np.any(e['I']) or np.any(m * r) or e['body'] == RIGID_BODY else POINT_BODY
    if e['m'] == 0.0 and e['body'] == POINT_BODY:
        e['body'] = NO_BODY


def _set_material(e: Any, k: Any, k3: Any, d: Any, rest: Any) -> None:
    for key, values in (('k', k), ('k3', k3), ('d', d), ('rest', rest)):
        e[key][: len(values)] = values
    e['material'] = int(any(np.any(values) for values in (k, k3, d)))


def _lists(material: Material, n: int) -> list[Array]:
    """(k, k3, d, rest), with zeros for omitted lists."""
    given = (material.stiffness, material.cubic_stiffness, material.damping, material.rest)
    return [np.array(values if values else (0.0,) * n, float) for values in given]


def _base(build: Assembly, base: Base) -> None:
    if base.type == 'fixed':
        return
    for name, kind, axis in zip(
        ('x', 'y', 'z', 'alpha', 'beta', 'gamma'),
        [PRISMATIC] * 3 + [REVOLUTE] * 3,
        (X, Y, Z) * 2,
        strict=True,
    ):
        build.element(kind, axis=axis, prescribed=int(base.type == 'prescribed'))
        build.names.append(f'base_{name}')
    _add_mass(build.rows[-1], base.mass, (0.0, 0.0, 0.0), base.inertia)


def _arc(build: Assembly, s: Arc) -> None:
    n = 3 if s.extensible else 2
    e = build.element(ARC, n=n, length=s.length, arc_mass=s.mass, radius=s.radius, points=s.quadrature_points)
    e['placement'] = PLACEMENTS[s.placement] if s.mass > 0.0 else 0
    k, k3, d, rest = _lists(s.material, n)
    if s.coordinates == 'bend':
        if s.extensible and not s.material.rest:
            rest[2] = s.length
        _set_material(e, k, k3, d, rest)
        build.names += [f'{s.name}_{c}' for c in ('u', 'v', 'h')[:n]]
        return
    # u = -Delta_y/d, v = Delta_x/d, h = L0 + delta_L: springs and dampers change with powers of the lever.
    T, offset = np.zeros((n, n)), np.zeros(n)
    T[0, 1], T[1, 0] = -1.0 / s.lever, 1.0 / s.lever
    if s.extensible:
        T[2, 2], offset[2] = 1.0, s.length
    build.blocks.append((int(e['iq']), T, offset))
    order = [1, 0, 2][:n]
    power = np.array([s.lever, s.lever, 1.0])[:n]
    _set_material(e, (k * power**2)[order], (k3 * power**4)[order], (d * power**2)[order], T @ rest + offset)
    build.names += [f'{s.name}_{c}' for c in ('dx', 'dy', 'dl')[:n]]


def _link(build: Assembly, s: Link) -> None:
    e = build.element(FIXED, shift=(0.0, 0.0, s.length))
    x, y, z = s.com if s.com is not None else (0.0, 0.0, 0.5 * s.length)
    _add_mass(e, s.mass, (x, y, z - s.length), s.inertia)


def _universal(build: Assembly, s: Universal) -> None:
    half, order = 0.5 * s.length, [0, 1] if s.axis_order == 'yx' else [1, 0]
    k, k3, d, rest = (values[order] for values in _lists(s.material, 2))
    middle, end = s.joint_mass_fraction * s.mass, 0.5 * (1.0 - s.joint_mass_fraction) * s.mass
    free = s.lengths == 'free'
    _add_mass(build.rows[-1], end, (0.0, 0.0, 0.0))
    if free:
        e = build.element(PRISMATIC, axis=Z)
        _set_material(e, [s.link_stiffness], [0.0], [s.link_damping], [half])
        build.names.append(f'{s.name}_d1')
    for name, axis, j in (('theta1', Y, 0), ('theta2', X, 1)):
        e = build.element(REVOLUTE, axis=axis, shift=None if free or j else (0.0, 0.0, half))
        _set_material(e, [k[j]], [k3[j]], [d[j]], [rest[j]])
        build.names.append(f'{s.name}_{name}')
    _add_mass(e, middle, (0.0, 0.0, 0.0))
    if free:
        e = build.element(PRISMATIC, axis=Z)
        _set_material(e, [s.link_stiffness], [0.0], [s.link_damping], [half])
        build.names.append(f'{s.name}_d2')
    else:
        e = build.element(FIXED, shift=(0.0, 0.0, half))
    _add_mass(e, end, (0.0, 0.0, 0.0))


def _hinge(build: Assembly, s: Hinge) -> None:
    e = build.element(REVOLUTE, axis=Z)
    if s.offset:
        c, sn = np.cos(s.offset), np.sin(s.offset)
        e['turned'], e['R'] = 1, (c, -sn, 0.0, sn, c, 0.0, 0.0, 0.0, 1.0)
    _set_material(e, *_lists(s.material, 1))
    build.names.append(f'{s.name}_theta')
    com = s.com_distance if s.com_distance is not None else 0.5 * s.length
    inertia = s.inertia if s.inertia is not None else s.mass * s.length**2 / 12.0
    _add_mass(e, s.mass, (0.0, com, 0.0), (0.0, 0.0, inertia))
    build.element(FIXED, shift=(0.0, s.length, 0.0))


def _disc_body(e: Any, s: Disc) -> None:
    hoop = s.mass * s.radius**2
    _add_mass(
        e, s.mass, (0.0, s.radius, 0.0), s.inertia if s.inertia is not None else (hoop / 2, hoop / 2, hoop)
    )


def _disc_springs(build: Assembly, s: Disc, first: int) -> None:
    inner = s.inner_radius or build.disc_radius or s.radius
    build.disc_radius = s.radius
    for spring in s.springs:
        record = np.zeros((), SPRING)
        rim = np.array([np.sin(spring.angle), 1.0 - np.cos(spring.angle), 0.0])
        record['iq'], record['length'], record['k'], record['rest'] = (
            first,
            s.thread_length,
            spring.stiffness,
            spring.rest_length,
        )
        record['inner'], record['outer'] = inner * rim, s.radius * rim
        build.springs.append(record)


def _disc(build: Assembly, s: Disc) -> None:
    first = build.nq
    for j, axis in enumerate((Z, X, Z, X, Y)):
        e = build.element(REVOLUTE, axis=axis, shift=(0.0, 0.0, s.thread_length) if j == 2 else None)
    _disc_body(e, s)
    _disc_springs(build, s, first)
    build.names += [f'{s.name}_{c}' for c in ('alpha', 'beta', 'gamma', 'psi', 'phi')]
    if s.angles == 'axis_angle':
        T = np.eye(5)
        T[2, 0] = -1.0
        build.blocks.append((first, T, np.zeros(5)))


def _disc_regular(build: Assembly, s: Disc) -> None:
    first = build.nq
    _, beta, gamma, psi, phi = s.damping  # one damper serves both rates of the swing
    swing = build.element(SWING)
    _set_material(swing, [0.0] * 2, [0.0] * 2, [beta, beta], [0.0] * 2)
    ball = build.element(BALL, shift=(0.0, 0.0, s.thread_length))
    _set_material(ball, [0.0] * 3, [0.0] * 3, [psi, phi, gamma], [0.0] * 3)
    _disc_body(ball, s)
    _disc_springs(build, s, first)


_BUILDERS: dict[type, Any] = {Arc: _arc, Link: _link, Universal: _universal, Hinge: _hinge}
