"""MessageWatchdog calls back when messages end, under every executor, and costs little while they flow."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import rclpy
from rclpy.node import Node
from ros.nodes_for_test.spun import EXECUTORS

from soft_dynamics.ros.executor import LeanExecutor
from soft_dynamics.ros.message_watchdog import MessageWatchdog

LIMIT = 30.0  # [s]


@pytest.fixture(params=['own', *EXECUTORS])
def node(request: pytest.FixtureRequest) -> Iterator[Any]:
    rclpy.init()
    made = Node('watchdog_test')
    made.spinner = EXECUTORS.get(request.param, LeanExecutor)()
    made.spinner.add_node(made)
    yield made
    made.spinner.shutdown()
    made.destroy_node()
    rclpy.try_shutdown()


class Watched:
    """A watchdog whose calls are recorded."""

    def __init__(self, node: Any, period: float, timeout: float) -> None:
        self.node, self.called = node, list[float]()
        self.watchdog = MessageWatchdog(node, period, timeout, lambda: self.called.append(time.monotonic()))

    def spin(self, duration: float) -> None:
        end = time.monotonic() + duration
        while (left := end - time.monotonic()) > 0.0:
            self.node.spinner.spin_once(timeout_sec=left)

    def hear(self, duration: float, pause: float) -> float:
        """Send messages at a steady rate; return the longest pause that the machine caused."""
        end, longest, last = time.monotonic() + duration, 0.0, time.monotonic()
        while time.monotonic() < end:
            self.spin(pause)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
            self.watchdog.heard()
        return longest

    def until_called(self, count: int) -> None:
        end = time.monotonic() + LIMIT
        while len(self.called) < count:
            assert time.monotonic() < end
            self.node.spinner.spin_once(timeout_sec=0.05)


@pytest.mark.parametrize('timeout', [1.0, 0.1], ids=['looks', 'precise'])
def test_it_calls_back_when_nothing_is_heard_and_not_before(node: Any, timeout: float) -> None:
    watched = Watched(node, 0.1, timeout)
    for _ in range(2):  # once more after each silence
        watched.called.clear()
        if watched.hear(0.5, 0.01) < 0.1:  # otherwise the machine itself stalled
            assert not watched.called
        last = time.monotonic()
        watched.called.clear()
        watched.until_called(3)
        assert watched.called[0] - last >= 0.09
    watched.watchdog.close()
    watched.called.clear()
    watched.spin(0.4)
    assert not watched.called


def test_messages_slower_than_the_period_get_a_call_after_each(node: Any) -> None:
    """Like an estimator that publishes between two samples of a slow sensor."""
    watched = Watched(node, 0.04, 1.0)
    calls = []
    for _ in range(10):
        watched.called.clear()
        watched.watchdog.heard()
        watched.spin(0.06)
        calls.append(len(watched.called))
    assert sum(map(bool, calls)) >= 8


def test_messages_that_flow_neither_reset_the_timer_nor_let_it_look_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A reset wakes the executor once more. The first call may be late by a third of 0.1 s."""
    now_ns, resets, called = [0], list[int](), list[int]()
    monkeypatch.setattr(time, 'monotonic_ns', lambda: now_ns[0])
    timer = SimpleNamespace(timer_period_ns=0, reset=lambda: resets.append(now_ns[0]))
    made = SimpleNamespace(create_timer=lambda period, look, clock: look)
    watchdog = MessageWatchdog(made, 0.0075, 0.1, lambda: called.append(now_ns[0]))  # type: ignore[arg-type]
    look, watchdog._timer = watchdog._timer, timer  # type: ignore[assignment]
    for now_ns[0] in range(0, 10**10, 5_000_000):
        watchdog.heard()
        if not now_ns[0] % 20_000_000:
            look()  # type: ignore[operator]
    assert not called
    assert max(resets) <= 40_000_000
    assert timer.timer_period_ns == 33_333_333
    last_ns = now_ns[0]
    now_ns[0] = last_ns + 33_333_333 + 7_500_000
    look()  # type: ignore[operator]
    assert called == [now_ns[0]]
    assert timer.timer_period_ns == 7_500_000
    assert resets[-1] == now_ns[0]
