"""Interface of measurements to the filter."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from soft_dynamics.array import Array

from .kernels import correct_all
from .process_model import Belief, Process


class Reading(NamedTuple):
    """z - h(x), dh/dx (m, size) and the noise variance (m,); and, for each of the k sensors, the terms of its gate."""

    innovation: Array
    H: Array
    variance: Array
    check: tuple[Array, Array, Array]  # innovation, H and covariance (k, m/k, m/k), of each sensor by itself

    @classmethod
    def plain(cls, innovation: Array, H: Array, variance: Array) -> Reading:
        """Return the reading of one sensor with independent components."""
        return cls(innovation, H, variance, (innovation, H, np.diag(variance)[None]))

    def correct(self, belief: Belief, rule: Array) -> Correction:
        """Update a belief at whose mean this was read."""
        return Correction(*correct_all(belief.x, belief.P, self[:3], self.check, rule))


class Correction(NamedTuple):
    """Mean and covariance after the first `let_in` sensors, and nis up to the first rejected one."""

    x: Array
    P: Array
    nis: Array
    let_in: int


class Measurement(Protocol):
    """A measurement at time t by `sensors`; each has an equal share of the rows of a reading."""

    @property
    def t(self) -> float: ...

    @property
    def sensors(self) -> tuple[str, ...]: ...

    @property
    def showing(self) -> int:
        """How many of the sensors, the last ones, show the shape of the robot."""

    @property
    def dof(self) -> int:
        """How many numbers each sensor measured."""

    @property
    def content(self) -> Array:
        """All numbers of all sensors, as measured."""

    def read(self, process: Process, x: Array, pressure: Array) -> Reading: ...

    def correct(self, process: Process, belief: Belief, pressure: Array, rule: Array) -> Correction:
        """Update a belief with the sensors in turn, up to the first that breaks the rule of correct_all."""

    def only(self, k: int) -> Measurement:
        """Return the part of sensor k."""

    def behind(self, k: int) -> Measurement:
        """Return the part of the sensors from k on."""

    def without(self, k: int) -> Measurement:
        """Return the part of all sensors but k."""
