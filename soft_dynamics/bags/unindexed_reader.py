"""The library's reader, made to read also what `ros2 bag` leaves: no index, no order, metadata of another hand."""

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

CHUNK = 0x06  # a record of MCAP: one byte of kind, eight of length, two times of eight bytes, size when unpacked, ...
# Words of SQL that the tables of a bag do not need.
_COMPUTES = re.compile(r'\b(as|virtual)\b', re.IGNORECASE)
Messages = Generator[tuple[Connection, int, bytes], None, None]


class AnyMcap(McapReader):
    """Messages of a file without index come in the order of their times too, whatever that in the file is.

    A file that would unpack to too much is refused before.
    """

    def _open(self) -> None:
        super()._open()
        budget = Budget(Path(str(self.path)))
        for chunk in self.chunks:
            budget.take(chunk.uncompressed_size)

    def meta_scan(self) -> None:
        """Look through a file without index, which unpacks all of it."""
        budget = Budget(Path(str(self.path)))
        for size in self._chunk_sizes():
            budget.take(size)
        super().meta_scan()

    def _chunk_sizes(self) -> Iterator[int]:
        """What the chunks say that they unpack to."""
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
        """Two passes: the first tells which time is next, so that no more is kept than came too early."""
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
    """A database that computes what it is asked for (views, generated columns) has no limit, and is refused before."""

    def open(self) -> None:
        where = f'file:{quote(str(Path(str(self.path)).absolute()))}?immutable=1'
        with closing(sqlite3.connect(where, uri=True)) as database:
            schema = database.execute('SELECT type, sql FROM sqlite_master').fetchall()
        if any(kind not in ('table', 'index') or _COMPUTES.search(text or '') for kind, text in schema):
            raise ValueError('expected a database of plain tables, found views or computed columns')
        super().open()


class AnyFolder(DirectoryReader):
    """Where metadata and storage files do not agree, the files are believed.

    `ros2 bag reindex` writes other QoS into the metadata than the files have, and the library then shows no message.
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
        )  # of the library, which unpacks any size
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
        """Times and number of messages as the files have them."""
        parts = [s.metadata for s in self.storages if s.metadata.message_count]
        start, end = (min(p.start_time for p in parts), max(p.end_time for p in parts)) if parts else (0, 0)
        count = sum(part.message_count for part in parts)
        self.metadata = self.metadata._replace(
            start_time=start, end_time=end, duration=end - start, message_count=count
        )


class AnyReader(Reader):
    """Folders and single files."""

    STORAGE_PLUGINS: Mapping[str, Any] = {'dir': AnyFolder, '.mcap': AnyMcap, '.db3': AnySqlite}

    @property
    def disagreement(self) -> str:
        """Of metadata and storage, in a few words, if there is any."""
        return str(getattr(self.storage, 'disagreement', ''))
