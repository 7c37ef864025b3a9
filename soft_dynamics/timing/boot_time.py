"""Monotonic clock that counts time in suspend (CLOCK_BOOTTIME), unlike CLOCK_MONOTONIC."""

from __future__ import annotations

import time


def boot_time() -> float:
    """Return the time since boot [s]."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
