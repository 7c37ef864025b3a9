"""Map pressures to forces: constant columns on the joint coordinates, and constant wrenches on moving frames.

gain, volume            columns: force per pressure on the coordinates, independent of the pose
tip_wrench, end_force   wrenches: constant in the frame they act on, so the force depends on the pose
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..array import Array
from ..description.robot_description import Arc, Chamber, Description, Disc, Universal
from .assembly import Assembly
from .coordinates import SameCoordinates


@dataclass(frozen=True)
class Actuators:
    columns: Array  # (nv, chambers) [N m/Pa]
    wrenches: Array  # (chambers, N, 6) about each element's origin, in its axes [N m/Pa, N/Pa]

    @property
    def follows(self) -> bool:
        """Whether the force of any chamber turns with the robot."""
        return bool(np.any(self.wrenches))


def actuators(robot: Description, build: Assembly, change: SameCoordinates) -> Actuators:
    """Columns and wrenches of all chambers on the chain of an assembled robot."""
    chambers = robot.actuation.chambers
    columns = np.zeros((build.nv, len(chambers)))
    wrenches = np.zeros((len(chambers), len(build.rows), 6))
    segments = {s.name: s for s in robot.segments}
    for k, chamber in enumerate(chambers):
        for name in segments if chamber.segment == 'all' else [chamber.segment]:
            segment, where = segments[name], build.rates_of[name]
            if where.start == where.stop:
                continue
            if chamber.work == 'gain':
                _gain(columns[:, k], where, chamber, segment, change)
            elif chamber.work == 'volume':
                x, y = chamber.position
                columns[where, k] = chamber.area * np.array([y, -x, 1.0])[: where.stop - where.start]
            else:
                _wrench(wrenches[k], build, chamber, segment)
    return Actuators(columns, wrenches)


def _gain(column: Array, where: slice, chamber: Chamber, segment: object, change: SameCoordinates) -> None:
    public = np.zeros(column.size)
    gain = np.array(chamber.gain)
    if isinstance(segment, Universal):
        gain = gain if segment.axis_order == 'yx' else gain[::-1]
        where = slice(where.start + 1, where.stop - 1) if segment.lengths == 'free' else where
    public[where] = gain
    column += change.force(public)


def _wrench(wrench: Array, build: Assembly, chamber: Chamber, segment: object) -> None:
    x, y = chamber.position
    assert isinstance(segment, Arc | Disc)
    tip = build.frames[segment.name]
    if isinstance(segment, Disc):
        wrench[tip] += chamber.area * np.array([segment.radius, 0.0, 0.0, 0.0, 0.0, 1.0])
    else:
        # [Mehl, eq. 18-21, the sign of m_y corrected]: the same components at tip and base, in different frames.
        at_tip = chamber.area * np.array([y, -x, 0.0, 0.0, 0.0, 1.0])
        wrench[tip] += at_tip
        wrench[build.starts[segment.name]] -= at_tip
