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


class PressureDevice(Protocol):
    """A set of valves. Methods raise DeviceError on trouble, except `close`."""

    sequence_bits: int  # of the numbers of its readings
    malformed: int  # messages dropped
    about: str  # where its channels are
    has_watchdog: bool  # whether it vents by itself when nobody speaks to it

    def open(self) -> None:
        """Connect, vent, and start the device."""

    def exchange(self, pressure: Array) -> list[Reading]:
        """Put out pressures [Pa] and return what was measured since the last time, oldest first."""

    def close(self) -> None:
        """Vent, stop the device, disconnect."""
