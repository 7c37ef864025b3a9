"""One frame of motion capture, from the decoder of a bridge to the filter.

A bridge decodes bytes into a frame and sends it as soft_robot_suite/BodyPoses. The estimator reads the message into the
same record, and its filter checks each body once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ..array import Array

Numbers = Sequence[float] | Array


class BodyFrame(NamedTuple):
    """Tracked bodies B in a world W with z up, at one time."""

    stamp_ns: int  # time of exposure
    names: tuple[str, ...]
    p_WB: Array  # (n, 3) [m]
    quat_WB: Array  # (n, 4) x, y, z, w

    @classmethod
    def of(cls, stamp_ns: int, bodies: Iterable[tuple[str, Numbers, Numbers]]) -> BodyFrame:
        """Make a frame from name, p_WB and quat_WB of each body."""
        names, p_WB, quat_WB = [], [], []
        for name, p, quat in bodies:
            names.append(name)
            p_WB.append(p)
            quat_WB.append(quat)
        count = len(names)
        return cls(
            stamp_ns,
            tuple(names),
            np.array(p_WB, np.float64).reshape(count, 3),
            np.array(quat_WB, np.float64).reshape(count, 4),
        )

    @classmethod
    def from_flat(cls, stamp_ns: int, names: Sequence[str], p_WB: Array, quat_WB: Array) -> BodyFrame:
        """Read the flat arrays of a message; ValueError unless each body has 3 and 4 numbers."""
        count = len(names)
        if p_WB.size != 3 * count or quat_WB.size != 4 * count:
            raise ValueError(f'expected {count} poses, got {p_WB.size} and {quat_WB.size} numbers')
        return cls(stamp_ns, tuple(names), p_WB.reshape(count, 3), quat_WB.reshape(count, 4))

    def only(self, rows: Sequence[int]) -> BodyFrame:
        """Return the bodies in these rows, in this order."""
        names = tuple([self.names[k] for k in rows])
        return BodyFrame(self.stamp_ns, names, self.p_WB[rows], self.quat_WB[rows])
