"""Contact lease at its bounds: how long a device has certainly not vented."""

from __future__ import annotations

import pytest

from soft_hw_bridge.errors import DeviceError
from soft_hw_bridge.pressure.contact_lease import ContactLease

WATCHDOG = 1.0  # [s] so the lease is 0.75 s
STARTED = 16.0  # [s] like all times here a sum of powers of two


class Lease:
    """A lease that has just started, and its clock."""

    def __init__(self) -> None:
        self.t = STARTED
        self.lease = ContactLease(lambda: self.t)
        self.lease.start(WATCHDOG)

    def holds(self, t: float) -> bool:
        self.t = t
        try:
            self.lease.check()
        except DeviceError:
            return False
        return True


@pytest.mark.parametrize(('age', 'holds'), [(0.0, True), (0.75, True), (0.7501, False), (-0.001, False)])
def test_it_ends_before_the_watchdog_and_when_the_clock_goes_back(age: float, holds: bool) -> None:
    assert Lease().holds(STARTED + age) == holds


def test_it_counts_from_when_the_answered_request_was_sent() -> None:
    lease = Lease()
    lease.t = STARTED + 0.5
    lease.lease.renew(STARTED + 0.25)
    assert lease.holds(STARTED + 1.0)
    assert not lease.holds(STARTED + 1.0001)


def test_an_answer_that_comes_too_late_renews_nothing() -> None:
    lease = Lease()
    lease.t = STARTED + 1.0
    with pytest.raises(DeviceError, match='may have vented by itself'):
        lease.lease.renew(STARTED + 0.5)
    assert not lease.holds(STARTED + 1.0)


def test_before_its_start_nothing_may_be_written() -> None:
    with pytest.raises(DeviceError):
        ContactLease(lambda: STARTED).check()
