"""LeanExecutor makes the same calls as rclpy's own executor, also while entities are created and destroyed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from traceback import extract_stack
from typing import Any

import pytest
import rclpy
from rclpy.node import Node
from std_msgs.msg import String
from std_srvs.srv import Trigger

from soft_dynamics.ros.executor import LeanExecutor, in_passing

LIMIT = 30.0  # [s]


@pytest.fixture
def node() -> Iterator[Any]:
    rclpy.init()
    made = Node('executor_test')
    made.lean = LeanExecutor()
    made.lean.add_node(made)
    yield made
    made.lean.shutdown()
    made.destroy_node()
    rclpy.try_shutdown()


def until(node: Any, done: Callable[[], Any]) -> None:
    end = time.monotonic() + LIMIT
    while not done():
        assert time.monotonic() < end
        node.lean.spin_once(timeout_sec=0.05)


def test_timers_messages_and_services_are_served(node: Any) -> None:
    heard: list[str] = []
    publisher = node.create_publisher(String, 'talk', 10)
    node.create_timer(0.01, lambda: publisher.publish(String(data='x')))
    node.create_subscription(String, 'talk', lambda message: heard.append(message.data), 10)
    node.create_service(Trigger, 'ask', lambda *_: Trigger.Response(success=True))
    client = node.create_client(Trigger, 'ask')
    until(node, lambda: len(heard) > 5 and client.service_is_ready())
    future = client.call_async(Trigger.Request())
    until(node, future.done)
    assert future.result().success


def test_a_stream_without_pause_goes_the_short_way(node: Any) -> None:
    """Now and then the executor uses rclpy's wait; it must return to its own even if that always finds work."""
    in_a_task: list[bool] = []

    def note() -> None:
        in_a_task.append(any('task.py' in frame.filename for frame in extract_stack()))

    node.create_timer(0.0, note)
    until(node, lambda: any(in_a_task) and len(in_a_task) > 1000)
    assert sum(in_a_task) < 0.5 * len(in_a_task)


def test_messages_in_passing_wake_nobody_and_come_before_others(node: Any) -> None:
    heard: list[str] = []
    talk, aside = (node.create_publisher(String, name, 10) for name in ('talk', 'aside'))
    for topic in ('talk', 'aside'):
        made = node.create_subscription(String, topic, lambda message: heard.append(message.data), 10)
    in_passing(made)
    until(node, lambda: talk.get_subscription_count() and aside.get_subscription_count())
    stop = time.monotonic() + 1.0
    chatter = threading.Thread(
        target=lambda: [aside.publish(String(data='a')) or time.sleep(0.01) for _ in range(100)]
    )
    chatter.start()
    wakes = 0
    while time.monotonic() < stop:
        node.lean.spin_once(timeout_sec=0.1)
        wakes += 1
    chatter.join()
    assert len(heard) > 50
    assert wakes < 40
    heard.clear()
    aside.publish(String(data='a'))
    time.sleep(0.1)
    talk.publish(String(data='c'))
    node.lean._whole_t = time.monotonic()  # the fallback to rclpy's wait uses another order
    until(node, lambda: 'c' in heard)
    assert heard[-2:] == ['a', 'c']
    in_passing(made, has_time=True)
    node.lean.wake()
    aside.publish(String(data='a'))
    time.sleep(0.1)
    talk.publish(String(data='d'))
    node.lean._whole_t = time.monotonic()
    until(node, lambda: heard[-1] == 'a')
    assert heard[-2:] == ['d', 'a']


def test_entities_may_come_and_go_in_a_callback(node: Any) -> None:
    fired: list[str] = []

    def second() -> None:
        fired.append('second')

    def first() -> None:
        fired.append('first')
        node.destroy_timer(timer)
        node.create_timer(0.0, second)

    timer = node.create_timer(0.0, first)
    until(node, lambda: fired.count('second') > 2)
    assert fired.count('first') == 1


def test_an_error_in_a_callback_is_not_swallowed(node: Any) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    node.create_timer(0.0, fail)
    with pytest.raises(ZeroDivisionError):
        until(node, lambda: False)
