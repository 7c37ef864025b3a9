"""Run the nodes on another executor or with ordinary messages; for `benchmarks.closed_loop --compare`.

Python imports this module at its start if this folder is on PYTHONPATH. SOFT_ROBOT_RUNTIME names what a node uses
instead of `LeanExecutor` and of messages as bytes: `<executor>+<messages>`, `events` or `single` and `flat` or
`ordinary`. With ordinary messages, rclpy parses each message into an object and builds each object into a message.

`pressure_bridge` keeps its executor: EventsExecutor of rclpy 7.1.6 raises SystemError for a callback that takes the
MessageInfo, which has the sequence number of a command.
"""

from __future__ import annotations

import os
import sys
from typing import Any

RUNTIME = 'SOFT_ROBOT_RUNTIME'
NODES = '/lib/soft_robot_suite/'  # of the install folder


def use_executor(kind: str) -> None:
    """Let nodes spin on an executor of rclpy."""
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.experimental.events_executor import EventsExecutor

    from soft_dynamics.ros import node_main

    node_main.LeanExecutor = {'events': EventsExecutor, 'single': SingleThreadedExecutor}[kind]  # type: ignore[misc]


def use_ordinary_messages() -> None:
    """Let nodes read and write message objects instead of bytes."""
    from rclpy.serialization import deserialize_message

    from soft_dynamics.messages.flat_messages import FIELDS, Flat
    from soft_dynamics.ros import conversions

    def numbers_of(kind: Any) -> list[tuple[str, str]]:
        names = [name for name in kind.get_fields_and_field_types() if name != 'header']
        return list(zip(names, FIELDS[kind.__name__][1:], strict=True))

    class Reader:
        def __init__(self, kind: Any) -> None:
            self._kind, self._fields = kind, numbers_of(kind)
            self._known: dict[
                tuple[str, ...], tuple[str, ...]
            ] = {}  # nodes compare lists of names by identity

        def read(self, data: bytes) -> Flat:
            message = deserialize_message(data, self._kind)
            texts, arrays = [message.header.frame_id], []
            for name, field in self._fields:
                value = getattr(message, name)
                if field == 'D':
                    arrays.append(conversions.np.array(value))
                else:
                    names = tuple(value) if field == 'S' else value
                    texts.append(self._known.setdefault(names, names) if field == 'S' else names)
            return Flat(conversions.time_to_ns(message.header.stamp), tuple(texts), tuple(arrays))

    class Writer:
        def __init__(self, template: Any) -> None:
            self._template = template
            self._data = conversions.serialize_message(template)
            self._arrays = [name for name, field in numbers_of(type(template)) if field == 'D']

        def write(self, stamp_ns: int, *arrays: Any) -> Any:
            message = deserialize_message(self._data, type(self._template))
            message.header.stamp = conversions.time_from_ns(stamp_ns)
            for name, values in zip(self._arrays, arrays, strict=True):
                setattr(message, name, conversions.float64s(values))
            return message

    conversions.flat_reader, conversions.flat_writer = Reader, Writer  # type: ignore[assignment]


if RUNTIME in os.environ and any(NODES in word for word in sys.orig_argv):
    executor, messages = os.environ[RUNTIME].split('+')
    if messages == 'ordinary':
        use_ordinary_messages()
    if executor == 'single' or (executor == 'events' and not sys.orig_argv[1].endswith('pressure_bridge')):
        use_executor(executor)
