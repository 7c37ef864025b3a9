"""Plausible coordinates, rates and tip poses of a robot, from its geometry and the limits in its file.

A bend has coordinate_limit and rate_limit; as a difference of lengths, both times its lever. A length may deviate from
its rest length by the fraction stretch_limit, and change by that much in 1/rate_limit seconds. Directions and twists of
discs may have any value; their limit is three turns. A moving base has its own limits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from soft_dynamics.array import Array
from soft_dynamics.description.robot_description import Arc, Disc, Hinge, Safety, Segment, Universal
from soft_dynamics.robot import Robot

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
        rows = [row for segment in description.segments for row in _segment(segment, safety)]
        stretches = any(_is_extensible(segment) for segment in description.segments)
        longest = robot.length * (1.0 + TIP_OFF + stretches * safety.stretch_limit)
        speed, turn = longest * safety.rate_limit, safety.rate_limit
        if description.base.type != 'fixed':
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


def _is_extensible(segment: Segment) -> bool:
    return (isinstance(segment, Arc) and segment.extensible) or _is_free(segment)


def _is_free(segment: Segment) -> bool:
    return isinstance(segment, Universal) and segment.lengths == 'free'


def _segment(s: Segment, safety: Safety) -> Iterator[_Row]:
    """Yield the rows of a segment's coordinates in order."""
    bend = (0.0, safety.coordinate_limit, safety.rate_limit)

    def length(at_rest: float, offset: float) -> _Row:
        most = safety.stretch_limit * at_rest
        return offset, most, safety.rate_limit * most

    if isinstance(s, Arc):
        lever = s.lever if s.coordinates == 'difference' else 1.0
        yield from [(0.0, lever * bend[1], lever * bend[2])] * 2
        if s.extensible:
            yield length(s.length, 0.0 if s.coordinates == 'difference' else s.length)
    elif isinstance(s, Universal):
        half = [length(0.5 * s.length, 0.5 * s.length)] if _is_free(s) else []
        yield from [*half, bend, bend, *half]
    elif isinstance(s, Hinge):
        yield bend
    elif isinstance(s, Disc):
        turn = (0.0, _TURNS, safety.rate_limit)
        yield from (turn, bend, turn, bend, turn)
