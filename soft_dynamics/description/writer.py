"""Write a description to a robot file: the counterpart of `reader`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from ..atomic_files import write_new
from ..strict_yaml import dump
from .robot_description import Description


def to_mapping(block: Any) -> Any:
    """Convert a description to nested mappings and lists, without default values."""
    if dataclasses.is_dataclass(block):
        return {
            field.name: to_mapping(value)
            for field in dataclasses.fields(block)
            if (value := getattr(block, field.name)) != field.default
        }
    if isinstance(block, tuple):
        return [to_mapping(entry) for entry in block]
    return block


def write_description(path: Path, robot: Description, comment: str) -> None:
    """Write a new robot file that starts with `comment`. The file appears complete or not at all.

    Raises FileExistsError if the file exists.
    """
    body = dump(to_mapping(robot), default_flow_style=None, width=110)
    lines = [f'# {line}'.rstrip() for line in comment.splitlines()]
    write_new(path, '\n'.join([*lines, body]))
