"""Errors of an import, as lines with file, place and the value found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from soft_dynamics.errors import SoftRobotError, listed, one_line

_LONGEST = 2000  # characters of a reason, which may quote the recording


class ImportTrouble(SoftRobotError):
    """The recording does not match the mapping; `path` is the recording."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        super().__init__(f'{path}: {one_line(reason, _LONGEST)}')


class MappingError(SoftRobotError):
    """An invalid mapping; `problems` has one line per error."""

    def __init__(self, source: str, problems: Sequence[str]) -> None:
        self.source, self.problems = source, tuple(problems)
        super().__init__(listed(source, self.problems))
