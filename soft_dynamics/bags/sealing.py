"""End a storage file that was cut short behind the last that is whole."""

from __future__ import annotations

import io
import os
import sqlite3
import struct
from pathlib import Path

MAGIC = b'\x89MCAP0\r\n'
DATA_END, FOOTER = 0x0F, 0x02  # records of MCAP: one byte of kind, eight of length, content
NO_INDEX = struct.pack('<BQI', DATA_END, 4, 0) + struct.pack('<BQQQI', FOOTER, 20, 0, 0, 0) + MAGIC


def seal(file: Path) -> None:
    """Make a storage file one that every reader takes."""
    seal_mcap(file) if file.suffix == '.mcap' else _roll_back(file)


def seal_mcap(file: Path) -> None:
    """Cut an MCAP file behind its last whole record and end it as one without index.

    Where the disk has no room for the end, the last record, which in our bags is an index, makes room for it.
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
    """Let sqlite3 undo the transaction that was cut short, which a reader that must not write cannot."""
    connection = sqlite3.connect(file)
    connection.execute('SELECT count(*) FROM messages').fetchone()
    connection.close()
