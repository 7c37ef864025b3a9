"""The library's reader, made to read also what `ros2 bag` leaves: no index, no order, metadata of another hand."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Generator, Mapping
from typing import Any

from rosbags.interfaces import Connection
from rosbags.rosbag2 import Reader
from rosbags.rosbag2.reader import DirectoryReader
from rosbags.rosbag2.storage_mcap import McapReader
from rosbags.rosbag2.storage_sqlite3 import Sqlite3Reader

Messages = Generator[tuple[Connection, int, bytes], None, None]


class AnyMcap(McapReader):
    """Messages of a file without index come in the order of their times too, whatever that in the file is."""

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


class AnyFolder(DirectoryReader):
    """Where metadata and storage files do not agree, the files are believed.

    `ros2 bag reindex` writes other QoS into the metadata than the files have, and the library then shows no message.
    """

    STORAGE_PLUGINS: Mapping[str, Any] = {'mcap': AnyMcap, 'sqlite3': Sqlite3Reader}

    def __init__(self, path: Any) -> None:
        super().__init__(path)
        self.disagreement = ''  # in a few words

    def open(self) -> None:
        super().open()
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

    STORAGE_PLUGINS: Mapping[str, Any] = {'dir': AnyFolder, '.mcap': AnyMcap, '.db3': Sqlite3Reader}

    @property
    def disagreement(self) -> str:
        """Of metadata and storage, in a few words, if there is any."""
        return str(getattr(self.storage, 'disagreement', ''))
