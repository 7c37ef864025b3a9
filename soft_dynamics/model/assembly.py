"""Assemble the chain of a robot: each segment type is a choice of primitives, mass placement and material.

Each type says in its file in `segments/` which primitives it is made of; the base stands in front of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ..description.robot_description import Description
from ..geometry import so3
from ..kernels.chain import (
    COORDINATES,
    ELEMENT,
    FIXED,
    NO_BODY,
    POINT_BODY,
    PRISMATIC,
    RATES,
    REVOLUTE,
    RIGID_BODY,
    Elements,
)
from ..segments import Coordinate

Array = npt.NDArray[np.float64]


@dataclass
class Assembly:
    """A chain under construction, with the names and indices that `Robot` needs."""

    rows: list[Any] = field(default_factory=list)
    names: list[str] = field(default_factory=list)  # public coordinates
    units: list[str] = field(default_factory=list)  # likewise
    frames: dict[str, int] = field(default_factory=dict)  # frame name -> element
    starts: dict[str, int] = field(default_factory=dict)  # segment name -> element before its proximal frame
    rates_of: dict[str, slice] = field(default_factory=dict)  # segment name -> its coordinates
    positions_of: dict[str, slice] = field(default_factory=dict)  # likewise, where these are quaternions
    springs: list[Any] = field(default_factory=list)
    spring_rates: list[int] = field(default_factory=list)  # first rate of the disc at the end of each
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

    def add_names(self, owner: str, coordinates: tuple[Coordinate, ...]) -> None:
        self.names += [f'{owner}_{coordinate.name}' for coordinate in coordinates]
        self.units += [coordinate.unit for coordinate in coordinates]

    def add_mass(
        self, e: Any, m: float, c: tuple[float, float, float], inertia: Any = (0.0, 0.0, 0.0)
    ) -> None:
        """Add a rigid body to an element's frame: centre of mass c, inertia (xx, yy, zz[, xy, xz, yz]) about it."""
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

    def set_material(self, e: Any, k: Any, k3: Any, d: Any, rest: Any) -> None:
        """Give each coordinate of an element its spring and damper."""
        for key, values in (('k', k), ('k3', k3), ('d', d), ('rest', rest)):
            e[key][: len(values)] = values
        e['material'] = int(any(np.any(values) for values in (k, k3, d)))


def assemble(robot: Description, regular: bool = False) -> Assembly:
    """Build the chain of a robot; `regular` selects the form of each segment without singular poses."""
    build = Assembly()
    world = build.element(FIXED, shift=robot.base.position)
    world['gx'], world['gy'], world['gz'] = robot.gravity
    if any(robot.base.rpy):
        world['turned'], world['R'] = 1, so3.from_rpy(robot.base.rpy).ravel()
    robot.base.build(build)
    build.add_names('base', robot.base.own_coordinates())
    build.frames['base'] = len(build.rows) - 1
    for segment in robot.segments:
        first, first_q, start = build.nv, build.nq, len(build.rows) - 1
        (segment.build_regular if regular else segment.build)(build)
        build.add_names(segment.name, segment.own_coordinates())
        build.starts[segment.name] = start
        build.frames[segment.name] = len(build.rows) - 1
        build.rates_of[segment.name] = slice(first, build.nv)
        build.positions_of[segment.name] = slice(first_q, build.nq)
    build.add_mass(build.rows[-1], robot.tip_load, (0.0, 0.0, 0.0))
    return build
