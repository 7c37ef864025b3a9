"""Serialised state messages; building a Python message would cost more than the state."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from soft_robot_suite.msg import SoftState

from soft_dynamics.messages.flat_messages import FlatWriter
from soft_dynamics.robot import Robot
from soft_dynamics.ros.conversions import flat_writer, float64s


class StateMessage:
    """Writes the SoftState of a robot, ready to be published."""

    def __init__(self, robot: Robot) -> None:
        n = robot.nq
        parts = {'q': n, 'qd': n, 'qdd': n, 'covariance_diagonal': 2 * n}
        arrays = {name: float64s(np.zeros(size)) for name, size in parts.items()}
        self._template = SoftState(model=robot.name, names=list(robot.coordinate_names), **arrays)
        self._template.header.frame_id = 'base_link'
        self._writers: dict[frozenset[str], FlatWriter] = {}  # by the sources of the state

    def write(self, estimate: Any, stamp_ns: int, sources: Iterable[str]) -> bytes:
        """Return the serialised message of an estimate; ArithmeticError if a number in it is not finite."""
        numbers = estimate[1:5]
        if not math.isfinite(sum(float(part @ part) for part in numbers)):
            raise ArithmeticError('the state is not finite')
        kinds = frozenset(sources)
        if kinds not in self._writers:
            self._template.sources = sorted(kinds)
            self._writers[kinds] = flat_writer(self._template)
        return self._writers[kinds].write(stamp_ns, *numbers)
