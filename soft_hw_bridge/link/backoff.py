"""Exponential backoff for reconnections."""

from __future__ import annotations


class Backoff:
    """The first attempt is due at once, the next after 0.25 s, 0.5 s, ... up to 5 s."""

    FIRST_S = 0.25
    LAST_S = 5.0

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start over, after the device has answered."""
        self._wait = self.FIRST_S
        self._next = float('-inf')

    def is_due(self, t: float) -> bool:
        """Whether an attempt is due at time t [s]; if so, start the next wait."""
        if t < self._next:
            return False
        self._next = t + self._wait
        self._wait = min(2 * self._wait, self.LAST_S)
        return True
