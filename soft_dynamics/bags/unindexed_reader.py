"""Readers of the rosbags library, extended to files without index or order and with inconsistent metadata."""

from __future__ import annotations

import heapq
import re
import sqlite3
import struct
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rosbags.interfaces import Connection
from rosbags.rosbag2 import Reader
from rosbags.rosbag2.reader import DirectoryReader
from rosbags.rosbag2.storage_mcap import McapReader
from rosbags.rosbag2.storage_sqlite3 import Sqlite3Reader

from .limits import Budget, unpack_message

CHUNK = 0x06  # MCAP chunk record: kind (1 byte), length (8), two times (8 each), unpacked size, ...
# SQL keywords that the tables of a bag do not need.
_COMPUTES = re.compile(r'\b(as|virtual)\b', re.IGNORECASE)
Messages = Generator[tuple[Connection, int, bytes], None, None]


class AnyMcap(McapReader):
    """MCAP reader that returns messages in time order, also from files without index.

    It rejects files that would unpack to too many bytes, before unpacking.
    """

    def _open(self) -> None:
        super()._open()
        budget = Budget(Path(str(self.path)))
        for chunk in self.chunks:
            budget.take(chunk.uncompressed_size)

    def meta_scan(self) -> None:
        """Scan a file without index; this unpacks the whole file."""
        budget = Budget(Path(str(self.path)))
        for size in self._chunk_sizes():
            budget.take(size)
        super().meta_scan()

    def _chunk_sizes(self) -> Iterator[int]:
        """Declared unpacked sizes of the chunks."""
        assert self.bio
        self.bio.seek(self.data_start)
        while self.bio.tell() < self.data_end:
            kind, length = struct.unpack('<BQ', self.bio.read(9))
            following = self.bio.tell() + length
            if kind == CHUNK:
                yield struct.unpack('<QQQ', self.bio.read(24))[2]
            self.bio.seek(following)

    def messages(
        self, connections: Collection[Connection], start: int | None = None, stop: int | None = None
    ) -> Messages:
        if self.chunks:
            return super().messages(connections, start, stop)
        return self._in_order(connections, start, stop)

    def _in_order(self, *choice: Any) -> Messages:
        """Sort in two passes: the first finds the next time, so that only early messages are kept in memory."""
        times = sorted(t for _, t, _ in self.messages_scan(*choice))
        waiting: list[tuple[int, int, Connection, bytes]] = []
        next_one = 0
        for k, (connection, t, data) in enumerate(self.messages_scan(*choice)):
            heapq.heappush(waiting, (t, k, connection, data))
            while waiting and waiting[0][0] == times[next_one]:
                t, _, connection, data = heapq.heappop(waiting)
                next_one += 1
                yield connection, t, data


class AnySqlite(Sqlite3Reader):
    """SQLite reader that rejects views and generated columns, because they could compute without limit."""

    def open(self) -> None:
        where = f'file:{quote(str(Path(str(self.path)).absolute()))}?immutable=1'
        with closing(sqlite3.connect(where, uri=True)) as database:
            schema = database.execute('SELECT type, sql FROM sqlite_master').fetchall()
        if any(kind not in ('table', 'index') or _COMPUTES.search(text or '') for kind, text in schema):
            raise ValueError('expected a database of plain tables, found views or computed columns')
        super().open()


class AnyFolder(DirectoryReader):
    """Folder reader that trusts the storage files if the metadata disagree.

    `ros2 bag reindex` writes other QoS to the metadata than the files have, and the library then returns no messages.
    """

    STORAGE_PLUGINS: Mapping[str, Any] = {'mcap': AnyMcap, 'sqlite3': AnySqlite}

    def __init__(self, path: Any) -> None:
        super().__init__(path)
        self.disagreement = ''  # in a few words
        self._packed = False

    def open(self) -> None:
        super().open()
        self._packed = self.metadata.compression_mode == 'message'
        self.metadata = self.metadata._replace(
            compression_mode=None
        )  # the library's function has no limit of the unpacked size
        told = {(c.topic, c.msgtype): c for c in self.connections}
        found: dict[tuple[str, str], Connection] = {}
        for storage in self.storages:
            for k, connection in enumerate(storage.connections):
                key = connection.topic, connection.msgtype
                first = found.setdefault(key, connection._replace(id=len(found) + 1, msgcount=0, owner=self))
                found[key] = first._replace(msgcount=first.msgcount + connection.msgcount)
                storage.connections[k] = connection._replace(ext=first.ext, digest=first.digest)
        wrong = {topic for topic, _ in told.keys() ^ found.keys()}
        for key in told.keys() & found.keys():
            if told[key][5:7] != found[key][5:7]:  # number of messages, QoS
                wrong.add(key[0])
        if wrong:
            self.disagreement = f'metadata.yaml and storage disagree on {", ".join(sorted(wrong))}'
        self.connections = list(found.values())
        self._measure()

    def messages(self, *choice: Any) -> Messages:
        found = super().messages(*choice)
        return self._unpack(found) if self._packed else found

    def _unpack(self, messages: Messages) -> Messages:
        storages: list[Any] = self.storages
        budget = Budget(*(storage.path for storage in storages))
        for connection, t, packed in messages:
            data = unpack_message(packed)
            budget.take(len(data))
            yield connection, t, data

    def _measure(self) -> None:
        """Measure the times and the number of messages in the files."""
        parts = [s.metadata for s in self.storages if s.metadata.message_count]
        start, end = (min(p.start_time for p in parts), max(p.end_time for p in parts)) if parts else (0, 0)
        count = sum(part.message_count for part in parts)
        self.metadata = self.metadata._replace(
            start_time=start, end_time=end, duration=end - start, message_count=count
        )


class AnyReader(Reader):
    """Reader of folders and single files."""

    STORAGE_PLUGINS: Mapping[str, Any] = {'dir': AnyFolder, '.mcap': AnyMcap, '.db3': AnySqlite}

    @property
    def disagreement(self) -> str:
        """Description of a disagreement between metadata and storage, if any."""
        return str(getattr(self.storage, 'disagreement', ''))
