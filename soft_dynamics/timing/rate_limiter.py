"""No more than so many a second, and none lost because the one before it was late."""

from __future__ import annotations

import math


class Pace:
    """Lets through what comes at most at a rate on average; times are seconds of one clock.

    Each has a time when it is due, a period after that of the one before, and may come half a period early. What
    stands still for long does not save up: `spare` may be made up for. What is older than the newest counts as of its
    time, and so takes the place of one that is missing: out of order a stream passes as it would in order.
    """

    def __init__(self, rate: float, spare: int = 1) -> None:
        self._period = 1.0 / rate
        self._spare = spare * self._period
        self._due = self._newest = -math.inf

    def take(self, t: float) -> bool:
        """Whether what comes at time t is let through."""
        self._newest = max(self._newest, t)
        if self._newest < self._due - 0.5 * self._period:
            return False
        self._due = max(self._due, self._newest - self._spare) + self._period
        return True
