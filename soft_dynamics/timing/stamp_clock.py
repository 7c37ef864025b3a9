"""Times of stamps on a clock that no one sets, and refusal of stamps when the wall clock was set.

Messages are stamped by the wall clock, which may be set at any moment: back by a second, it makes a state of a second
ago look new. Wall clock and boot clock differ by a constant but for slow corrections, so a set clock shows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from soft_dynamics.timing.boot_time import boot_time

_SEEN = 1e-3  # [s] less is not looked into
_STEP = 0.25  # [-] of the time-out: a smaller error of an age does not matter
_SLEW = 0.1  # [-] a clock under correction is off by less: NTP 0.05 %, chrony 8 % at most


class StampClock:
    """Gives the time of a stamp [s of boot_time], -inf for one that cannot be trusted.

    Not trusted are stamps further in the future than `timeout` [s], and for so long after the wall clock was set, all.
    A stamp that is a little in the future counts as of now: it does not stay fresh for longer than others.
    """

    def __init__(
        self,
        timeout: float,
        wall_ns: Callable[[], int] = time.time_ns,
        boot: Callable[[], float] = boot_time,
    ) -> None:
        self._timeout, self._wall_ns, self._boot = timeout, wall_ns, boot
        self.set_by, self.set_t = 0.0, -math.inf  # [s] by how much, and when, the wall clock was set last
        self.now_ns, self.t = wall_ns(), boot()  # of the last look
        self._offset = self.now_ns * 1e-9 - self.t  # [s] of the wall clock from the boot clock

    def look(self) -> bool:
        """Read both clocks into `t` [s of boot_time] and `now_ns`; return whether the wall clock was set since."""
        last, self.now_ns, self.t = self.t, self._wall_ns(), self._boot()
        return abs(self.now_ns * 1e-9 - self.t - self._offset) > _SEEN and self._was_set(last)

    def _was_set(self, last: float) -> bool:
        """Follow a clock that is off by what a correction since the last look may explain; else take it for set."""
        before, now_ns, t = self._boot(), self._wall_ns(), self._boot()
        # The process may have stood still between two of them: take the offset nearest to the last one.
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
        """Return when a stamp was, as of the last look."""
        age = (self.now_ns - stamp_ns) * 1e-9
        if age < -self._timeout or self.t - self.set_t <= self._timeout:
            return -math.inf
        return self.t - max(age, 0.0)
