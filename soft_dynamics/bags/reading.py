"""Read a bag of any recorder, with one clear line where that is not possible."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from rosbags.interfaces import Qos

from .any_reader import AnyReader
from .errors import BagError
from .repair import repair, unfinished
from .types import register, register_text, ros_types


class Message(NamedTuple):
    """A message as it was recorded."""

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
        """From the first to the last message [s]."""
        return (self.end_ns - self.start_ns) * 1e-9

    def qos(self, topic: str) -> list[Qos]:
        """What the publishers of a topic offered, if it was recorded."""
        (first, *_) = [c for c in self._reader.connections if c.topic == topic]
        return list(getattr(first.ext, 'offered_qos_profiles', []))

    def messages(self, topics: Sequence[str] = (), start_ns: int | None = None) -> Iterator[Message]:
        """Messages in the order of their times, of some topics or of all; BagError if a topic is missing."""
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
        """The message as an object with the fields of its type; arrays are NumPy's."""
        if message.msgtype not in self._types.types:
            self._register(message.msgtype)
        with _damage(self.path):
            return self._types.deserialize_cdr(message.data, message.msgtype)

    def _register(self, msgtype: str) -> None:
        text = next(c.msgdef.data for c in self._reader.connections if c.msgtype == msgtype)
        register_text(self._types, msgtype, text) if text else register(self._types, msgtype)


@contextmanager
def open_bag(path: str | Path, say: Callable[[str], None] = lambda _: None) -> Iterator[Bag]:
    """Open a bag: its folder, or a single .mcap or .db3 file.

    A bag that its recorder could not finish is finished first; `say` gets a line about that, and about metadata that
    are not those of the storage file, which is believed.
    Raises BagError if there is no bag, or one that is damaged or of another kind.
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
        raise BagError(path, 'is a folder without metadata.yaml, so not a bag of rosbag2')
    with _damage(path):
        file = unfinished(path)
        if file is not None:
            say(f'bag {path} was not finished by its recorder: {repair(path, file)} messages recovered')
        reader = AnyReader(path)
        reader.open()
    if reader.disagreement:
        say(f'bag {path}: {reader.disagreement}; the storage is believed')
    try:
        yield Bag(path, reader)
    finally:
        reader.close()


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    """Turn whatever a damaged file makes the library raise into one line."""
    try:
        yield
    except (BagError, GeneratorExit):
        raise
    except Exception as error:
        raise BagError(
            path, f'is damaged, cut short or no rosbag2 bag: {error or type(error).__name__}'
        ) from error
