"""Interface of a source of tracker poses, such as OpenVR."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, Protocol

Matrix34 = tuple[tuple[float, ...], ...]  # rotation and position, three rows of four


class TrackingState(Enum):
    """Tracking quality; use only poses in state OK."""

    OK = 'tracked'
    OUT_OF_RANGE = 'out of range'
    CALIBRATING = 'calibrating'
    ROTATION_ONLY = 'rotation only'
    INVALID = 'no valid pose'
    DISCONNECTED = 'disconnected'


class TrackerPose(NamedTuple):
    """X_VT: pose of the tracker T in the universe V of the tracking system (y up, -z forward, metres)."""

    serial: str
    state: TrackingState
    X_VT: Matrix34


class VrBackend(Protocol):
    """All methods raise DeviceError on failure; then call `close` and `connect` again."""

    def connect(self) -> None: ...

    def devices(self) -> list[str]:
        """Return the serial numbers of the trackers seen since `connect`."""

    def poses(self) -> list[TrackerPose]:
        """Return the current poses of the trackers."""

    def close(self) -> None:
        """Disconnect; may be called at any time, also twice."""
