"""Join frames of single bodies with the same stamp, until all bodies of the previous stamp are there."""

from __future__ import annotations

import numpy as np

from soft_dynamics.messages.body_frame import BodyFrame


class FrameCollector:
    """Joins the frames of one time, and returns the joined frame as soon as it is complete.

    A body that is lost delays one frame, until the next stamp or a call of `flush`. Later frames do not wait for it.
    """

    def __init__(self, bodies: set[str]) -> None:
        self._expected = set(bodies)
        self._seen: set[str] = set()  # at the time of the newest frame
        self._stamp_ns: int | None = None
        self._waiting: dict[str, BodyFrame] = {}  # by body

    def add(self, frame: BodyFrame) -> list[BodyFrame]:
        """Take a frame; return the joined frames that it completes, in the order of time."""
        out = []
        if frame.stamp_ns != self._stamp_ns:
            out += self.flush()
            self._expected, self._seen = self._seen or self._expected, set()
            self._stamp_ns = frame.stamp_ns
        for k, name in enumerate(frame.names):
            self._waiting[name] = frame.only([k])
            self._seen.add(name)
        return out + (self.flush() if self._seen >= self._expected else [])

    def flush(self) -> list[BodyFrame]:
        """Return the waiting frame, complete or not."""
        parts, self._waiting = list(self._waiting.values()), {}
        if not parts:
            return []
        names = tuple(part.names[0] for part in parts)
        p_WB, quat_WB = (
            np.concatenate(each) for each in zip(*((f.p_WB, f.quat_WB) for f in parts), strict=True)
        )
        return [BodyFrame(parts[0].stamp_ns, names, p_WB, quat_WB)]
