"""A clock that no one sets and that counts the time in suspend; CLOCK_MONOTONIC stands still there."""

from __future__ import annotations

import time


def boot_time() -> float:
    """Return the seconds since the machine was started."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
