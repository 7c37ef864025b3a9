"""Map pressures to forces: constant columns on the joint coordinates, and constant wrenches on moving frames.

gain, volume            columns: force per pressure on the coordinates, independent of the pose
tip_wrench, end_force   wrenches: constant in the frame they act on, so the force depends on the pose
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..array import Array
from ..description.robot_description import Description
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
            if not segment.moves:
                continue
            if chamber.work in ('gain', 'volume'):
                given = chamber.work == 'gain'
                public = np.zeros(build.nv)
                public[where] = (
                    segment.spread(np.array(chamber.gain))
                    if given
                    else segment.volume_gain(chamber.area, chamber.position)
                )
                columns[:, k] += change.force(public)
            else:
                at_end, at_start = segment.chamber_wrenches(chamber.area, chamber.position)
                wrenches[k, build.frames[name]] += at_end
                wrenches[k, build.starts[name]] += at_start
    return Actuators(columns, wrenches)
