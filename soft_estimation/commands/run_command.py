"""Frame of the offline commands: one-line errors and exit codes for scripts."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from soft_dynamics.errors import SoftRobotError

MISTAKE, INTERRUPTED = 2, 130  # exit codes


def run_command(
    name: str,
    parser: argparse.ArgumentParser,
    command: Callable[[argparse.Namespace], int],
    args: list[str] | None = None,
) -> int:
    """Parse, run, and return the exit code: from the command, 2 for wrong input, 130 after Ctrl-C."""
    try:
        options = parser.parse_args(args)
        return command(options)
    except (ValueError, OSError, SoftRobotError) as error:
        for line in str(error).splitlines():
            print(f'{name}: {line}', file=sys.stderr)
        return MISTAKE
    except KeyboardInterrupt:
        print(f'{name}: interrupted', file=sys.stderr)
        return INTERRUPTED


def say(text: str) -> None:
    """Print a remark to the error stream."""
    print(text, file=sys.stderr, flush=True)
