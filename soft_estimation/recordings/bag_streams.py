"""Topics of a bag as arrays over time."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from soft_dynamics.array import Array
from soft_dynamics.bags import Bag, BagError, Message
from soft_dynamics.messages.flat_messages import layout

TYPES = {
    'state': 'soft_robot_suite/msg/SoftState',
    'pressure': 'soft_robot_suite/msg/ChamberPressures',
    'wrench': 'geometry_msgs/msg/WrenchStamped',
    'pose': 'geometry_msgs/msg/PoseStamped',
    'fiber': 'soft_robot_suite/msg/ShapeSamples',
    'frame': 'soft_robot_suite/msg/BodyPoses',
}
STAMP = struct.Struct('<iI')
REPORTS = 2000  # messages between two calls of the progress callback


class Stream(NamedTuple):
    """Samples of one topic at rising times t [s] since the start of the bag."""

    topic: str
    t: Array
    values: Array  # (n, m)
    names: tuple[str, ...] = ()  # names of the columns, if the messages have them
    model: str = ''


def find(bag: Bag, tail: str, needed: bool = False) -> str | None:
    """Return the topic `tail` in any namespace. If there is none: None, or BagError if it is required."""
    if f'/{tail}' in bag.topics:
        return f'/{tail}'
    found = sorted(topic for topic in bag.topics if topic.endswith(f'/{tail}'))
    if len(found) > 1:
        raise BagError(
            bag.path, f'has several topics {tail}: {", ".join(found)}; expected those of one robot'
        )
    if needed and not found:
        have = ', '.join(sorted(bag.topics)) or 'none'
        raise BagError(bag.path, f'has no topic /{tail}; it has {have}')
    return found[0] if found else None


def read_streams(bag: Bag, topics: Mapping[str, str], progress: Callable[[float], None]) -> dict[str, Stream]:
    """Return streams by name, 'state', 'pressure', 'wrench', 'fiber', 'pose <sensor>', in one pass through the bag.

    A topic of name 'frame <system>' gives a stream 'pose <body>' for each of its bodies.
    Raises BagError for a topic of another type, without messages, or with inconsistent messages.
    """
    names = {topic: name for name, topic in topics.items()}
    for topic, name in names.items():
        wanted = TYPES[name.split()[0]]
        if bag.topics[topic] != wanted:
            raise BagError(bag.path, f'{topic} is of type {bag.topics[topic]}; expected {wanted}')
    samples = {
        topic: (_Frames if name.startswith('frame') else _Samples)(bag, name.split()[0])
        for topic, name in names.items()
    }
    total = sum(bag.counts[topic] for topic in names) or 1
    for k, message in enumerate(bag.messages(list(names))):
        samples[message.topic].add(message)
        if k % REPORTS == 0:
            progress(k / total)
    streams: dict[str, Stream] = {}
    for topic, name in names.items():
        streams |= samples[topic].streams(topic, name)
    return streams


class _Layout(NamedTuple):
    """Places of the numbers in a message; reading them from its bytes is twenty times faster than decoding."""

    model: str
    names: tuple[str, ...]
    numbers: tuple[slice, ...]
    fixed: tuple[tuple[slice, bytes], ...]  # the bytes between them, the same in every message


class _Samples:
    """Collects the messages of one topic."""

    def __init__(self, bag: Bag, kind: str) -> None:
        self._bag, self._kind = bag, kind
        self._layout: _Layout | None = None
        self._stamps: list[int] = []
        self._rows: list[bytes] = []

    def add(self, message: Message) -> None:
        data = message.data
        if self._layout is None or any(data[part] != text for part, text in self._layout.fixed):
            self._renew(message)
        assert self._layout is not None
        sec, nanosec = STAMP.unpack_from(data, 4)
        self._stamps.append(sec * 1_000_000_000 + nanosec or message.t_ns)
        self._rows.append(b''.join([data[part] for part in self._layout.numbers]))

    def streams(self, topic: str, name: str) -> dict[str, Stream]:
        """Return all samples in order of their stamps, without those that contain NaN."""
        if self._layout is None:
            raise BagError(self._bag.path, f'{topic} has no messages')
        values = np.frombuffer(b''.join(self._rows), '<f8').reshape(len(self._rows), -1)
        found = self._stream(topic, self._stamps, values[:, ORDERS[self._kind]])
        return {name: found._replace(names=self._layout.names, model=self._layout.model)}

    def _stream(self, topic: str, stamps: list[int], values: Array) -> Stream:
        ns, first = np.unique(np.array(stamps, np.int64), return_index=True)
        t, values = (ns - self._bag.start_ns).astype(np.float64) * 1e-9, values[first]
        good = np.all(np.isfinite(values), 1) if self._kind != 'fiber' else np.ones(t.size, bool)
        if not np.any(good):
            raise BagError(self._bag.path, f'{topic} contains only NaN')
        return Stream(topic, t[good], values[good])

    def _renew(self, message: Message) -> None:
        old, new = self._layout, _layout(self._bag, self._kind, message)
        sizes = [[part.stop - part.start for part in x.numbers] for x in (old, new) if x is not None]
        if old is not None and (old[:2] != new[:2] or sizes[0] != sizes[1]):
            raise BagError(
                self._bag.path,
                f'{message.topic} changes its names or length after {len(self._rows)} messages',
            )
        self._layout = new


class _Frames(_Samples):
    """Collects messages with all bodies seen at one time, which may vary."""

    def __init__(self, bag: Bag, kind: str) -> None:
        super().__init__(bag, kind)
        self._by_names: dict[tuple[str, ...], tuple[list[int], list[bytes]]] = {}

    def streams(self, topic: str, name: str) -> dict[str, Stream]:
        """Return one stream per body."""
        found: dict[str, tuple[list[int], list[Array]]] = {}
        for names, (stamps, rows) in self._by_names.items():
            count = len(names)
            values = np.frombuffer(b''.join(rows), '<f8').reshape(len(rows), 7 * count)
            p_WB, quat_WB = values[:, : 3 * count], values[:, 3 * count :]
            for k, body in enumerate(names):
                times, poses = found.setdefault(body, ([], []))
                times += stamps
                poses.append(np.hstack([quat_WB[:, 4 * k : 4 * k + 4], p_WB[:, 3 * k : 3 * k + 3]]))
        if not found:
            raise BagError(self._bag.path, f'{topic} has no messages')
        return {
            f'pose {body}': self._stream(topic, times, np.vstack(poses))
            for body, (times, poses) in found.items()
        }

    def _renew(self, message: Message) -> None:
        self._layout = _layout(self._bag, self._kind, message)
        self._stamps, self._rows = self._by_names.setdefault(self._layout.names, ([], []))


def _layout(bag: Bag, kind: str, message: Message) -> _Layout:
    """Return the layout of the bytes, checked against the library's decoding."""
    content, data = bag.decode(message), message.data
    try:
        found = layout(data, FIELDS[kind])
    except ValueError as error:
        raise BagError(bag.path, f'{message.topic}: {error}') from None
    names = tuple(getattr(content, 'names', ()))
    numbers = np.frombuffer(b''.join(data[part] for part in found.numbers), '<f8')
    if names and numbers.size not in (len(names), 2 * len(names), 7 * len(names)):
        raise BagError(bag.path, f'{message.topic} has {len(names)} names for {numbers.size} numbers')
    if not np.array_equal(numbers, ARRAYS[kind](content), equal_nan=True):
        raise BagError(bag.path, f'{message.topic} is not encoded as CDR of a little-endian machine')
    return _Layout(getattr(content, 'model', ''), names, found.numbers, found.fixed)


def _vectors(*vectors: Any) -> list[float]:
    return [getattr(v, axis) for v in vectors for axis in ('x', 'y', 'z', 'w') if hasattr(v, axis)]


# As in flat_messages, as far as needed here.
FIELDS = {'state': 'ssSDD', 'pressure': 'sSD', 'wrench': 's6', 'pose': 's7', 'fiber': 'sDD', 'frame': 'sSDD'}
ARRAYS: dict[str, Callable[[Any], Any]] = {
    'state': lambda msg: np.concatenate([msg.q, msg.qd]),
    'pressure': lambda msg: msg.pressure,
    'wrench': lambda msg: _vectors(msg.wrench.force, msg.wrench.torque),
    'pose': lambda msg: _vectors(msg.pose.position, msg.pose.orientation),
    'fiber': lambda msg: np.concatenate([msg.arc_length, msg.points]),
    'frame': lambda msg: np.concatenate([msg.positions, msg.orientations]),
}
ORDERS: dict[str, Any] = {  # order of the numbers in a row: torque before force, rotation before position
    'state': slice(None),
    'pressure': slice(None),
    'wrench': [3, 4, 5, 0, 1, 2],
    'pose': [3, 4, 5, 6, 0, 1, 2],
    'fiber': slice(None),
}
