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

    What arrives later than that comes out at once, out of order.
    """

    def __init__(self, hold: int) -> None:
        self._hold, self._newest, self._count = hold, 0, 0
        self._waiting: list[Stamped] = []

    def add(self, t: int, name: str, sample: Any) -> list[Stamped]:
        """Take a sample; return those whose time has come."""
        self._count += 1
        self._newest = max(self._newest, t)
        heapq.heappush(self._waiting, Stamped(t, name, self._count, sample))
        released = []
        while self._waiting and self._waiting[0].t <= self._newest - self._hold:
            released.append(heapq.heappop(self._waiting))
        return released
