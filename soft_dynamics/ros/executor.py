"""An executor for nodes that live on messages: it waits on what it waited on before, and calls the callback at once.

rclpy's SingleThreadedExecutor makes its wait set, and a coroutine with a task around the callback, anew for each
message; that takes longer than most callbacks do.
"""

from __future__ import annotations

import time
from typing import Any

from rclpy.exceptions import InvalidHandle
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy
from rclpy.subscription import Subscription

_WHOLE_PERIOD = 0.5  # [s] so often rclpy's own way is gone too, which also looks at QoS events


class LeanExecutor(SingleThreadedExecutor):
    """Timers and subscriptions the short way, everything else rclpy's way. Callbacks are plain functions."""

    def __init__(self) -> None:
        super().__init__()
        self._stale = True  # entities came or went since the wait set was made
        self._whole_t = 0.0  # [s] when rclpy's own way was gone last

    def wake(self) -> None:
        """Nodes call this when their entities change."""
        self._stale = True
        super().wake()

    def add_node(self, node: Any) -> bool:
        """Run the callbacks of this node too."""
        self._stale = True
        return bool(super().add_node(node))

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """Wait until something is ready, for a bounded time, and call every timer and subscription that is."""
        t = time.monotonic()
        if self._stale:
            self._prepare()
        if t - self._whole_t > _WHOLE_PERIOD or not all(task.done() for task, *_ in self._tasks):
            self._whole_t = t
            super().spin_once(0.0)
            return
        self._wait_set.clear_entities()
        try:
            for add, handle in self._entries:
                add(handle)
        except InvalidHandle:  # gone without a word: look again next time
            self._stale = True
            return
        self._wait_set.wait(-1 if timeout_sec is None else round(timeout_sec * 1e9))
        if not self._context.ok():
            raise ExternalShutdownException
        self._call_ready()
        if self._wait_set.get_ready_entities('service') or self._wait_set.get_ready_entities('client'):
            super().spin_once(0.0)

    def _prepare(self) -> None:
        """List what to wait on."""
        self._stale = False
        nodes = self.get_nodes()
        subscriptions = [s for node in nodes for s in node.subscriptions]
        timers = [t for node in nodes for t in node.timers]
        clients = [c for node in nodes for c in node.clients]
        services = [s for node in nodes for s in node.services]
        guards = [*(g for node in nodes for g in node.guards), self._guard, self._sigint_gc]
        counts = [len(kind) for kind in (subscriptions, guards, timers, clients, services)]
        self._wait_set = wait_set = _rclpy.WaitSet(*counts, 0, self._context.handle)
        self._entries = [
            *((wait_set.add_subscription, each.handle) for each in subscriptions),
            *((wait_set.add_guard_condition, each.handle) for each in guards),
            *((wait_set.add_timer, each.handle) for each in timers),
            *((wait_set.add_client, each.handle) for each in clients),
            *((wait_set.add_service, each.handle) for each in services),
        ]
        self._subscriptions = {each.handle.pointer: each for each in subscriptions}
        self._timers = {each.handle.pointer: each for each in timers}

    def _call_ready(self) -> None:
        """Call what is ready; once entities have changed, the rest is found again by the next wait."""
        for pointer in self._wait_set.get_ready_entities('timer'):
            timer = self._timers[pointer]
            if not self._stale and timer.handle.is_timer_ready():
                timer.handle.call_timer()
                timer.callback()
        for pointer in self._wait_set.get_ready_entities('subscription'):
            if self._stale:
                return
            subscription = self._subscriptions[pointer]
            taken = subscription.handle.take_message(subscription.msg_type, subscription.raw)
            if taken is None:
                continue
            only_message = subscription._callback_type is Subscription.CallbackType.MessageOnly
            subscription.callback(*(taken[:1] if only_message else taken))
