"""Bounded reads and atomic writes of files."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def read_bounded(path: Path, size: int) -> bytes:
    """Read a file of at most `size` bytes. Raises ValueError for larger files, pipes and devices; otherwise OSError.

    It checks the type of the opened file before reading: a pipe could block forever, and /dev/zero has no end.
    """
    with open(path, 'rb', opener=_without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError('expected a plain file, found a pipe or device')
        data = file.read(size + 1)
    if len(data) > size:
        raise ValueError(f'expected at most {size} bytes, found more')
    return data


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def write_whole(path: Path, text: str) -> None:
    """Write or replace a file atomically: the old file stays until the new one is complete."""
    with aside(path) as new:
        _write(new, text)
        new.replace(path)


def write_new(path: Path, text: str) -> None:
    """Write a new file. Raises FileExistsError if it exists or appears meanwhile."""
    with aside(path) as new:
        _write(new, text)
        try:
            os.link(new, path)  # unlike rename, link does not replace an existing file
        except FileExistsError:
            raise
        except OSError:  # file system without hard links: FAT, many network folders
            _claim(path)
            try:
                new.replace(path)
            except BaseException:
                path.unlink()
                raise


@contextmanager
def aside(path: Path) -> Iterator[Path]:
    """Yield a temporary path in the same folder with the same suffix; remove it afterwards."""
    name = path.with_name(f'.{secrets.token_hex(4)}.{path.name}')
    try:
        yield name
    finally:
        name.unlink(missing_ok=True)


def _write(path: Path, text: str) -> None:
    """Write and sync to disk."""
    with path.open('x', encoding='utf-8') as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _claim(path: Path) -> None:
    """Create the file exclusively; FileExistsError if it exists."""
    path.open('x').close()
