"""Samples of many sources in the order of their stamps, whatever the order of their arrival."""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple


class Stamped(NamedTuple):
    """A sample of the source `name` at time t; number tells samples of one name and time apart."""

    t: int  # [ns]
    name: str
    number: int
    sample: Any


class InOrder:
    """Holds each sample until one came that is newer by `hold` [ns]; samples of one time are ordered by name.

    What arrives later than that comes out at once, out of order. A stamp that leaps ahead of all others by more than
    `leap` [ns] would put an end to all order: it is a ValueError until its source says so twice.
    """

    def __init__(self, hold: int, leap: int) -> None:
        self._hold, self._leap, self._count = hold, leap, 0
        self._newest: int | None = None
        self._leapt: dict[str, int] = {}  # stamps that were refused, by source
        self._waiting: list[Stamped] = []

    def add(self, t: int, name: str, sample: Any) -> list[Stamped]:
        """Take a sample; return those whose time has come."""
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
