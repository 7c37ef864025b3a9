"""Interface of a pressure device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from soft_hw_bridge.pressure.guard import Array, PressureLimits


class Reading(NamedTuple):
    """Measured pressures."""

    pressure: Array  # [Pa] gauge, one per chamber
    receive_ns: int  # host time
    device_ns: int | None = None  # device time, if it has a clock
    sequence: int | None = None


class Stop(Protocol):
    """Signals a starting device to give up; `threading.Event` implements it."""

    def wait(self, timeout: float, /) -> bool:
        """Wait for the timeout [s], or until the start must end; then return True."""


class PressureDevice(Protocol):
    """A set of valves. All methods except `close` raise DeviceError on failure; then close and open it again.

    A cycle is `read`, a decision, `write`. A write never relies on memory alone: the `read` before it has verified that
    the device holds the set points written last.
    """

    sequence_bits: int  # of the sequence numbers of its readings
    malformed: int  # messages dropped
    about: str  # describes its channels
    watchdog: float | None  # [s] after the last message it vents by itself; None: never
    late_writes_excluded: bool  # writes that arrive after it vented by itself have no effect

    def open(self) -> None:
        """Connect, write zero, start the device, and verify that it holds zero."""

    def read(self) -> list[Reading]:
        """Return the new measurements, oldest first.

        SetpointsChangedError if the device does not hold the last set points: it vented, was reset, or has another
        master.
        """

    def write(self, pressure: Array, decided_t: float | None = None) -> None:
        """Write set points [Pa] decided at a time of `boot_time`; None: just now.

        DeviceError, and nothing is sent, if the decision is too old or the loss of contact was too long.
        """

    def close(self) -> None:
        """Vent, stop the device, disconnect."""


class DeviceKind(NamedTuple):
    """A kind of device, as the parameter `device` names it. The config is a PressureConfig."""

    make: Callable[[Any, Sequence[int], PressureLimits, Callable[[], int], Stop | None], PressureDevice]
    where: Callable[[Any], str]  # host or port, for people
