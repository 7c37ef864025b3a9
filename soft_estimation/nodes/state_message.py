"""The message of a state, made once and filled in again for every state."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from soft_robot_suite.msg import SoftState

from soft_dynamics.robot import Robot
from soft_dynamics.ros.conversions import float64s

_NS = 1_000_000_000  # [ns/s]


class StateMessage:
    """`message` is a SoftState; its arrays are written to in place, which costs a tenth of making them."""

    def __init__(self, robot: Robot) -> None:
        n = robot.nq
        parts = {'q': n, 'qd': n, 'qdd': n, 'covariance_diagonal': 2 * n}
        arrays = {name: float64s(np.zeros(size)) for name, size in parts.items()}
        self.message = SoftState(model=robot.name, names=list(robot.coordinate_names), **arrays)
        self.message.header.frame_id = 'base_link'
        self._parts = [
            np.frombuffer(getattr(self.message, name)) for name in parts
        ]  # it may have copied them

    def fill(self, estimate: Any, stamp_ns: int, sources: Iterable[str]) -> SoftState:
        """Return the message of an estimate; ArithmeticError if a number in it is not finite."""
        total = 0.0
        for part, values in zip(self._parts, estimate[1:5], strict=True):
            part[:] = values
            total += float(part @ part)
        if not math.isfinite(total):
            raise ArithmeticError('the state is not finite')
        stamp = self.message.header.stamp
        stamp.sec, stamp.nanosec = divmod(stamp_ns, _NS)
        self.message.sources = sorted(sources)
        return self.message
