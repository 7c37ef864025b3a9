"""Dynamics linear in its parameters: tau = Psi(q, qd, qdd) beta.                                    [Mehl, eq. 30]"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from .arguments import Array, as_states
from .description import Arc, Material
from .robot import Robot

PARAMETERS = ('mass', 'd_theta', 'd_dl', 'k_theta', 'k_dl1', 'k_dl3')


def regressor(robot: Robot, q: Any, qd: Any, qdd: Any) -> Array:
    """The matrix (nq, 6) or (count, nq, 6) of a robot that is one extensible arc, columns as in PARAMETERS.

    Each column is the inverse dynamics of the same robot with that parameter 1 and all others 0; that is exact because
    the forces are linear in them. The mass column includes gravity.

    Raises ValueError for any other robot.
    """
    segment = robot.description.segments[0]
    if len(robot.description.segments) != 1 or not isinstance(segment, Arc) or not segment.extensible:
        raise ValueError(f'robot: expected a single extensible arc, got {robot.name}')
    states, single = as_states(robot.nq, q=q, qd=qd, qdd=qdd)
    units = (
        {'mass': 1.0, 'material': Material()},
        {'mass': 0.0, 'material': Material(damping=(1.0, 1.0, 0.0))},
        {'mass': 0.0, 'material': Material(damping=(0.0, 0.0, 1.0))},
        {'mass': 0.0, 'material': Material(stiffness=(1.0, 1.0, 0.0))},
        {'mass': 0.0, 'material': Material(stiffness=(0.0, 0.0, 1.0))},
        {'mass': 0.0, 'material': Material(cubic_stiffness=(0.0, 0.0, 1.0))},
    )
    columns = []
    for change in units:
        only = dataclasses.replace(segment, **change)  # type: ignore[arg-type]
        unit = Robot(dataclasses.replace(robot.description, segments=(only,), tip_load=0.0))
        columns.append(unit.inverse_dynamics(states['q'], states['qd'], states['qdd']))
    Psi = np.stack(columns, -1)
    return Psi[0] if single else Psi
