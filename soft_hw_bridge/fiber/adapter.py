"""Frames of a fiber sensor, and the interface of a protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from soft_dynamics.errors import one_line
from soft_hw_bridge.errors import MalformedPacket

Array = npt.NDArray[np.float64]

MOST_PLACES = 1 << 16  # in a frame; the longest fiber of an ODiSI has 38 500
LARGEST = {  # largest plausible magnitudes; frames beyond them are rejected, infinity too
    's': 1e4,  # [m]
    'p_FC_F': 1e4,  # [m]
    'curvature_C': 1e5,  # [1/m] a radius of 10 um
    'strain': 10.0,
}


@dataclass(frozen=True, eq=False)
class ShapeFrame:
    """One sample of one sensor: n places from base to tip. Quantities that the device does not send are None.

    F is the frame of the fiber's base, z along the fiber; C is the frame of the cross-section at a place. NaN marks
    lost values. Raises MalformedPacket for implausible numbers.
    """

    sensor: int
    sequence: int
    stamp_ns: int | None  # device time; None if the device does not send it
    s: Array  # [m] distance from the base, (n,)
    p_FC_F: Array | None = None  # [m] (n, 3)
    quat_FC: Array | None = None  # x, y, z, w; (n, 4)
    curvature_C: Array | None = None  # [1/m, 1/m, rad/m] angular strain, the twist last; (n, 3)
    strain: Array | None = None  # [-] along the fiber; (n,), or (cores, n) before the cores are combined
    quality: Array | None = None  # scale of the device, (n,)
    valid: bool = True  # False: the device reports that it could not measure

    def __post_init__(self) -> None:
        if len(self.s) > MOST_PLACES:
            raise MalformedPacket(f'frame with {len(self.s)} places, at most {MOST_PLACES} are allowed')
        if np.isnan(self.s).any():
            raise MalformedPacket('frame with a NaN arc length')
        for name, most in LARGEST.items():
            values = getattr(self, name)
            if values is not None and np.any(np.abs(values) > most):
                raise MalformedPacket(f'frame with {name} beyond {most:g}')


class ShapeAdapter(Protocol):
    """Decoder of one protocol: bytes in, frames out. The transport is `client.ShapeClient`."""

    sequence_bits: int  # the device's frame counter wraps at 2 ** sequence_bits
    warnings: int  # messages used in spite of a defect
    problem: str  # why the adapter dropped the last message

    @property
    def malformed(self) -> int:
        """Messages dropped."""

    def feed(self, data: bytes) -> list[ShapeFrame]:
        """Return the frames completed by these bytes; never raises, counts bad messages."""

    def reset(self) -> None:
        """Forget partial messages and the metadata of the last connection."""

    def info(self) -> Mapping[str, str]:
        """Return what the device reported about itself."""


class BufferedAdapter:
    """Base of adapters for devices that send no metadata."""

    sequence_bits = 32

    def __init__(self) -> None:
        self.malformed = 0
        self.warnings = 0
        self.problem = ''
        self._buffer = bytearray()

    def reset(self) -> None:
        """Forget a partial frame."""
        self._buffer.clear()

    def info(self) -> Mapping[str, str]:
        """Return nothing."""
        return {}

    def _drop(self, problem: str) -> None:
        self.malformed += 1
        self.problem = one_line(problem, 200)
