"""Say so when a kernel is being compiled, which happens once per machine and takes seconds."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 2.0  # [s]


@contextmanager
def announcing(name: str) -> Iterator[None]:
    """Tell on stderr why it takes long, if it does."""
    note = threading.Timer(PATIENCE, _tell, [name])
    note.daemon = True
    note.start()
    try:
        yield
    finally:
        note.cancel()


def _tell(name: str) -> None:
    print(f'soft_dynamics: compiling {name}, once on this machine ...', file=sys.stderr, flush=True)


class Announced:
    """A compiled function whose first call, if it takes long, tells why on stderr."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def __call__(self, *args: Any) -> Any:
        if self.kernel.overloads:
            return self.kernel(*args)
        with announcing(self.kernel.py_func.__name__):
            return self.kernel(*args)
