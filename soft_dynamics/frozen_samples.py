"""Detect frozen sensors: samples that repeat bit for bit while the pressures change. Real sensors have noise."""

from __future__ import annotations

import numpy as np

from .array import Array

REPEATS = 10  # identical samples
MOVED = 0.05  # [-] of the largest pressure: a larger change of pressure moves the robot


class FrozenSamples:
    """Watches the samples of one source.

    A simulated sensor without noise repeats its samples while the robot is at rest. A source is therefore frozen only
    if the pressures changed since the first of the identical samples.
    """

    def __init__(self, largest_pressure: float) -> None:
        self._moved = MOVED * largest_pressure  # [Pa]
        self._content, self._count = b'', 0
        self._pressure: Array = np.empty(0)  # [Pa] at the first of the identical samples
        self.is_frozen = False

    def feed(self, content: bytes, pressure: Array) -> bool:
        """Feed the bytes of a sample and the pressures [Pa] at its time; return whether the source is frozen."""
        if content != self._content or pressure.size != self._pressure.size:
            self._content, self._count, self._pressure = content, 1, pressure
            self.is_frozen = False
        else:
            self._count += 1
            if self._count >= REPEATS and not self.is_frozen:
                self.is_frozen = bool(np.abs(pressure - self._pressure).max(initial=0.0) > self._moved)
        return self.is_frozen
