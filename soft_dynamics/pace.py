"""No more than so many a second, and none lost because the one before it was late."""

from __future__ import annotations

import math


class Pace:
    """Lets through what comes at most at a rate on average; times are seconds of one clock.

    Each has a time when it is due, a period after that of the one before, and may come half a period early. What
    stands still for long does not save up: it may be made up for by one.
    """

    def __init__(self, rate: float) -> None:
        self._period = 1.0 / rate
        self._due = -math.inf

    def take(self, t: float) -> bool:
        """Whether what comes at time t is let through."""
        if t < self._due - 0.5 * self._period:
            return False
        self._due = max(self._due, t - self._period) + self._period
        return True
