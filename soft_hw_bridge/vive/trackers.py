"""Poll the trackers, reconnect, count, and convert the axes to REP 103."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from soft_dynamics.diagnostics import ERROR, OK, WARN, Status
from soft_dynamics.errors import one_line
from soft_dynamics.geometry.quaternion import from_rotation
from soft_dynamics.messages.body_frame import BodyFrame
from soft_hw_bridge.errors import UNREADABLE, DeviceError
from soft_hw_bridge.link.backoff import Backoff
from soft_hw_bridge.link.stream_health import StreamHealth
from soft_hw_bridge.vive.backend import Matrix34, TrackingState, VrBackend

_MOST_TRACKERS = 64  # remembered; OpenVR has at most this many devices at a time
_FIGURES = ('rate_hz', 'last_age_s', 'received', 'duplicate', 'malformed')  # diagnostics of each tracker


@dataclass
class Tracker:
    """State of one tracker. A poll that finds the same pose again counts as duplicate."""

    health: StreamHealth = field(default_factory=StreamHealth)
    state: TrackingState = TrackingState.DISCONNECTED
    untracked: int = 0  # polls without a usable pose
    X_VT: Matrix34 = ()


class Trackers:
    """All trackers of a backend. Call `poll` at the rate at which you want poses.

    names: name of each tracker by serial number; a tracker without a name keeps its serial number.
    now_ns: the host clock that stamps the samples. OpenVR gives no time, so the stamp is the time of the call.
    """

    STALE_AFTER_S = 0.5

    def __init__(
        self,
        backend: VrBackend,
        names: Mapping[str, str] | None = None,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.trackers: dict[str, Tracker] = {name: Tracker() for name in (names or {}).values()}
        self.reconnects = 0
        self.refused = 0  # poses of trackers after the first _MOST_TRACKERS
        self.problem = 'not connected yet'  # one line, empty while poses are available
        self._backend = backend
        self._names = dict(names or {})
        self._now_ns = now_ns
        self._backoff = Backoff()
        self._was_connected = False

    def close(self) -> None:
        self._backend.close()
        self.problem = 'closed'

    def poll(self) -> list[BodyFrame]:
        """Return the new and usable poses as one frame (x forward, y left, z up), or nothing."""
        t = time.monotonic()
        try:
            if self.problem and not self._reconnect(t):
                return []
            stamp_ns = self._now_ns()
            poses = self._backend.poses()
        except (DeviceError, *UNREADABLE) as error:
            self.problem = one_line(str(error), 200)
            self._backend.close()
            for tracker in self.trackers.values():
                tracker.state = TrackingState.DISCONNECTED
            return []
        bodies = []
        for serial, state, X_VT in poses:
            name = self._names.get(serial, serial)
            if name not in self.trackers:
                if len(self.trackers) >= _MOST_TRACKERS:
                    self.refused += 1
                    continue
                self.trackers[name] = Tracker()
            if _take(self.trackers[name], state, X_VT, t):
                bodies.append((name, *y_up_to_rep103(X_VT)))
        return [BodyFrame.of(stamp_ns, bodies)] if bodies else []

    def status(self) -> Status:
        """Return the status. The message changes only with the state; numbers are in the values."""
        t = time.monotonic()
        trackers = sorted(self.trackers.copy().items())
        values: dict[str, object] = {'reconnects': self.reconnects, 'refused': self.refused}
        for name, tracker in trackers:
            report = tracker.health.report(t)
            values |= {f'{name}.{key}': report[key] for key in _FIGURES}
            values |= {f'{name}.untracked': tracker.untracked, f'{name}.state': tracker.state.value}
        if self.problem:
            return Status(ERROR, self.problem, values)
        if not trackers:
            return Status(WARN, 'no tracker is switched on', values)
        lost = [
            f'{name} {tracker.state.value if tracker.state is not TrackingState.OK else "does not change"}'
            for name, tracker in trackers
            if tracker.health.age(t) > self.STALE_AFTER_S
        ]
        return Status(WARN, ', '.join(lost), values) if lost else Status(OK, 'tracking', values)

    def _reconnect(self, t: float) -> bool:
        if not self._backoff.is_due(t):
            return False
        self._backend.connect()
        self._backoff.reset()
        self.reconnects += self._was_connected
        self._was_connected = True
        self.problem = ''
        return True


def y_up_to_rep103(
    X_VT: Matrix34,
) -> tuple[tuple[float, float, float], tuple[float, float, float, float]]:
    """Return position and quaternion with permuted axes of world and tracker: -z is x, -x is y, y is z.

    p_WT = C p_VT,  R_WT = C R_VT C^T  with the permutation C; the vector part of the quaternion transforms like p.
    """
    x, y, z = (row[3] for row in X_VT)
    qx, qy, qz, qw = from_rotation([row[:3] for row in X_VT]).tolist()
    return (-z, -x, y), (-qz, -qx, qy, qw)


def _take(tracker: Tracker, state: TrackingState, X_VT: Matrix34, t: float) -> bool:
    """Count a pose; True if it is new and usable."""
    tracker.state = state
    if state is not TrackingState.OK:
        tracker.untracked += 1
        return False
    if not _is_pose(X_VT):
        tracker.health.malformed += 1
        return False
    if X_VT == tracker.X_VT:
        tracker.health.duplicate += 1
        return False
    tracker.X_VT = X_VT
    return tracker.health.arrived(t)


def _is_pose(X_VT: Matrix34) -> bool:
    """Whether the numbers are finite and the rotation has rows of unit length."""
    return all(abs(a * a + b * b + c * c - 1) < 0.01 and abs(position) < 1e6 for a, b, c, position in X_VT)
