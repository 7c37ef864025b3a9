"""Schedule polls of a device that sends nothing by itself."""

from __future__ import annotations


class Schedule:
    """Cycles at an average rate; times are seconds of one monotonic clock.

    It catches up on delayed cycles of the last LATE_S. A cycle that found nothing new is repeated after a quarter of
    the period, then after twice that time, and so on up to the period.
    """

    LATE_S = 0.2

    def __init__(self, rate: float, t: float) -> None:
        self.due = t  # start of the next cycle
        self._period = 1.0 / rate
        self._pause = self._period / 4
        self._planned = t  # start of the cycle that should find new data

    def done(self, t: float, found: bool = True) -> None:
        """Plan the cycle after the one at time t."""
        if found:
            self._planned = max(self._planned + self._period, t - self.LATE_S)
            self._pause = self._period / 4
            self.due = self._planned
        else:
            self.due = t + self._pause
            self._pause = min(2 * self._pause, self._period)
