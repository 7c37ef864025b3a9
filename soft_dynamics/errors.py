"""The errors of the suite: each carries the data a caller needs to react."""

from __future__ import annotations

from collections.abc import Sequence


class SoftRobotError(Exception):
    """Root of all run-time trouble of the suite; misuse of an argument is a plain ValueError."""


class RobotFileError(SoftRobotError):
    """A robot description is wrong; `problems` holds one line per mistake, all of them."""

    def __init__(self, source: str, problems: Sequence[str]) -> None:
        self.source = source
        self.problems = tuple(problems)
        super().__init__('\n'.join(f'{source}: {problem}' for problem in self.problems))


class SingularInertia(SoftRobotError):
    """The acceleration is not determined: a coordinate moves no mass in this pose."""

    def __init__(self, coordinate: str, hint: str = '') -> None:
        self.coordinate = coordinate
        super().__init__(
            f'coordinate {coordinate!r} moves no mass in this pose' + (f'; {hint}' if hint else '')
        )


class NotConverged(SoftRobotError):
    """A simulation could not go on; it carries where it stopped."""

    def __init__(self, time: float, state: object, reason: str) -> None:
        self.time = time
        self.state = state
        super().__init__(f'simulation stopped at t = {time:.6g} s: {reason}')
