"""Convert message stamps to boot time, and reject stamps after the wall clock was set.

Messages are stamped with the wall clock, which can be set at any moment: setting it back by a second makes an old state
look new. Wall clock and boot clock differ by a constant and slow corrections, so a set clock is detectable.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from soft_dynamics.timing.boot_time import boot_time

_SEEN = 1e-3  # [s] smaller jumps are ignored
_STEP = 0.25  # [-] of the time-out: smaller errors of an age are ignored
_SLEW = 0.1  # [-] larger than the rate of clock corrections: NTP 0.05 %, chrony up to 8 %


class StampClock:
    """Converts a stamp to boot time [s], or -inf if it cannot be trusted.

    Stamps further in the future than `timeout` [s] are not trusted, nor is any stamp for `timeout` after the wall clock
    was set. A stamp slightly in the future counts as now, so it does not stay fresh longer than others.
    """

    def __init__(
        self,
        timeout: float,
        wall_ns: Callable[[], int] = time.time_ns,
        boot: Callable[[], float] = boot_time,
    ) -> None:
        self._timeout, self._wall_ns, self._boot = timeout, wall_ns, boot
        self.set_by, self.set_t = 0.0, -math.inf  # [s] size and time of the last setting of the wall clock
        self.now_ns, self.t = wall_ns(), boot()  # at the last look
        self._offset = self.now_ns * 1e-9 - self.t  # [s] wall clock minus boot clock

    def look(self) -> bool:
        """Read both clocks into `t` [s, boot time] and `now_ns`; return whether the wall clock was set meanwhile."""
        last, self.now_ns, self.t = self.t, self._wall_ns(), self._boot()
        return abs(self.now_ns * 1e-9 - self.t - self._offset) > _SEEN and self._was_set(last)

    def _was_set(self, last: float) -> bool:
        """Follow offsets that a slow correction explains; treat larger changes as a set clock."""
        before, now_ns, t = self._boot(), self._wall_ns(), self._boot()
        # The process may have been suspended between two readings: use the offset nearest to the last one.
        offset = min(max(self._offset, now_ns * 1e-9 - t), now_ns * 1e-9 - before)
        off = offset - self._offset
        slewed = _SLEW * min(t - last, self._timeout)
        self.now_ns, self.t = now_ns, t
        if abs(off) - slewed <= _STEP * self._timeout:
            self._offset += min(max(off, -slewed), slewed)
            return False
        self.set_by, self.set_t, self._offset = off, t, offset
        return True

    def time_of(self, stamp_ns: int) -> float:
        """Return the boot time of a stamp, as of the last look."""
        age = (self.now_ns - stamp_ns) * 1e-9
        if age < -self._timeout or self.t - self.set_t <= self._timeout:
            return -math.inf
        return self.t - max(age, 0.0)
