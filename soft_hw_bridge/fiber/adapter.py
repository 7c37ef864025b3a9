"""What a fiber sensor delivers, and what a protocol must offer to be used by the bridge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ShapeFrame:
    """One sample of one sensor: n places from base to tip. What the device did not send is None.

    F is the frame of the fiber's base, z along the fiber; C the cross-section's own frame at a place.
    """

    sensor: int
    sequence: int
    stamp_ns: int | None  # device time; None when the device does not tell it
    s: Array  # [m] distance from the base, (n,)
    p_FC_F: Array | None = None  # [m] (n, 3)
    quat_FC: Array | None = None  # x, y, z, w; (n, 4)
    curvature_C: Array | None = None  # [1/m, 1/m, rad/m] angular strain, the twist last; (n, 3)
    strain: Array | None = None  # [-] along the fiber; (n,), or (cores, n) before it is combined
    quality: Array | None = None  # device's own scale, (n,)
    valid: bool = True  # False: the device says that it could not measure


class ShapeAdapter(Protocol):
    """One protocol. Pure: bytes in, frames out; the transport is `client.ShapeClient`."""

    sequence_bits: int  # the device's frame counter wraps at 2 ** sequence_bits
    warnings: int  # messages used although something about them was odd
    problem: str  # why the last message was dropped

    @property
    def malformed(self) -> int:
        """Messages dropped."""

    def feed(self, data: bytes) -> list[ShapeFrame]:
        """Return the frames completed by these bytes; never raises, bad messages are counted."""

    def reset(self) -> None:
        """Forget half a message and what the last connection said."""

    def info(self) -> Mapping[str, str]:
        """Return what the device told about itself."""


class BufferedAdapter:
    """What adapters share whose devices send frames and nothing about themselves."""

    sequence_bits = 32

    def __init__(self) -> None:
        self.malformed = 0
        self.warnings = 0
        self.problem = ''
        self._buffer = bytearray()

    def reset(self) -> None:
        """Forget half a frame."""
        self._buffer.clear()

    def info(self) -> Mapping[str, str]:
        """Return nothing."""
        return {}

    def _drop(self, problem: str) -> None:
        self.malformed += 1
        self.problem = problem
