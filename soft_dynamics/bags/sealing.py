"""Finish a truncated storage file after its last complete record."""

from __future__ import annotations

import io
import os
import sqlite3
import struct
from pathlib import Path

MAGIC = b'\x89MCAP0\r\n'
DATA_END, FOOTER = 0x0F, 0x02  # MCAP record: kind (1 byte), length (8 bytes), content
NO_INDEX = struct.pack('<BQI', DATA_END, 4, 0) + struct.pack('<BQQQI', FOOTER, 20, 0, 0, 0) + MAGIC


def seal(file: Path) -> None:
    """Make a storage file readable for every reader."""
    seal_mcap(file) if file.suffix == '.mcap' else _roll_back(file)


def seal_mcap(file: Path) -> None:
    """Truncate an MCAP file after its last complete record and finish it without an index.

    If the disk is full, the end replaces the last record, which in bags of this suite is an index.
    """
    with file.open('r+b', buffering=0) as stream:
        size, before, end = os.fstat(stream.fileno()).st_size, len(MAGIC), len(MAGIC)
        if stream.read(end) != MAGIC:
            raise ValueError('not an MCAP file')
        while end + 9 <= size:
            kind, length = struct.unpack('<BQ', stream.read(9))
            if kind in (DATA_END, FOOTER) or end + 9 + length > size:
                break
            before, end = end, stream.seek(length, os.SEEK_CUR)
        try:
            _end(stream, end)
        except OSError:
            _end(stream, before)


def _end(stream: io.FileIO, at: int) -> None:
    stream.truncate(at)
    stream.seek(at)
    if stream.write(NO_INDEX) != len(NO_INDEX):
        raise OSError('no room for the end of the file')


def _roll_back(file: Path) -> None:
    """Let sqlite3 roll back the interrupted transaction, which a read-only reader cannot do."""
    connection = sqlite3.connect(file)
    connection.execute('SELECT count(*) FROM messages').fetchone()
    connection.close()
