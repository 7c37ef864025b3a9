"""Listen to the diagnostics of a bridge node, and drive its lifecycle."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState

from soft_dynamics.ros.conversions import time_to_seconds

OK, WARN, ERROR, STALE = (
    DiagnosticStatus.OK,
    DiagnosticStatus.WARN,
    DiagnosticStatus.ERROR,
    DiagnosticStatus.STALE,
)


DIAGNOSTICS_DEPTH = 1000  # deep enough for a test that was delayed


@contextmanager
def at_work(device: Any) -> Iterator[Any]:
    """Run an emulated device, with its `loop` and its `emulator`, in a thread."""
    try:
        with device.loop:
            yield device
    finally:
        device.emulator.close()


class BridgeListener:
    """Collects the diagnostics of one bridge and the messages of one topic."""

    def __init__(self, node: Any, name: str, msg_type: Any, topic: str, qos: Any) -> None:
        self.node = node
        self.name = name
        self.messages: list[Any] = node.collect(msg_type, topic, qos)
        self._told: list[tuple[float, DiagnosticStatus]] = []  # by time [s]
        node.create_subscription(DiagnosticArray, '/diagnostics', self._hear, DIAGNOSTICS_DEPTH)

    @property
    def status(self) -> DiagnosticStatus:
        return self._told[-1][1] if self._told else DiagnosticStatus(level=STALE)

    def value(self, key: str) -> str:
        return value_of(self.status, key)

    def messages_since(self, t: float) -> list[Any]:
        """Return the messages stamped after a time [s]."""
        return [message for message in self.messages if time_to_seconds(message.header.stamp) > t]

    def until_told(self, is_told: Callable[[DiagnosticStatus], bool], since: float, what: str) -> float:
        """Wait for a diagnosis made after a time [s]; return the time of the first one."""

        def times() -> list[float]:
            return [t for t, status in self._told if t > since and is_told(status)]

        self.node.spin_until(times, f'{what}, but {self.status.message!r}')
        return times()[0]

    def until_messages(self, count: int = 10) -> None:
        """Wait for new messages."""
        self.messages.clear()
        self.node.spin_until(lambda: len(self.messages) >= count, f'{count} messages')

    def until_level(self, level: bytes, text: str = '') -> float:
        """Wait for a diagnosis and return how long it took."""
        start = time.monotonic()
        try:
            self.node.spin_until(
                lambda: self.status.level == level and text in self.status.message, f'diagnosis {text!r}'
            )
        except TimeoutError as error:
            raise TimeoutError(f'{error}, but {self.status.level!r} {self.status.message!r}') from None
        return time.monotonic() - start

    def until_value(self, key: str, above: float) -> None:
        """Wait until a value of the diagnostics exceeds a number."""
        self.node.spin_until(lambda: float(self.value(key) or '-inf') > above, f'{key} > {above}')

    def is_mute(self) -> bool:
        """Return whether a bridge that was just muted publishes nothing."""
        since = time.time()
        self.node.spin_for(0.5)
        return not self.messages_since(since)

    def change(self, *transitions: str) -> None:
        """Request transitions such as 'deactivate'."""
        for name in transitions:
            number = getattr(Transition, f'TRANSITION_{name.upper()}')
            request = ChangeState.Request(transition=Transition(id=number))
            assert self.node.call(ChangeState, f'{self.name}/change_state', request).success

    def _hear(self, array: DiagnosticArray) -> None:
        stamp = time_to_seconds(array.header.stamp)
        self._told += [(stamp, status) for status in array.status if status.name == f'/{self.name}: device']


def value_of(status: DiagnosticStatus, key: str) -> str:
    """Return a value of a diagnosis by its key; empty if missing."""
    return next((item.value for item in status.values if item.key == key), '')
