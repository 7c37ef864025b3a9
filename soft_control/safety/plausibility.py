"""Plausible coordinates, rates and tip poses of a robot, from its geometry and the limits in its file.

A bend has coordinate_limit and rate_limit; as a difference of lengths, both times its lever. A length may deviate from
its rest length by the fraction stretch_limit, and change by that much in 1/rate_limit seconds. Directions and twists of
discs may have any value; their limit is three turns. A moving base has its own limits.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from soft_dynamics.array import Array
from soft_dynamics.description.safety import Safety
from soft_dynamics.robot import Robot
from soft_dynamics.segments import Coordinate

TIP_OFF = 0.3  # [-] largest distance of a measured tip from the model's, relative to the length
_TURNS = 6.0 * math.pi  # [rad] for unlimited angles
_BASE_TURN = 3.2  # [rad] a base may have any orientation

_Row = tuple[float, float, float]  # rest value, largest distance from it, largest rate


class Plausible(NamedTuple):
    """Limits of each coordinate (nq,) and of the tip."""

    names: tuple[str, ...]
    centre: Array  # [rad or m]
    coordinate: Array  # [rad or m] largest distance from the centre
    rate: Array  # [rad/s or m/s]
    X_WO: Array  # pose of the base with its coordinates at zero
    tip: float  # [m] largest distance from the base
    tip_speed: float  # [m/s]
    turn_rate: float  # [rad/s] of the tip

    @classmethod
    def of(cls, robot: Robot) -> Plausible:
        """Return the limits from the robot's file and geometry."""
        description, safety = robot.description, robot.description.safety
        coordinates = [c for segment in description.segments for c in segment.own_coordinates()]
        rows = [_row(coordinate, safety) for coordinate in coordinates]
        stretches = any(coordinate.kind == 'length' for coordinate in coordinates)
        longest = robot.length * (1.0 + TIP_OFF + stretches * safety.stretch_limit)
        speed, turn = longest * safety.rate_limit, safety.rate_limit
        if description.base.moves:
            fast = safety.base_rate_limit
            rows = [(0.0, safety.base_limit, fast)] * 3 + [(0.0, _BASE_TURN, fast)] * 3 + rows
            speed, turn = speed + fast, turn + fast
        centre, most, fastest = np.array(rows).T
        X_WO = robot.forward_kinematics(np.zeros(robot.nq))[0]
        return cls(robot.coordinate_names, centre, most, fastest, X_WO, longest, speed, turn)

    def p_WB(self, q: Array) -> Array:
        """Return the position of the base [m]."""
        X_WO = self.X_WO
        moved = self.names[0] == 'base_x'
        return np.asarray(X_WO[:3, 3] + X_WO[:3, :3] @ q[:3] if moved else X_WO[:3, 3])


def _row(coordinate: Coordinate, safety: Safety) -> _Row:
    rest, scale = coordinate.rest, coordinate.scale
    if coordinate.kind == 'length':
        most = safety.stretch_limit * scale
        return rest, most, safety.rate_limit * most
    if coordinate.kind == 'turn':
        return rest, _TURNS, safety.rate_limit
    return rest, scale * safety.coordinate_limit, scale * safety.rate_limit
