"""Progress bar for commands; appears only if the work takes a while."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TextIO

PATIENCE = 1.0  # [s] shorter work shows no bar
REDRAW = 0.1  # [s]
WIDTH = 30
STEPS = 4  # lines in a log file, which cannot be redrawn


class ProgressBar:
    """with ProgressBar('reading') as bar: bar(0.5) at half of the work. In a log file it writes a few lines."""

    def __init__(
        self, what: str, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._what, self._stream, self._clock = what, stream or sys.stderr, clock
        self._live = self._stream.isatty()
        self._start, self._drawn_at, self._drawn = clock(), -1.0, 0.0

    def __call__(self, part: float) -> None:
        now = self._clock()
        part = min(max(part, 0.0), 1.0)
        if now - self._start < PATIENCE:
            return
        due = now - self._drawn_at >= REDRAW if self._live else int(part * STEPS) > int(self._drawn * STEPS)
        if due:
            self._draw(part, now)

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live and self._drawn_at >= 0.0:
            if error is None:
                self._draw(1.0, self._clock())
            self._stream.write('\n')
            self._stream.flush()

    def _draw(self, part: float, now: float) -> None:
        self._drawn_at, self._drawn = now, part
        left = (now - self._start) * (1.0 - part) / part if part > 0.0 else 0.0
        full = round(WIDTH * part)
        bar = '█' * full + '░' * (WIDTH - full) if _can_write_blocks(self._stream) else f'{full}/{WIDTH}'
        text = f'{self._what:<12} {bar} {100.0 * part:3.0f} %  {left:.0f} s left '
        self._stream.write(f'\r{text}' if self._live else f'{self._what}: {100.0 * part:.0f} %\n')
        self._stream.flush()


def _can_write_blocks(stream: TextIO) -> bool:
    return 'utf' in (stream.encoding or '').lower()
