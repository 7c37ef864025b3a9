"""When to try a lost device again."""

from __future__ import annotations


class Backoff:
    """At once, then after 0.25 s, then twice as long each time, up to 5 s."""

    FIRST_S = 0.25
    LAST_S = 5.0

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin again: the device has answered."""
        self._wait = self.FIRST_S
        self._next = float('-inf')

    def is_due(self, t: float) -> bool:
        """Whether to try at time t [s]; if so, the next wait begins."""
        if t < self._next:
            return False
        self._next = t + self._wait
        self._wait = min(2 * self._wait, self.LAST_S)
        return True
