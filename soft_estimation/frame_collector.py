"""Frames of single bodies that belong together: those of one time, of as many bodies as were seen the time before."""

from __future__ import annotations

import numpy as np

from soft_dynamics.messages.body_frame import BodyFrame


class FrameCollector:
    """Joins the frames of one time and hands them on as soon as nobody is missing.

    Who is not seen any more delays one frame, until the next time or a call of `flush`; after that nobody waits for it.
    """

    def __init__(self, bodies: set[str]) -> None:
        self._expected = set(bodies)
        self._seen: set[str] = set()  # at the time of the newest frame
        self._stamp_ns: int | None = None
        self._waiting: dict[str, BodyFrame] = {}  # by body

    def add(self, frame: BodyFrame) -> list[BodyFrame]:
        """Take a frame; return the joined frames that this ends, in the order of time."""
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
        """Hand on what waits, complete or not."""
        parts, self._waiting = list(self._waiting.values()), {}
        if not parts:
            return []
        names = tuple(part.names[0] for part in parts)
        p_WB, quat_WB = (
            np.concatenate(each) for each in zip(*((f.p_WB, f.quat_WB) for f in parts), strict=True)
        )
        return [BodyFrame(parts[0].stamp_ns, names, p_WB, quat_WB)]
