"""For how long a device has certainly not vented by itself."""

from __future__ import annotations

import math
from collections.abc import Callable

from soft_dynamics.timing.boot_time import boot_time
from soft_hw_bridge.errors import DeviceError

_PART = 0.75  # of the watchdog's time; the rest is for the way to the device


class ContactLease:
    """Time in which set points may be written, counted from the last answered request.

    A device starts its watchdog again with each request that reaches it. That is after the request was sent, and
    before its answer came. So if an answer comes later than the watchdog's time after the request before it was sent,
    the device may have vented in between. Then what was put out before no longer counts, and the device must be opened
    again, from zero.
    """

    def __init__(self, boot: Callable[[], float] = boot_time) -> None:
        self._boot = boot
        self._duration = self._contact_t = -math.inf

    def start(self, watchdog: float) -> None:
        """Begin with a device that vents `watchdog` seconds after the last request; it was contacted just now."""
        self._duration = _PART * watchdog
        self._contact_t = self._boot()

    def check(self) -> None:
        """Raise DeviceError if the device may have vented by itself."""
        age = self._boot() - self._contact_t
        if not 0.0 <= age <= self._duration:
            raise DeviceError(f'no contact for {age:.3g} s: the device may have vented by itself')

    def renew(self, sent_t: float) -> None:
        """Note that the request sent at this time was answered just now; DeviceError if that came too late."""
        self.check()
        self._contact_t = sent_t
