"""What a fiber sensor delivers, and what a protocol must offer to be used by the bridge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from soft_dynamics.errors import one_line
from soft_hw_bridge.errors import MalformedPacket

Array = npt.NDArray[np.float64]

MOST_PLACES = 1 << 16  # of a frame; the longest fiber of an ODiSI has 38 500
LARGEST = {  # that is plausible, either sign; a frame with more is refused, infinity included
    's': 1e4,  # [m]
    'p_FC_F': 1e4,  # [m]
    'curvature_C': 1e5,  # [1/m] a radius of 10 um
    'strain': 10.0,
}


@dataclass(frozen=True, eq=False)
class ShapeFrame:
    """One sample of one sensor: n places from base to tip. What the device did not send is None.

    F is the frame of the fiber's base, z along the fiber; C the cross-section's own frame at a place.
    NaN marks what the device lost. Raises MalformedPacket for numbers that no fiber has.
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

    def __post_init__(self) -> None:
        if len(self.s) > MOST_PLACES:
            raise MalformedPacket(f'frame of {len(self.s)} places, at most {MOST_PLACES} are read')
        if np.isnan(self.s).any():
            raise MalformedPacket('frame with an arc length that is not a number')
        for name, most in LARGEST.items():
            values = getattr(self, name)
            if values is not None and np.any(np.abs(values) > most):
                raise MalformedPacket(f'frame with {name} beyond {most:g}')


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
        self.problem = one_line(problem, 200)
