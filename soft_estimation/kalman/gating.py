"""Innovation statistics by sensor."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple


class Verdict(NamedTuple):
    """Result of a sample: whether it was accepted, its normalised innovation squared, and its number of components."""

    accepted: bool
    nis: float
    dof: int


LATELY = 0.5  # [s]
REFUSED = Verdict(False, math.nan, 0)


@dataclass
class Innovations:
    """Statistics of one sensor. The mean of nis/dof is near 1 if model and noise are right."""

    accepted: int = 0
    rejected: int = 0
    nis: float = 0.0  # sum over accepted samples of the normalised innovation squared
    dof: int = 0
    shown_at: float = -math.inf  # [s] the last accepted sample that shows the shape
    recent: float = 0.0  # mean of nis/dof over the last LATELY seconds

    def count(self, verdict: Verdict, t: float = -math.inf) -> None:
        """Count a sample; t [s]: its time if it shows the shape."""
        self.accepted, self.rejected = (
            self.accepted + verdict.accepted,
            self.rejected + (not verdict.accepted),
        )
        if verdict.accepted:
            self.nis, self.dof = self.nis + verdict.nis, self.dof + verdict.dof
            if t > self.shown_at and verdict.dof:
                part = (
                    1.0 - math.exp(-min(t - self.shown_at, LATELY) / LATELY)
                    if self.shown_at > -math.inf
                    else 0.0
                )
                self.recent += part * (verdict.nis / verdict.dof - self.recent)
                self.shown_at = t

    @property
    def consistency(self) -> float:
        return self.nis / self.dof if self.dof else math.nan


def tally(innovations: Iterable[Innovations]) -> tuple[int, int]:
    """Return how many samples were accepted and rejected, over all sensors."""
    counts = [(each.accepted, each.rejected) for each in innovations]
    return sum(accepted for accepted, _ in counts), sum(rejected for _, rejected in counts)


def are_explained(innovations: Iterable[Innovations], t: float, most: float) -> bool:
    """Return whether half or more of the sensors that show the shape at t have a recent nis/dof of at most `most`."""
    recent = [each.recent for each in innovations if t - each.shown_at < LATELY]
    return 2 * sum(value > most for value in recent) <= len(recent)
