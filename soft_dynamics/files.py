"""Files that are there whole or, whatever happens, not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write a file in place of the one of that name, if there is one: it is lost only when the new one is complete."""
    with _aside(path, text) as new:
        new.replace(path)


def write_new(path: Path, text: str) -> None:
    """Write a file that must not exist yet. Raises FileExistsError, also if it appears meanwhile."""
    with _aside(path, text) as new:
        try:
            os.link(new, path)  # unlike a rename, it refuses to replace
        except FileExistsError:
            raise
        except OSError:  # no links there: FAT, many network folders
            _claim(path)
            try:
                new.replace(path)
            except BaseException:
                path.unlink()
                raise


@contextmanager
def _aside(path: Path, text: str) -> Iterator[Path]:
    """The text on disk under another name in the same folder, gone afterwards."""
    aside = path.with_name(f'.{path.name}.{secrets.token_hex(4)}')
    try:
        with aside.open('x', encoding='utf-8') as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        yield aside
    finally:
        aside.unlink(missing_ok=True)


def _claim(path: Path) -> None:
    """Take a name that nobody has: FileExistsError if somebody has."""
    path.open('x').close()
