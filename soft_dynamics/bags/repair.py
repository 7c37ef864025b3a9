"""Finish a bag whose recorder was killed: it has messages, but neither index nor metadata."""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
from pathlib import Path

from .any_reader import AnyReader
from .errors import BagError
from .types import register_text, ros_types
from .writing import STORAGES, NamedWriter, lock

METADATA, ASIDE = 'metadata.yaml', '.finishing'
MAGIC = b'\x89MCAP0\r\n'
DATA_END, FOOTER = 0x0F, 0x02  # records of MCAP: one byte of kind, eight of length, content
NO_INDEX = struct.pack('<BQI', DATA_END, 4, 0) + struct.pack('<BQQQI', FOOTER, 20, 0, 0, 0) + MAGIC


def unfinished(path: Path) -> Path | None:
    """The storage file of a bag without metadata, or None."""
    if not path.is_dir() or (path / METADATA).exists():
        return None
    files = [file for file in path.iterdir() if file.suffix in ('.mcap', '.db3')]
    return files[0] if len(files) == 1 else None


def repair(path: Path, file: Path) -> int:
    """Rewrite an unfinished bag as a finished one and return how many messages it holds.

    The new files are made aside and take their places when both are complete, metadata last: who is killed on the way
    leaves a bag that is unfinished as before.
    """
    try:
        held = lock(path)
    except BlockingIOError:
        raise BagError(path, 'is still being recorded') from None
    aside = path / ASIDE
    with held:
        shutil.rmtree(aside, ignore_errors=True)
        try:
            _seal_mcap(file) if file.suffix == '.mcap' else _roll_back(file)
            count = _copy(file, aside)
            (aside / file.name).replace(file)
            (aside / METADATA).replace(path / METADATA)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    return count


def _seal_mcap(file: Path) -> None:
    """Cut an MCAP file behind its last whole record and end it as one without index."""
    with file.open('r+b') as stream:
        size, end = os.fstat(stream.fileno()).st_size, len(MAGIC)
        if stream.read(end) != MAGIC:
            raise ValueError('not an MCAP file')
        while end + 9 <= size:
            kind, length = struct.unpack('<BQ', stream.read(9))
            if kind in (DATA_END, FOOTER) or end + 9 + length > size:
                break
            end = stream.seek(length, os.SEEK_CUR)
        stream.seek(end)
        stream.truncate()
        stream.write(NO_INDEX)


def _roll_back(file: Path) -> None:
    """Let sqlite3 undo the transaction that was cut short, which a reader that must not write cannot."""
    connection = sqlite3.connect(file)
    connection.execute('SELECT count(*) FROM messages').fetchone()
    connection.close()


def _copy(file: Path, path: Path) -> int:
    types, count = ros_types(), 0
    storage = STORAGES['mcap' if file.suffix == '.mcap' else 'sqlite3']
    with AnyReader(file) as reader, NamedWriter(path, storage, file.stem) as writer:
        topics = {}
        for c in reader.connections:
            register_text(types, c.msgtype, c.msgdef.data)
            qos = getattr(c.ext, 'offered_qos_profiles', [])
            topics[c.id] = writer.add_connection(
                c.topic, c.msgtype, typestore=types, offered_qos_profiles=qos
            )
        for c, t_ns, data in reader.messages():
            writer.write(topics[c.id], t_ns, data)
            count += 1
    return count
