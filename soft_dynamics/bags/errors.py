"""What can be wrong with a bag, in one line."""

from __future__ import annotations

from pathlib import Path

from soft_dynamics.errors import SoftRobotError


class BagError(SoftRobotError):
    """A bag cannot be read or written; `path` is the bag."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        super().__init__(f'bag {path}: {" ".join(reason.split())}')
