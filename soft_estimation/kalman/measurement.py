"""What the filter asks of anything that was measured."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from soft_dynamics.array import Array

from .kernels import correct_all
from .process_model import Belief, Process


class Reading(NamedTuple):
    """z - h(x), dh/dx (m, size) and the variance (m,) of the noise; and what each of the k sensors is judged by."""

    innovation: Array
    H: Array
    variance: Array
    check: tuple[Array, Array, Array]  # innovation, H and covariance (k, m/k, m/k), of each sensor by itself

    @classmethod
    def plain(cls, innovation: Array, H: Array, variance: Array) -> Reading:
        """Of one sensor whose numbers have nothing to do with each other."""
        return cls(innovation, H, variance, (innovation, H, np.diag(variance)[None]))

    def correct(self, belief: Belief, rule: Array) -> Correction:
        """What follows of it, if it was read at the mean of a belief."""
        return Correction(*correct_all(belief.x, belief.P, self[:3], self.check, rule))


class Correction(NamedTuple):
    """The mean and covariance after the first `let_in` sensors, and nis up to the first that was not."""

    x: Array
    P: Array
    nis: Array
    let_in: int


class Measurement(Protocol):
    """Something measured at time t by `sensors`, each of which has its share of the rows of a reading."""

    @property
    def t(self) -> float: ...

    @property
    def sensors(self) -> tuple[str, ...]: ...

    @property
    def showing(self) -> int:
        """How many of the sensors, the last ones, show the shape of the robot."""

    @property
    def dof(self) -> int:
        """How many numbers each sensor has measured."""

    @property
    def content(self) -> Array:
        """All numbers of all sensors as they were measured."""

    def read(self, process: Process, x: Array, pressure: Array) -> Reading: ...

    def correct(self, process: Process, belief: Belief, pressure: Array, rule: Array) -> Correction:
        """The belief after all sensors, one after the other, as long as they keep to the rule of correct_all."""

    def only(self, k: int) -> Measurement:
        """What sensor k measured."""

    def behind(self, k: int) -> Measurement:
        """What the sensors from k on measured."""

    def without(self, k: int) -> Measurement:
        """What the others measured."""
