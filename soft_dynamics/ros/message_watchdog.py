"""Time-out for a stream of messages, based on an ordinary timer; works under any rclpy executor."""

from __future__ import annotations

import time
from collections.abc import Callable

from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node

_SETTLED = 4  # [-] periods without a time-out: the stream is running
_LATE = 1.0 / 3.0  # [-] largest delay of the first call, in time-outs


class MessageWatchdog:
    """Calls back if `heard` was not called for `period` [s], and again after each further period.

    Resetting a timer for each message would wake the executor twice per message. While messages flow, the timer
    therefore only checks the time of the last one, three times per `timeout` [s]. The first call is late by at most a
    third of `timeout`; later calls are on time until messages flow again.
    """

    def __init__(self, node: Node, period: float, timeout: float, callback: Callable[[], None]) -> None:
        self._period_ns, self._look_ns = round(period * 1e9), round(_LATE * timeout * 1e9)
        self._node, self._callback = node, callback
        self._heard_ns = self._silent_ns = time.monotonic_ns()
        self._is_precise = True  # the timer restarts with each message
        clock = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = node.create_timer(period, self._look, clock=clock)

    def heard(self) -> None:
        """Restart the period."""
        self._heard_ns = time.monotonic_ns()
        if self._is_precise:
            flows = self._heard_ns - self._silent_ns > _SETTLED * self._period_ns
            self._set_precise(not flows or self._look_ns <= self._period_ns)

    def close(self) -> None:
        """Stop calling back."""
        self._node.destroy_timer(self._timer)

    def _look(self) -> None:
        now_ns = time.monotonic_ns()
        if now_ns - self._heard_ns < self._period_ns:
            return
        self._silent_ns = now_ns
        if not self._is_precise:
            self._set_precise(True)
        self._callback()

    def _set_precise(self, is_precise: bool) -> None:
        if is_precise != self._is_precise:
            self._is_precise = is_precise
            self._timer.timer_period_ns = self._period_ns if is_precise else self._look_ns
        self._timer.reset()
