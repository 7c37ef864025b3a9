"""Rate and age of a stream, and its diagnostic status."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

OK, WARN, ERROR, STALE = range(4)  # levels of diagnostic_msgs/DiagnosticStatus


class Status(NamedTuple):
    """One diagnostic: level (OK, WARN, ERROR or STALE), a message, and values."""

    level: int
    message: str
    values: Mapping[str, object] = MappingProxyType({})


class RateCounter:
    """Rate of events over the last `window` seconds, on any clock in seconds."""

    def __init__(self, window: float = 2.0) -> None:
        if not window > 0:
            raise ValueError(f'window must be > 0, got {window}')
        self.window = window  # [s]
        self.total = 0
        self._first = self._last = -math.inf  # [s]
        self._times: deque[float] = deque()

    def tick(self, t: float) -> None:
        """Count an event at time `t` [s]; a clock that jumps back restarts the window."""
        if t < self._last or self.total == 0:
            self._first = t
            self._times.clear()
        self.total += 1
        self._last = t
        self._times.append(t)
        while self._times[0] <= t - self.window:
            self._times.popleft()

    def rate(self, t: float) -> float:
        """Return the rate [Hz] at time `t`; 0 before the second event. Safe while another thread counts."""
        times = list(self._times)
        count = len(times) - bisect_right(times, t - self.window)
        if t - self._first >= self.window:
            return count / self.window
        return (count - 1) / (t - self._first) if t > self._first else 0.0

    def age(self, t: float) -> float:
        """Return the time [s] since the last event, infinite before the first."""
        return t - self._last


def stream_status(rate: float, age: float, expected_rate: float, timeout: float) -> Status:
    """Return the status of a stream from its rate [Hz] and the age of its last sample [s], infinite before the first.

    An age above `timeout` [s] is an error, a rate below 80 % of `expected_rate` [Hz] a warning.
    """
    values = {'rate [Hz]': f'{rate:.2f}', 'age [s]': f'{age:.3f}'}
    if math.isinf(age):
        return Status(STALE, 'no sample yet', values)
    if age > timeout:
        return Status(ERROR, f'no sample for {age:.1f} s', values)
    if rate < 0.8 * expected_rate:
        return Status(WARN, f'{rate:.4g} Hz, expected {expected_rate:.4g} Hz', values)
    return Status(OK, f'{rate:.4g} Hz', values)
