"""Say so when a kernel is being compiled, which happens once per machine and takes seconds."""

from __future__ import annotations

import sys
import threading
from typing import Any

PATIENCE = 2.0  # [s]


class Announced:
    """A compiled function whose first call, if it takes long, tells why on stderr."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def __call__(self, *args: Any) -> Any:
        if self.kernel.overloads:
            return self.kernel(*args)
        note = threading.Timer(PATIENCE, self._tell)
        note.daemon = True
        note.start()
        try:
            return self.kernel(*args)
        finally:
            note.cancel()

    def _tell(self) -> None:
        name = self.kernel.py_func.__name__
        print(f'soft_dynamics: compiling {name}, once on this machine ...', file=sys.stderr, flush=True)
