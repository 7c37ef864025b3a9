"""Files that are there whole or, whatever happens, not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def read_bounded(path: Path, size: int) -> bytes:
    """Read a file of at most `size` bytes. Raises ValueError if it is larger, or a pipe or device; else OSError.

    It asks what it has opened before it reads: a pipe could make it wait for ever, /dev/zero has no end.
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
