"""The springs and dampers of a segment's coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..array import Array
from ..reader import quantity

Floats = tuple[float, ...]


@dataclass(frozen=True)
class Material:
    """Spring and damper of each coordinate of a segment: k (q - rest) + k3 (q - rest)^3 + d qd."""

    stiffness: Floats = quantity((), unit='N m/rad or N/m', least=0.0)
    cubic_stiffness: Floats = quantity((), unit='N m/rad^3 or N/m^3')
    damping: Floats = quantity((), unit='N m s/rad or N s/m', least=0.0)
    rest: Floats = quantity((), unit='rad or m', doc='coordinate at which the spring is relaxed')

    def lists(self, n: int) -> list[Array]:
        """(k, k3, d, rest), with zeros for omitted lists."""
        given = (self.stiffness, self.cubic_stiffness, self.damping, self.rest)
        return [np.array(values if values else (0.0,) * n, float) for values in given]
