"""Exceptions of the suite, with the data that a caller needs to react."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence

_MOST_PROBLEMS = 50  # lines in one message
_BRIEF = reprlib.Repr()
_BRIEF.maxlevel, _BRIEF.maxlist, _BRIEF.maxtuple, _BRIEF.maxdict = 3, 10, 10, 10
_BRIEF.maxstring = _BRIEF.maxlong = _BRIEF.maxother = 200


def shown(value: object, width: int = 60) -> str:
    """Format a value of any size and depth for an error message: printable, on one line, at most `width` characters."""
    try:
        text = _BRIEF.repr(value)
    except ValueError:  # Python refuses to print integers of more than 4300 digits
        text = f'{type(value).__name__} of too many digits'
    return text if len(text) <= width else text[: width - 3] + '...'


def one_line(text: str, width: int) -> str:
    """Format untrusted text for an error message: printable, on one line, at most `width` characters."""
    return ''.join(c if c.isprintable() else '?' for c in ' '.join(text[:width].split()))


def listed(source: str, problems: Sequence[str]) -> str:
    """One line per problem, up to a limit."""
    source = one_line(source, 100)
    lines = [f'{source}: {problem}' for problem in problems[:_MOST_PROBLEMS]]
    if len(problems) > _MOST_PROBLEMS:
        lines.append(f'{source}: and {len(problems) - _MOST_PROBLEMS} more')
    return '\n'.join(lines)


class SoftRobotError(Exception):
    """Base class of run-time errors of the suite; invalid arguments raise plain ValueError."""


class RobotFileError(SoftRobotError):
    """Invalid robot file; `problems` has one line for each problem."""

    def __init__(self, source: str, problems: Sequence[str]) -> None:
        self.source = source
        self.problems = tuple(problems)
        super().__init__(listed(source, self.problems))


class SingularInertia(SoftRobotError):
    """A coordinate moves no mass in this pose, so its acceleration is undetermined."""

    def __init__(self, coordinate: str, hint: str = '') -> None:
        self.coordinate = coordinate
        super().__init__(
            f'coordinate {coordinate!r} moves no mass in this pose' + (f'; {hint}' if hint else '')
        )


class NotConverged(SoftRobotError):
    """A simulation failed; carries the time and state where it stopped."""

    def __init__(self, time: float, state: object, reason: str) -> None:
        self.time = time
        self.state = state
        super().__init__(f'simulation stopped at t = {time:.6g} s: {reason}')
