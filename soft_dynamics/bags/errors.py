"""Errors of bags, with one-line messages."""

from __future__ import annotations

from pathlib import Path

from soft_dynamics.errors import SoftRobotError, one_line

_LONGEST = 2000  # characters of a reason, which may contain text of a damaged file


class BagError(SoftRobotError):
    """A bag cannot be read or written; `path` is the bag."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        super().__init__(f'bag {path}: {one_line(reason, _LONGEST)}')
