"""Hand-written serialization matches ROS's own, byte for byte."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from hypothesis import given
from hypothesis import strategies as st
from rclpy.serialization import deserialize_message, serialize_message
from soft_robot_suite.msg import BodyPoses, ChamberPressures, SoftState

from soft_dynamics.messages import flat_messages
from soft_dynamics.messages.flat_messages import FIELDS, FlatReader, FlatWriter

NUMBERS = {'BodyPoses': ('positions', 'orientations'), 'ChamberPressures': ('pressure',)}
NUMBERS['SoftState'] = ('q', 'qd', 'qdd', 'covariance_diagonal')
KINDS = {'BodyPoses': BodyPoses, 'ChamberPressures': ChamberPressures, 'SoftState': SoftState}

words = st.text(st.characters(exclude_characters='\0', exclude_categories=('Cs',)), max_size=9)
numbers = st.lists(st.floats(width=64), max_size=9)
stamps = st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 999_999_999))


@st.composite
def messages(draw: Any) -> Any:
    kind = KINDS[draw(st.sampled_from(sorted(KINDS)))]
    message = kind(names=draw(st.lists(words, max_size=5)))
    for field in NUMBERS[kind.__name__]:
        setattr(message, field, array('d', draw(numbers)))
    if kind is SoftState:
        message.model, message.sources = draw(words), draw(st.lists(words, max_size=3))
    if kind is ChamberPressures:
        message.source, message.handover = draw(words), draw(st.booleans())
    sec, nanosec = draw(stamps)
    message.header.stamp, message.header.frame_id = Time(sec=sec, nanosec=nanosec), draw(words)
    return message


def test_two_threads_may_read_different_messages_at_once() -> None:
    """One thread reads while another compares its message with the previous one."""
    here, there = (
        serialize_message(ChamberPressures(names=[name], pressure=[1.0])) for name in ('here', 'gone')
    )

    class Interrupted(bytes):
        def __len__(self) -> int:
            reader.read(there)
            return super().__len__()

        def __getitem__(self, key: Any) -> Any:
            reader.read(there)
            return super().__getitem__(key)

    reader = FlatReader(FIELDS['ChamberPressures'])
    reader.read(here)
    assert reader.read(Interrupted(here)).texts == ('', ('here',), '', False)


def test_messages_that_take_turns_are_walked_through_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """For any padding bytes that ROS leaves, here behind the empty frame_id."""
    walked: list[bytes] = []

    def walk(data: bytes, fields: str) -> flat_messages.Layout:
        walked.append(data)
        return layout(data, fields)

    layout = flat_messages.layout
    monkeypatch.setattr(flat_messages, 'layout', walk)
    reader = FlatReader(FIELDS['SoftState'])
    texts = [('', 'm', ('a', 'b'), sources) for sources in (('x',), ('x', 'y'), ('x', 'z'))]
    for k in range(100):
        _, model, names, sources = texts[k % 3]
        message = SoftState(model=model, names=names, q=[1.0 * k, 2.0], sources=sources)
        data = bytearray(serialize_message(message))
        data[17:20] = bytes((k, k, k))
        assert reader.read(bytes(data)).texts == texts[k % 3]
    assert len(walked) == 3


def bits(values: Any) -> bytes:
    return np.asarray(values, np.float64).tobytes()


@given(messages())
def test_what_is_read_is_what_ros_wrote(message: Any) -> None:
    kind = type(message).__name__
    flat = FlatReader(FIELDS[kind]).read(serialize_message(message))
    assert flat.stamp_ns == message.header.stamp.sec * 10**9 + message.header.stamp.nanosec
    texts = [message.header.frame_id, tuple(message.names)]
    if kind == 'SoftState':
        texts = [message.header.frame_id, message.model, tuple(message.names), tuple(message.sources)]
    if kind == 'ChamberPressures':
        texts += [message.source, message.handover]
    assert list(flat.texts) == texts
    assert [bits(a) for a in flat.arrays] == [bits(getattr(message, field)) for field in NUMBERS[kind]]


@given(messages(), stamps, st.randoms())
def test_what_is_written_is_what_ros_reads(message: Any, stamp: tuple[int, int], random: Any) -> None:
    kind = type(message).__name__
    writer = FlatWriter(serialize_message(message), FIELDS[kind])
    values = [np.array([random.random() for _ in getattr(message, field)]) for field in NUMBERS[kind]]
    again = deserialize_message(writer.write(stamp[0] * 10**9 + stamp[1], *values), type(message))
    assert (again.header.stamp.sec, again.header.stamp.nanosec) == stamp
    assert again.names == message.names
    for field, wanted in zip(NUMBERS[kind], values, strict=True):
        assert bits(getattr(again, field)) == bits(wanted)


def test_a_reader_follows_when_names_or_lengths_change() -> None:
    reader = FlatReader(FIELDS['ChamberPressures'])
    for names in (['a', 'b'], ['a', 'c'], ['longer name', 'c', 'd'], []):
        message = ChamberPressures(names=names, pressure=array('d', range(len(names))))
        flat = reader.read(serialize_message(message))
        assert flat.texts[1] == tuple(names)
        assert flat.arrays[0].tolist() == list(range(len(names)))


def test_writer_refuses_another_number_of_numbers() -> None:
    message = ChamberPressures(names=['a', 'b'], pressure=array('d', [1.0, 2.0]))
    writer = FlatWriter(serialize_message(message), FIELDS['ChamberPressures'])
    with pytest.raises(ValueError, match='shape'):
        writer.write(0, [1.0, 2.0, 3.0])


@given(st.binary(max_size=80))
def test_foreign_bytes_are_refused_or_read_but_never_more(data: bytes) -> None:
    for fields in FIELDS.values():
        try:
            flat = FlatReader(fields).read(b'\x00\x01\x00\x00' + data)
        except ValueError:
            continue
        assert sum(a.nbytes for a in flat.arrays) <= len(data)
