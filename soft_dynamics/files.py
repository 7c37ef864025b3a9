"""Files that are there whole or, whatever happens, not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write a file in place of the one of that name, if there is one: it is lost only when the new one is complete."""
    with aside(path) as new:
        _write(new, text)
        new.replace(path)


def write_new(path: Path, text: str) -> None:
    """Write a file that must not exist yet. Raises FileExistsError, also if it appears meanwhile."""
    with aside(path) as new:
        _write(new, text)
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
def aside(path: Path) -> Iterator[Path]:
    """Another name in the same folder, with the same ending, for what is to replace the file; gone afterwards."""
    name = path.with_name(f'.{secrets.token_hex(4)}.{path.name}')
    try:
        yield name
    finally:
        name.unlink(missing_ok=True)


def _write(path: Path, text: str) -> None:
    """On disk, not only on its way there."""
    with path.open('x', encoding='utf-8') as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _claim(path: Path) -> None:
    """Take a name that nobody has: FileExistsError if somebody has."""
    path.open('x').close()
