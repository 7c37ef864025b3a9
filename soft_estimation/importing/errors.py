"""What can be wrong with an import, in lines that name file, place and what is there instead."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from soft_dynamics.errors import SoftRobotError, listed, one_line

_LONGEST = 2000  # characters of a reason, which may quote the recording


class ImportTrouble(SoftRobotError):
    """The recording is not what the mapping says; `path` is the recording."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        super().__init__(f'{path}: {one_line(reason, _LONGEST)}')


class MappingError(SoftRobotError):
    """A mapping is wrong; `problems` holds one line per mistake, all of them."""

    def __init__(self, source: str, problems: Sequence[str]) -> None:
        self.source, self.problems = source, tuple(problems)
        super().__init__(listed(source, self.problems))
