"""Dynamics linear in its parameters: tau = Psi(q, qd, qdd) beta + known forces.                       [Mehl, eq. 30]"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ..array import Array, as_states
from ..robot import Robot
from ..segments import Arc, Base, Material

PARAMETERS = ('mass', 'd_theta', 'd_dl', 'k_theta', 'k_dl1', 'k_dl3')

# Values of the segment when one parameter is 1 and all others are 0.
_UNITS: tuple[tuple[float, dict[str, tuple[float, ...]]], ...] = (
    (1.0, {}),
    (0.0, {'damping': (1.0, 1.0, 0.0)}),
    (0.0, {'damping': (0.0, 0.0, 1.0)}),
    (0.0, {'stiffness': (1.0, 1.0, 0.0)}),
    (0.0, {'stiffness': (0.0, 0.0, 1.0)}),
    (0.0, {'cubic_stiffness': (0.0, 0.0, 1.0)}),
)


def regressor(robot: Robot, q: Any, qd: Any, qdd: Any) -> Array:
    """Matrix Psi (nq, 6) or (count, nq, 6) of a robot with a single extensible arc; columns as in PARAMETERS.

    Each column is the inverse dynamics of the same arc with that parameter 1 and all others 0, on a massless base
    without a tip load. This is exact because the forces are linear in the parameters. The mass column includes
    gravity, and springs pull towards the robot's `rest`. Inverse dynamics is Psi beta + `known_forces`.

    Raises ValueError for other robots, and if stiffness or damping of the two bends differ.
    """
    segment = _only_arc(robot)
    states, single = as_states(robot.nq, q=q, qd=qd, qdd=qdd)
    base = _massless(robot.description.base)
    columns = []
    for mass, values in _UNITS:
        material = Material(rest=segment.material.rest, **values)
        only = dataclasses.replace(segment, mass=mass, material=material)
        unit = dataclasses.replace(robot.description, segments=(only,), base=base, tip_load=0.0)
        columns.append(Robot(unit).inverse_dynamics(states['q'], states['qd'], states['qdd']))
    Psi = np.stack(columns, -1)
    return Psi[0] if single else Psi


def known_forces(robot: Robot, q: Any, qd: Any, qdd: Any) -> Array:
    """Forces (nq,) or (count, nq) that do not depend on the parameters: tau - Psi beta.

    They come from mass and inertia of the base, the tip load, and cubic springs of the bend, which eq. 32 omits. They
    are zero for the shipped actuator. Subtract them from measured forces before identifying beta.

    Raises ValueError as `regressor`.
    """
    segment = _only_arc(robot)
    cubic = segment.material.cubic_stiffness[:2]
    material = Material(rest=segment.material.rest, cubic_stiffness=(*cubic, 0.0) if cubic else ())
    bare = dataclasses.replace(segment, mass=0.0, material=material)
    return Robot(dataclasses.replace(robot.description, segments=(bare,))).inverse_dynamics(q, qd, qdd)


def _only_arc(robot: Robot) -> Arc:
    segment = robot.description.segments[0]
    if len(robot.description.segments) != 1 or not isinstance(segment, Arc) or not segment.extensible:
        raise ValueError(f'robot: expected a single extensible arc, got {robot.name}')
    for name in ('stiffness', 'damping'):
        values = getattr(segment.material, name)
        if values and values[0] != values[1]:
            raise ValueError(
                f'robot: material.{name}: expected the same for both bends, got {values[0]:g} and {values[1]:g}'
            )
    return segment


def _massless(base: Base) -> Base:
    """The robot with a massless base; inverse dynamics is the same for prescribed and free bases."""
    if base.type == 'fixed':
        return base
    return Base(type='prescribed', position=base.position, rpy=base.rpy)
