"""Executor for nodes with many messages: it reuses its wait set and calls callbacks directly.

For each message, rclpy's SingleThreadedExecutor rebuilds its wait set and creates a coroutine and a task for the
callback, which takes longer than most callbacks. Each wake-up costs as much again. If a node needs some messages only
when others arrive, it takes them `in_passing`.

This affects rates only, not safety: under rclpy's executors, messages in passing use ordinary subscriptions, and
time-outs are ordinary timers (`message_watchdog`).

With all sensors at 200 Hz it takes 98 % of a core for all nodes and 4.9 ms p99 from packet to command, where rclpy's
SingleThreadedExecutor with ordinary messages takes 160 % and 13.2 ms. EventsExecutor comes close with 105 % and 4.5 ms,
but raises SystemError for callbacks that take the MessageInfo (rclpy 7.1.6), as the pressure bridge does:
`python -m benchmarks.closed_loop --compare 3 --seconds 10 --everything`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rclpy.exceptions import InvalidHandle
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy
from rclpy.subscription import Subscription

_WHOLE_PERIOD = 0.5  # [s] period of the regular rclpy path, which also handles QoS events
_SERVICE_PERIOD = 0.02  # [s] period of checking services while messages arrive


def in_passing(subscription: Subscription, is_in_passing: bool = True, has_time: bool = False) -> None:
    """Take these messages before or after other work, without waking the executor for them."""
    subscription.is_in_passing, subscription.has_time = is_in_passing, has_time


def take_all(subscription: Subscription) -> None:
    """Call the callback with the messages that have arrived, at most the depth of the subscription."""
    for _ in range(subscription.qos_profile.depth):
        if not _take(subscription):
            return


def _take(subscription: Subscription) -> bool:
    """Call the callback with the next message; False if there is none."""
    taken = subscription.handle.take_message(subscription.msg_type, subscription.raw)
    if taken is not None:
        only_message = subscription._callback_type is Subscription.CallbackType.MessageOnly
        subscription.callback(*(taken[:1] if only_message else taken))
    return taken is not None


_Waiting = tuple[Any, list[tuple[Callable[[Any], None], Any]]]


class LeanExecutor(SingleThreadedExecutor):
    """Fast path for timers and subscriptions, rclpy's path for everything else. Callbacks are plain functions."""

    def __init__(self) -> None:
        super().__init__()
        self._stale = True  # entities were added or removed since the wait set was built
        self._whole_t = 0.0  # [s] time of the last use of rclpy's path
        self._full_t = 0.0  # [s] time of the last check of services
        self._streams = False  # a message arrived at the last check

    def wake(self) -> None:
        """Nodes call this when their entities change."""
        self._stale = True
        super().wake()

    def add_node(self, node: Any) -> bool:
        """Run the callbacks of this node too."""
        self._stale = True
        return bool(super().add_node(node))

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """Wait until something is ready, for a bounded time, and call all ready timers and subscriptions.

        A node has a dozen services, and waiting for them costs as much as everything else. While messages arrive,
        services are checked only every _SERVICE_PERIOD, which delays requests by at most that time.
        """
        t = time.monotonic()
        if self._stale:
            self._prepare()
        if t - self._whole_t > _WHOLE_PERIOD or self._is_busy():
            self._whole_t = t
            super().spin_once(0.0)
            return
        left = self._full_t + _SERVICE_PERIOD - t
        if self._streams and left > 0.0:
            self._wait(self._short, left if timeout_sec is None else min(left, timeout_sec))
            return
        self._full_t = t
        self._wait(self._full, timeout_sec)
        if any(self._full[0].get_ready_entities(kind) for kind in ('service', 'client')):
            super().spin_once(0.0)

    def _wait(self, waiting: _Waiting, timeout_sec: float | None) -> None:
        wait_set, entries = waiting
        wait_set.clear_entities()
        try:
            for add, handle in entries:
                add(handle)
        except InvalidHandle:  # removed without notice: rebuild next time
            self._stale = True
            return
        wait_set.wait(-1 if timeout_sec is None else max(round(timeout_sec * 1e9), 0))
        if not self._context.ok():
            raise ExternalShutdownException
        self._call_ready(wait_set)

    def _prepare(self) -> None:
        """Collect the entities to wait for."""
        self._stale = False
        nodes = self.get_nodes()
        every = [s for node in nodes for s in node.subscriptions]
        subscriptions = [s for s in every if not getattr(s, 'is_in_passing', False)]
        passing = [s for s in every if s not in subscriptions]
        self._before = [s for s in passing if not s.has_time]
        self._after = [s for s in passing if s.has_time]
        timers = [t for node in nodes for t in node.timers]
        clients = [c for node in nodes for c in node.clients]
        services = [s for node in nodes for s in node.services]
        guards = [*(g for node in nodes for g in node.guards), self._guard, self._sigint_gc]
        self._short = self._waiting(subscriptions, guards, timers, [], [])
        self._full = self._waiting(subscriptions, guards, timers, clients, services)
        self._subscriptions = {each.handle.pointer: each for each in subscriptions}
        self._timers = {each.handle.pointer: each for each in timers}

    def _waiting(self, *kinds: list[Any]) -> _Waiting:
        """Create a wait set for the given kinds of entities, and its fill function."""
        wait_set = _rclpy.WaitSet(*map(len, kinds), 0, self._context.handle)
        names = ('subscription', 'guard_condition', 'timer', 'client', 'service')
        adders = [getattr(wait_set, f'add_{name}') for name in names]
        return wait_set, [
            (add, each.handle) for add, kind in zip(adders, kinds, strict=True) for each in kind
        ]

    def _is_busy(self) -> bool:
        """Whether a callback started by rclpy's path, such as a service callback, is still running."""
        if self._tasks:
            with self._tasks_lock:
                self._tasks[:] = [each for each in self._tasks if not each[0].done()]
        return bool(self._tasks)

    def _call_ready(self, wait_set: Any) -> None:
        """Call what is ready. If entities change, the next wait finds the rest again.

        Messages come first: they may reset a timer that watches for them.
        """
        self._take_each(self._before)
        heard = wait_set.get_ready_entities('subscription')
        self._streams = bool(heard)
        for pointer in heard:
            if self._stale:
                return
            _take(self._subscriptions[pointer])
        for pointer in wait_set.get_ready_entities('timer'):
            timer = self._timers[pointer]
            if not self._stale and timer.handle.is_timer_ready():
                timer.handle.call_timer()
                timer.callback()
        self._take_each(self._after)

    def _take_each(self, subscriptions: list[Subscription]) -> None:
        for subscription in subscriptions:
            if not self._stale:
                take_all(subscription)
