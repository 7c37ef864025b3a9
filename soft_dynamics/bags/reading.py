"""Read a bag of any recorder; errors are one line."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from rosbags.interfaces import Qos

from soft_dynamics.errors import one_line, shown
from soft_dynamics.strict_yaml import dump, load

from .errors import BagError
from .limits import Budget, unpack_file
from .message_types import register, register_text, ros_types
from .repair import METADATA, repair, unfinished
from .unindexed_reader import AnyReader

# Limits of metadata.yaml: a bag with 1000 topics has 800 kB and 40,000 entries.
METADATA_SIZE, METADATA_NODES = 2 * 2**20, 100_000


class Message(NamedTuple):
    """A recorded message."""

    topic: str
    msgtype: str  # package/msg/Name
    t_ns: int  # time of recording
    data: bytes  # CDR


class Bag:
    """An open bag."""

    def __init__(self, path: Path, reader: AnyReader) -> None:
        self.path = path
        self._reader = reader
        self._types = ros_types()
        self.topics = {c.topic: c.msgtype for c in reader.connections}
        self.counts = {name: info.msgcount for name, info in reader.topics.items()}
        self.start_ns, self.end_ns = (reader.start_time, reader.end_time) if reader.message_count else (0, 0)

    @property
    def duration(self) -> float:
        """Time from the first to the last message [s]."""
        return (self.end_ns - self.start_ns) * 1e-9

    def qos(self, topic: str) -> list[Qos]:
        """QoS of the publishers of a topic, if recorded."""
        (first, *_) = [c for c in self._reader.connections if c.topic == topic]
        return list(getattr(first.ext, 'offered_qos_profiles', []))

    def messages(self, topics: Sequence[str] = (), start_ns: int | None = None) -> Iterator[Message]:
        """Messages of some or all topics, in time order. Raises BagError if a topic is missing."""
        missing = [name for name in topics if name not in self.topics]
        if missing:
            raise BagError(
                self.path, f'has no topic {missing[0]}; it has {", ".join(sorted(self.topics)) or "none"}'
            )
        chosen = [c for c in self._reader.connections if not topics or c.topic in topics]
        with _damage(self.path):
            for c, t_ns, data in self._reader.messages(chosen, start=start_ns) if chosen else ():
                yield Message(c.topic, c.msgtype, t_ns, bytes(data))

    def decode(self, message: Message) -> Any:
        """Decode a message to an object with the fields of its type; arrays are NumPy arrays."""
        with _damage(self.path):
            if message.msgtype not in self._types.types:
                self._register(message.msgtype)
            return self._types.deserialize_cdr(message.data, message.msgtype)

    def _register(self, msgtype: str) -> None:
        text = next(c.msgdef.data for c in self._reader.connections if c.msgtype == msgtype)
        if text:
            register_text(self._types, msgtype, text)
            return
        try:
            register(self._types, msgtype)
        except ValueError as error:
            raise BagError(self.path, str(error)) from None


@contextmanager
def open_bag(path: str | Path, say: Callable[[str], None] = lambda _: None) -> Iterator[Bag]:
    """Open a bag: its folder, or a single .mcap or .db3 file.

    An unfinished bag is finished first. `say` gets a line about this, and about metadata that disagree with the storage
    file, which takes precedence.
    Raises BagError if the bag does not exist, is damaged or has another format.
    """
    path = Path(path)
    if not path.exists():
        raise BagError(path, 'does not exist')
    if (
        path.is_dir()
        and not any(path.glob('metadata.yaml'))
        and not any(path.glob('*.mcap'))
        and not any(path.glob('*.db3'))
    ):
        raise BagError(path, 'is a folder without metadata.yaml, not a rosbag2 bag')
    with ExitStack() as stack:
        with _damage(path):
            reader = stack.enter_context(AnyReader(_readable(path, say, stack)))
        if reader.disagreement:
            say(f'bag {path}: {one_line(reader.disagreement, 1000)}; using the storage')
        yield Bag(path, reader)


def _readable(path: Path, say: Callable[[str], None], stack: ExitStack) -> Path:
    """Path for the reader: the bag itself, or a finished or unpacked copy."""
    inside = [path] if not path.is_dir() else [path / METADATA, *path.glob('*.mcap'), *path.glob('*.db3')]
    for each in inside:
        if each.exists() and not each.is_file():  # a pipe would block the reader forever
            raise ValueError(f'{each.name}: expected a plain file, found a pipe, device or folder')
    file = unfinished(path)
    if file is not None:
        told = f'bag {path} was not finished by its recorder'
        try:
            say(f'{told}: {repair(path, file)} messages recovered')
        except (OSError, sqlite3.Error) as error:  # full disk or read-only folder
            say(f'{told} and cannot be finished here ({error}); it is read as it is')
            return file
    if not (path / METADATA).exists():
        return path
    metadata = load(path / METADATA, METADATA_SIZE, METADATA_NODES)
    told_files = metadata['rosbag2_bagfile_information']['relative_file_paths']
    if strange := [name for name in told_files if not (path / Path(name).name).is_file()]:
        raise ValueError(f'{METADATA} names {shown(strange[0])}, which is not a file in this folder')
    return _unpacked(path, metadata, stack)


def _unpacked(path: Path, metadata: Any, stack: ExitStack) -> Path:
    """The bag, or an unpacked copy next to it if its files are compressed; `stack` removes the copy."""
    told = metadata['rosbag2_bagfile_information']
    if str(told.get('compression_mode')).lower() != 'file' or told.get('compression_format') != 'zstd':
        return path
    folder = Path(
        stack.enter_context(TemporaryDirectory(dir=path.absolute().parent, prefix=f'.{path.name}_unpacked_'))
    )
    files = [path / Path(name).name for name in told['relative_file_paths']]
    budget = Budget(*files)
    for file in files:
        unpack_file(file, folder / file.stem, budget)
    told |= {'compression_mode': '', 'compression_format': '', 'relative_file_paths': [f.stem for f in files]}
    (folder / METADATA).write_text(dump(metadata), encoding='utf-8')
    return folder


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    """Convert any exception of the library about a damaged file to BagError."""
    try:
        yield
    except (BagError, GeneratorExit):
        raise
    except Exception as error:
        raise BagError(
            path, f'is damaged, truncated or not a rosbag2 bag: {error or type(error).__name__}'
        ) from error
