"""What a pressure device must offer to be driven by the bridge."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from soft_hw_bridge.pressure.safety import Array


class Reading(NamedTuple):
    """Measured pressures."""

    pressure: Array  # [Pa] gauge, one per chamber
    receive_ns: int  # host time
    device_ns: int | None = None  # device time, where it has a clock
    sequence: int | None = None


class Stop(Protocol):
    """Tells a device that starts to give up; a `threading.Event` does."""

    def wait(self, timeout: float, /) -> bool:
        """Wait for so long [s], or until the start has to end; then return True."""


class PressureDevice(Protocol):
    """A set of valves. Methods raise DeviceError on trouble, except `close`; after one, close and open it again.

    A cycle is `read`, a decision, `write`. A write may be refused, but never comes from memory alone: `read` has seen
    just before that the device still holds what was written last.
    """

    sequence_bits: int  # of the numbers of its readings
    malformed: int  # messages dropped
    about: str  # where its channels are
    watchdog: float | None  # [s] after the last message it vents by itself; None: it does not
    late_writes_excluded: bool  # a write that arrives after the device has vented by itself has no effect

    def open(self) -> None:
        """Connect, put out zero, start the device, and see that zero is what it holds."""

    def read(self) -> list[Reading]:
        """Return what was measured since the last time, oldest first.

        SetpointsChangedError if the device does not hold what was written last: it vented, was reset, or has another
        master.
        """

    def write(self, pressure: Array, decided_t: float | None = None) -> None:
        """Put out pressures [Pa] that were decided at a time of `boot_time`; None: just now.

        DeviceError, and nothing is sent, if that is too long ago or contact was lost for too long.
        """

    def close(self) -> None:
        """Vent, stop the device, disconnect."""
