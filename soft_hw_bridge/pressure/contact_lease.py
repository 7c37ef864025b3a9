"""Contact lease: the time in which a device has certainly not vented by itself."""

from __future__ import annotations

import math
from collections.abc import Callable

from soft_dynamics.timing.boot_time import boot_time
from soft_hw_bridge.errors import DeviceError

_PART = 0.75  # of the watchdog time; the rest covers the way to the device


class ContactLease:
    """The time in which set points may be written, counted from the last answered request.

    Each request that reaches a device restarts its watchdog, at some moment between sending and answer. If an answer
    arrives later than the watchdog time after the previous request was sent, the device may have vented in between.
    Earlier set points are then void, and the device must be reopened from zero.
    """

    def __init__(self, boot: Callable[[], float] = boot_time) -> None:
        self._boot = boot
        self._duration = self._contact_t = -math.inf

    def start(self, watchdog: float) -> None:
        """Start the lease of a device that vents `watchdog` seconds after the last request; contact is now."""
        self._duration = _PART * watchdog
        self._contact_t = self._boot()

    def check(self) -> None:
        """Raise DeviceError if the device may have vented by itself."""
        age = self._boot() - self._contact_t
        if not 0.0 <= age <= self._duration:
            raise DeviceError(f'no contact for {age:.3g} s: the device may have vented by itself')

    def renew(self, sent_t: float) -> None:
        """Renew the lease with a request sent at this time and answered now; DeviceError if it is too late."""
        self.check()
        self._contact_t = sent_t
