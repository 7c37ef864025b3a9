"""The errors of the suite: each carries the data a caller needs to react."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence

_MOST_PROBLEMS = 50  # lines of one message
_BRIEF = reprlib.Repr()
_BRIEF.maxlevel, _BRIEF.maxlist, _BRIEF.maxtuple, _BRIEF.maxdict = 3, 10, 10, 10
_BRIEF.maxstring = _BRIEF.maxlong = _BRIEF.maxother = 200


def shown(value: object, width: int = 60) -> str:
    """A value as an error message shows it: printable, on one line, cut to `width`, whatever its size and depth."""
    try:
        text = _BRIEF.repr(value)
    except ValueError:  # Python prints no integer of more than 4300 digits
        text = f'{type(value).__name__} of too many digits'
    return text if len(text) <= width else text[: width - 3] + '...'


def one_line(text: str, width: int) -> str:
    """A text of unknown origin as part of a message: printable, on one line, cut to `width`."""
    return ''.join(c if c.isprintable() else '?' for c in ' '.join(text[:width].split()))


def listed(source: str, problems: Sequence[str]) -> str:
    """One line per problem; of very many only the first."""
    source = one_line(source, 100)
    lines = [f'{source}: {problem}' for problem in problems[:_MOST_PROBLEMS]]
    if len(problems) > _MOST_PROBLEMS:
        lines.append(f'{source}: and {len(problems) - _MOST_PROBLEMS} more')
    return '\n'.join(lines)


class SoftRobotError(Exception):
    """Root of all run-time trouble of the suite; misuse of an argument is a plain ValueError."""


class RobotFileError(SoftRobotError):
    """A robot description is wrong; `problems` holds one line per mistake, all of them."""

    def __init__(self, source: str, problems: Sequence[str]) -> None:
        self.source = source
        self.problems = tuple(problems)
        super().__init__(listed(source, self.problems))


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
