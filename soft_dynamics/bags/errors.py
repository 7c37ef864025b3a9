"""What can be wrong with a bag, in one line."""

from __future__ import annotations

from pathlib import Path

from soft_dynamics.errors import SoftRobotError, one_line

_LONGEST = 2000  # characters of a reason, which may quote a damaged file


class BagError(SoftRobotError):
    """A bag cannot be read or written; `path` is the bag."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        super().__init__(f'bag {path}: {one_line(reason, _LONGEST)}')
