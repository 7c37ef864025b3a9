"""Samples of several sources in order of their stamps, whatever their order of arrival."""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple


class Stamped(NamedTuple):
    """A sample of the source `name` at time t; number distinguishes samples with the same name and time."""

    t: int  # [ns]
    name: str
    number: int
    sample: Any


class InOrder:
    """Holds each sample until one arrives that is newer by `hold` [ns]; orders samples of the same time by name.

    A sample that arrives even later leaves the buffer at once, out of order. A stamp more than `leap` [ns] ahead of all
    others raises ValueError until its source confirms it with a second one.
    """

    def __init__(self, hold: int, leap: int) -> None:
        self._hold, self._leap, self._count = hold, leap, 0
        self._newest: int | None = None
        self._leapt: dict[str, int] = {}  # rejected stamps, by source
        self._waiting: list[Stamped] = []

    def add(self, t: int, name: str, sample: Any) -> list[Stamped]:
        """Take a sample; return the samples that are due."""
        newest = t if self._newest is None else self._newest
        before = self._leapt.pop(name, None)
        if t > newest + self._leap and (before is None or abs(t - before) > self._leap):
            self._leapt[name] = t
            raise ValueError(f'stamp is {(t - newest) * 1e-9:.3f} s ahead of all others')
        self._count += 1
        self._newest = max(newest, t)
        heapq.heappush(self._waiting, Stamped(t, name, self._count, sample))
        released = []
        while self._waiting and self._waiting[0].t <= self._newest - self._hold:
            released.append(heapq.heappop(self._waiting))
        return released
