"""Rate limiter that tolerates jitter."""

from __future__ import annotations

import math


class Pace:
    """Accepts samples up to a mean rate; times are seconds on one clock.

    Each sample has a due time, one period after the previous one, and may come half a period early. After a pause, at
    most `spare` periods are made up. A sample older than the newest counts at the time of the newest, in place of a
    missing one, so a stream out of order passes like one in order.
    """

    def __init__(self, rate: float, spare: int = 1) -> None:
        self._period = 1.0 / rate
        self._spare = spare * self._period
        self._due = self._newest = -math.inf

    def take(self, t: float) -> bool:
        """Return whether to accept a sample at time t."""
        self._newest = max(self._newest, t)
        if self._newest < self._due - 0.5 * self._period:
            return False
        self._due = max(self._due, self._newest - self._spare) + self._period
        return True
