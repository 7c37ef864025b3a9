"""Report on stderr that numba compiles a kernel: this happens once per machine and takes seconds."""

from __future__ import annotations

import sys
import threading
from typing import Any

from numba.core import event

PATIENCE = 2.0  # [s]

register: Any = event.register


def announce_compilations() -> None:
    register('numba:compile', _Announcement())


class _Announcement(event.Listener):
    """Reports a compilation if it takes long. numba compiles in one thread at a time."""

    def __init__(self) -> None:
        self._depth = 0  # a kernel compiles the kernels that it calls
        self._note: threading.Timer | None = None

    def on_start(self, started: Any) -> None:
        self._depth += 1
        kernel = started.data['dispatcher'].py_func
        package = str(kernel.__module__).partition('.')[0]
        if self._depth == 1 and package.startswith('soft_'):
            self._note = threading.Timer(PATIENCE, _tell, [package, kernel.__name__])
            self._note.daemon = True
            self._note.start()

    def on_end(self, ended: Any) -> None:
        self._depth -= 1
        if self._depth == 0 and self._note is not None:
            self._note.cancel()
            self._note = None


def _tell(package: str, kernel: str) -> None:
    print(f'{package}: compiling {kernel}, once on this machine ...', file=sys.stderr, flush=True)
