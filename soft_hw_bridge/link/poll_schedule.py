"""When to ask a device that sends nothing by itself."""

from __future__ import annotations


class Schedule:
    """Cycles at a rate on average; times are seconds of one monotonic clock.

    What was held up is made up for, unless it is longer ago than LATE_S. A cycle that found nothing new is tried
    again after a quarter of the period, then twice as long each time, up to the period.
    """

    LATE_S = 0.2

    def __init__(self, rate: float, t: float) -> None:
        self.due = t  # when the next cycle begins
        self._period = 1.0 / rate
        self._pause = self._period / 4
        self._planned = t  # begin of the cycle that is to find something

    def done(self, t: float, found: bool = True) -> None:
        """Plan the cycle after the one at time t."""
        if found:
            self._planned = max(self._planned + self._period, t - self.LATE_S)
            self._pause = self._period / 4
            self.due = self._planned
        else:
            self.due = t + self._pause
            self._pause = min(2 * self._pause, self._period)
