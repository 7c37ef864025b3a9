"""Single bodies of one time form one frame."""

from __future__ import annotations

import pytest

from soft_dynamics.messages.body_frame import BodyFrame
from soft_estimation.frame_collector import FrameCollector


def single(stamp_ns: int, name: str, x: float = 0.0) -> BodyFrame:
    return BodyFrame.of(stamp_ns, [(name, (x, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))])


def found(frames: list[BodyFrame]) -> list[tuple[int, set[str]]]:
    return [(frame.stamp_ns, set(frame.names)) for frame in frames]


def test_bodies_of_one_time_are_joined_and_a_lost_one_delays_one_frame() -> None:
    collector = FrameCollector({'a', 'b'})
    assert collector.add(single(0, 'a')) == []
    assert found(collector.add(single(0, 'b'))) == [(0, {'a', 'b'})]
    assert collector.add(single(1, 'b')) == []  # a is lost
    assert found(collector.add(single(2, 'b'))) == [(1, {'b'}), (2, {'b'})]
    assert found(collector.add(single(3, 'b'))) == [(3, {'b'})]
    assert found(collector.add(single(3, 'a'))) == [(3, {'a'})]  # and back
    assert collector.add(single(4, 'b')) == []
    assert found(collector.add(single(4, 'a'))) == [(4, {'a', 'b'})]
    assert collector.add(single(5, 'a')) == []
    assert found(collector.flush()) == [(5, {'a'})]
    assert collector.flush() == []


def test_of_two_poses_of_one_body_and_time_the_last_counts() -> None:
    collector = FrameCollector({'a', 'b'})
    collector.add(single(0, 'a', 1.0))
    collector.add(single(0, 'a', 2.0))
    (frame,) = collector.add(single(0, 'b', 3.0))
    assert frame.names == ('a', 'b')
    assert frame.p_WB[:, 0] == pytest.approx([2.0, 3.0])
    assert frame.quat_WB.shape == (2, 4)
