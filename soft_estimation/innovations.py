"""What became of the samples of each sensor."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple


class Verdict(NamedTuple):
    """Of a sample: whether it was let in, its normalised innovation squared, and how many numbers it has."""

    accepted: bool
    nis: float
    dof: int


REFUSED = Verdict(False, math.nan, 0)


@dataclass
class Innovations:
    """Statistics of one sensor: the mean of nis/dof is near 1 if model and noise are right."""

    accepted: int = 0
    rejected: int = 0
    nis: float = 0.0  # sum over accepted samples of the normalised innovation squared
    dof: int = 0

    def count(self, verdict: Verdict) -> None:
        self.accepted, self.rejected = (
            self.accepted + verdict.accepted,
            self.rejected + (not verdict.accepted),
        )
        if verdict.accepted:
            self.nis, self.dof = self.nis + verdict.nis, self.dof + verdict.dof

    @property
    def consistency(self) -> float:
        return self.nis / self.dof if self.dof else math.nan


def tally(innovations: Iterable[Innovations]) -> tuple[int, int]:
    """How many samples were let in and refused, of all sensors together."""
    counts = [(each.accepted, each.rejected) for each in innovations]
    return sum(accepted for accepted, _ in counts), sum(rejected for _, rejected in counts)
