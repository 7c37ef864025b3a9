"""Run an emulator in the background."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Loop:
    """Calls `step(t)` at a rate and `idle(seconds)` in between, in a thread, inside a `with` block.

    t: seconds since the start. The end of the block raises an error of the thread again.
    """

    def __init__(self, step: Callable[[float], None], idle: Callable[[float], None], rate_hz: float) -> None:
        self._step, self._idle, self._period = step, idle, 1 / rate_hz
        self._error: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Loop:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._error:
            raise self._error

    def _run(self) -> None:
        start, k = time.monotonic(), 0
        try:
            while not self._stop.is_set():
                self._step(k * self._period)
                k += 1
                self._idle(max(start + k * self._period - time.monotonic(), 0.0))
        except BaseException as error:
            self._error = error
