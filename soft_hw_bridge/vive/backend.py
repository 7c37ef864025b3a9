"""What a source of tracker poses has to offer; OpenVR is one."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, Protocol

Matrix34 = tuple[tuple[float, ...], ...]  # rotation and position, three rows of four


class TrackingState(Enum):
    """How well a tracker is seen; only poses that are OK can be trusted."""

    OK = 'tracked'
    OUT_OF_RANGE = 'out of range'
    CALIBRATING = 'calibrating'
    ROTATION_ONLY = 'rotation only'
    INVALID = 'no valid pose'
    DISCONNECTED = 'disconnected'


class TrackerPose(NamedTuple):
    """X_VT: the tracker T in the universe V of the tracking system (y up, -z forward, metres)."""

    serial: str
    state: TrackingState
    X_VT: Matrix34


class VrBackend(Protocol):
    """Trouble of any kind is a DeviceError; after one, `close` and `connect` again."""

    def connect(self) -> None: ...

    def devices(self) -> list[str]:
        """Return the serial numbers of the trackers seen since `connect`."""

    def poses(self) -> list[TrackerPose]:
        """Return where the trackers are at this moment."""

    def close(self) -> None:
        """Let go; allowed at any time, also twice."""
