"""The topics of a bag as arrays over time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from soft_dynamics.arguments import Array
from soft_dynamics.bags import Bag, BagError

TYPES = {
    'state': 'soft_robot_suite/msg/SoftState',
    'pressure': 'soft_robot_suite/msg/ChamberPressures',
    'wrench': 'geometry_msgs/msg/WrenchStamped',
    'pose': 'geometry_msgs/msg/PoseStamped',
    'fiber': 'soft_robot_suite/msg/ShapeSamples',
}
REPORTS = 2000  # messages between two calls of the progress callback


class Stream(NamedTuple):
    """Samples of one topic at rising times t [s] since the start of the bag."""

    topic: str
    t: Array
    values: Array  # (n, m)
    names: tuple[str, ...] = ()  # of the columns, where the messages say them
    model: str = ''


def find(bag: Bag, tail: str, needed: bool = False) -> str | None:
    """The topic `tail`, in whatever namespace; None, or BagError if it is needed, where there is none."""
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
    """Streams by name: 'state', 'pressure', 'wrench', 'fiber', 'pose <sensor>', in one pass through the bag.

    Raises BagError for a topic of another type, without messages, or whose messages do not agree with each other.
    """
    names = {topic: name for name, topic in topics.items()}
    for topic, name in names.items():
        wanted = TYPES[name.split()[0]]
        if bag.topics[topic] != wanted:
            raise BagError(bag.path, f'{topic} is of type {bag.topics[topic]}; expected {wanted}')
    stamps: dict[str, list[int]] = {topic: [] for topic in names}
    rows: dict[str, list[Any]] = {topic: [] for topic in names}
    total, layouts = sum(bag.counts[topic] for topic in names) or 1, dict[str, Any].fromkeys(names)
    for k, message in enumerate(bag.messages(list(names))):
        kind = names[message.topic].split()[0]
        content = bag.decode(message)
        stamp = content.header.stamp
        stamps[message.topic].append(stamp.sec * 1_000_000_000 + stamp.nanosec or message.t_ns)
        (model, columns), row = _ROWS[kind](content)
        layout = (model, columns, len(row))
        if layouts[message.topic] is None:
            layouts[message.topic] = layout
        elif layout != layouts[message.topic]:
            raise BagError(bag.path, f'{message.topic} changes its names or its length after {k} messages')
        rows[message.topic].append(row)
        if k % REPORTS == 0:
            progress(k / total)
    return {
        name: _stream(bag, topic, stamps[topic], rows[topic], layouts[topic]) for topic, name in names.items()
    }


def _stream(bag: Bag, topic: str, stamps: list[int], rows: list[Any], layout: Any) -> Stream:
    if not rows:
        raise BagError(bag.path, f'{topic} has no messages')
    ns, first = np.unique(np.array(stamps, np.int64), return_index=True)
    values = np.array([rows[k] for k in first])
    t: Array = (ns - bag.start_ns).astype(np.float64) * 1e-9
    good = np.all(np.isfinite(values), 1) if topic.rpartition('/')[2] != 'shape' else np.ones(t.size, bool)
    if not np.any(good):
        raise BagError(bag.path, f'{topic} holds nothing but NaN')
    model, names, _ = layout
    return Stream(topic, t[good], values[good], names, model)


def _state(msg: Any) -> tuple[Any, Any]:
    return (msg.model, tuple(msg.names)), np.concatenate([msg.q, msg.qd])


def _pressure(msg: Any) -> tuple[Any, Any]:
    return ('', tuple(msg.names)), msg.pressure


def _wrench(msg: Any) -> tuple[Any, Any]:
    f, n = msg.wrench.force, msg.wrench.torque
    return ('', ()), (n.x, n.y, n.z, f.x, f.y, f.z)


def _pose(msg: Any) -> tuple[Any, Any]:
    r, p = msg.pose.orientation, msg.pose.position
    return ('', ()), (r.x, r.y, r.z, r.w, p.x, p.y, p.z)


def _fiber(msg: Any) -> tuple[Any, Any]:
    """Arc lengths and points of one sample, in one row; the length of the row must not change."""
    return (str(msg.arc_length.size), ()), np.concatenate([msg.arc_length, msg.points])


_ROWS: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    'state': _state,
    'pressure': _pressure,
    'wrench': _wrench,
    'pose': _pose,
    'fiber': _fiber,
}
