"""Files are written completely or not at all, with ordinary permissions, on any file system."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from soft_dynamics import atomic_files
from soft_dynamics.atomic_files import write_new, write_whole

Write = Callable[[Path, str], None]
NO_LINKS = PermissionError(errno.EPERM, 'Operation not permitted')
FULL = OSError(errno.ENOSPC, 'No space left on device')


def failing(error: OSError) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize('write', [write_new, write_whole])
def test_others_may_read_what_the_umask_lets_them(tmp_path: Path, write: Write) -> None:
    before = os.umask(0o027)
    try:
        write(tmp_path / 'arm.yaml', 'text')
    finally:
        os.umask(before)
    assert (tmp_path / 'arm.yaml').stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize('write', [write_new, write_whole])
@pytest.mark.parametrize('call', ['fsync', 'replace'])
def test_a_full_disk_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Write, call: str
) -> None:
    monkeypatch.setattr(atomic_files.os, 'link', failing(NO_LINKS))
    monkeypatch.setattr(
        *((atomic_files.os, 'fsync') if call == 'fsync' else (atomic_files.Path, 'replace')), failing(FULL)
    )
    with pytest.raises(OSError, match='No space'):
        write(tmp_path / 'arm.yaml', 'text')
    assert list(tmp_path.iterdir()) == []


def test_what_was_there_stays_until_the_new_one_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / 'report.html'
    write_whole(path, 'first')
    write_whole(path, 'second')
    monkeypatch.setattr(atomic_files.Path, 'replace', failing(FULL))
    with pytest.raises(OSError, match='No space'):
        write_whole(path, 'third')
    assert [file.name for file in tmp_path.iterdir()] == ['report.html']
    assert path.read_text() == 'second'


@pytest.mark.parametrize('links', [True, False])
def test_a_new_file_never_replaces_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    if not links:
        monkeypatch.setattr(atomic_files.os, 'link', failing(NO_LINKS))
    write_new(tmp_path / 'arm.yaml', 'mine')
    with pytest.raises(FileExistsError):
        write_new(tmp_path / 'arm.yaml', 'yours')
    assert (tmp_path / 'arm.yaml').read_text() == 'mine'
    assert [file.name for file in tmp_path.iterdir()] == ['arm.yaml']
