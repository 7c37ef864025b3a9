"""Write a bag that stays readable after a kill, except for its last moments."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Literal, NamedTuple

from rosbags.interfaces import Connection, Qos
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.rosbag2.errors import WriterError
from rosbags.rosbag2.storage_mcap import McapWriter
from rosbags.rosbag2.storage_sqlite3 import Sqlite3Writer

from .errors import BagError
from .message_types import register, standard_types
from .sealing import seal
from .unindexed_reader import AnyReader

STORAGES = {'mcap': StoragePlugin.MCAP, 'sqlite3': StoragePlugin.SQLITE3}
VERSION: Literal[9] = 9  # of ROS 2 Jazzy
RESERVE = 2**20  # [bytes] reserve for the end of a bag on a full disk: metadata of 1000 topics


class NamedWriter(Writer):
    """The library's writer with a chosen name of the storage file; `ros2 bag` expects a number at the end."""

    def __init__(self, path: Path, storage: StoragePlugin, stem: str) -> None:
        super().__init__(path, version=VERSION, storage_plugin=storage)
        self._stem = stem

    def open(self) -> None:
        """Create the folder and the storage file."""
        self.path.mkdir(mode=0o755, parents=True)
        folder: Any = _Folder(self.path, self._stem)
        self.storage = self.STORAGE_PLUGINS[self.storage_plugin](folder, self.compression_mode)


class _Folder(NamedTuple):
    """Folder for the storage plugins, which name their file after it."""

    path: Path
    name: str

    def __truediv__(self, name: str) -> Path:
        return self.path / name


class _Ended(NamedTuple):
    """A complete storage file, to which the library's writer adds the metadata."""

    path: Path

    def close(self, version: int, metadata: str) -> None:
        """Do nothing: the file is complete."""


class BagWriter:
    """A new bag. `flush` saves everything written so far; a lock file shows readers that a recorder is writing the bag.

    If the disk is full, the call raises BagError, and the bag ends with metadata, so that any reader can read the
    flushed messages.
    """

    def __init__(self, path: str | Path, storage: str = 'mcap') -> None:
        if storage not in STORAGES:
            raise ValueError(f'storage must be one of {", ".join(STORAGES)}, got {storage}')
        self.path = Path(path)
        self.count = 0
        self._types = standard_types()
        self._topics: dict[str, Connection] = {}
        self._last_ns = 0
        self.is_open = True
        try:
            self._writer = NamedWriter(self.path, STORAGES[storage], f'{self.path.name}_0')
            self._writer.open()
            self._reserve = tempfile.TemporaryFile(dir=self.path)  # noqa: SIM115  closed with the process
            os.posix_fallocate(self._reserve.fileno(), 0, RESERVE)
        except (WriterError, FileExistsError):
            raise BagError(self.path, 'exists already') from None
        except OSError as error:
            raise BagError(self.path, str(error)) from None
        self._lock = lock(self.path)

    def add_topic(self, topic: str, msgtype: str, qos: tuple[Qos, ...] = ()) -> None:
        """Add a topic of type `package/msg/Name`. Raises ValueError if the type has no definition."""
        if topic not in self._topics:
            register(self._types, msgtype)
            with self._storing():
                self._topics[topic] = self._writer.add_connection(
                    topic, msgtype, typestore=self._types, offered_qos_profiles=qos
                )

    def write(self, topic: str, msgtype: str, data: bytes, t_ns: int) -> None:
        """Append a message in CDR. Times never step back, so the bag is readable without its index."""
        self.add_topic(topic, msgtype)
        self._last_ns = max(t_ns, self._last_ns)
        with self._storing():
            self._writer.write(self._topics[topic], self._last_ns, data)
        self.count += 1

    def flush(self) -> None:
        """Hand everything to the operating system, so that it survives the end of this process."""
        storage = self._writer.storage
        with self._storing():
            if isinstance(storage, McapWriter) and storage.chunk.msgs:
                storage.close_chunk()
                storage.bio.flush()
            elif isinstance(storage, Sqlite3Writer):
                storage.conn.commit()

    def close(self) -> None:
        """Write index and metadata, unless the bag has already ended."""
        if self.is_open:
            with self._storing():
                self._writer.close()
            self.is_open = False
            self._reserve.close()
            self._lock.close()

    @contextmanager
    def _storing(self) -> Iterator[None]:
        """End the bag with the messages on disk if a write fails."""
        if not self.is_open:
            raise BagError(self.path, 'is closed')
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            self.is_open = False
            self._reserve.close()
            try:
                kept = f'{self._end_early()} messages can be read'
            except Exception:  # the bag stays as after a kill; `repair` can finish it
                self._writer.metapath.unlink(missing_ok=True)
                kept = 'it can be read once there is room to finish it'
            finally:
                self._lock.close()
            raise BagError(self.path, f'cannot be written any more: {error}; {kept}') from error

    def _end_early(self) -> int:
        """Write the metadata of the messages on disk; return their number."""
        file = next(file for file in self.path.iterdir() if file.suffix in ('.mcap', '.db3'))
        if self._writer.storage is not None:
            with suppress(OSError, sqlite3.Error):
                self._writer.storage.abort()
        seal(file)
        with AnyReader(file) as reader:
            found = {c.topic: c.msgcount for c in reader.connections}
            self._writer.min_timestamp, self._writer.max_timestamp = reader.start_time, reader.end_time - 1
        self._writer.counts = {c.id: found.get(c.topic, 0) for c in self._writer.connections}
        ended: Any = _Ended(file)
        self._writer.storage = ended
        self._writer.close()
        return sum(found.values())

    def __enter__(self) -> BagWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def lock(path: Path) -> BinaryIO:
    """Lock the storage file of a bag until the returned file is closed. Raises BlockingIOError if it is locked."""
    file = next(f for f in path.iterdir() if f.suffix in ('.mcap', '.db3')).open('rb')
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise
    return file
