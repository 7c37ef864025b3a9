"""Types for argparse: what cannot be meant is refused in one line that names the option."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path


def number(low: float, high: float, kind: type[float] = float) -> Callable[[str], float]:
    """A number from low to high; kind: float or int."""

    def parse(text: str) -> float:
        value = kind(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f'expected {low:g} to {high:g}, got {text}')
        return value

    parse.__name__ = kind.__name__  # argparse says: invalid float value
    return parse


def file_to_write(text: str) -> Path:
    """A file in a folder that is there."""
    path = Path(text)
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f'no folder {path.parent}')
    return path


def file_to_read(text: str) -> Path:
    """A file that is there."""
    path = Path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f'no file {path}')
    return path
