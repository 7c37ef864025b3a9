"""Collects single poses into sets: those of one time, of as many bodies as the time before."""

from __future__ import annotations

from typing import NamedTuple

from soft_dynamics.array import Array


class Poses(NamedTuple):
    """Poses X_WS of bodies at time t [s]."""

    t: float
    X_WS: dict[str, Array]


class PoseCollector:
    """Returns a set of poses as soon as it is complete.

    A lost body delays one set, until the next time or a call of `flush`; after that the class expects fewer bodies.
    """

    def __init__(self, bodies: set[str]) -> None:
        self._expected = set(bodies)
        self._seen: set[str] = set()  # at the time of the newest pose
        self._waiting = Poses(float('-inf'), {})

    def add(self, t: float, body: str, X_WS: Array) -> list[Poses]:
        """Take a pose; return the sets that it completes, in order of time."""
        out = []
        if t != self._waiting.t:
            out += self.flush()
            self._expected, self._seen = self._seen or self._expected, set()
            self._waiting = Poses(t, {})
        self._waiting.X_WS[body] = X_WS
        self._seen.add(body)
        return out + (self.flush() if self._seen >= self._expected else [])

    def flush(self) -> list[Poses]:
        """Return what is waiting, complete or not."""
        out = self._waiting
        self._waiting = Poses(out.t, {})
        return [out] if out.X_WS else []
