"""What a bridge node says about itself, and how to lead it through its states."""

from __future__ import annotations

import time
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState

OK, WARN, ERROR, STALE = (
    DiagnosticStatus.OK,
    DiagnosticStatus.WARN,
    DiagnosticStatus.ERROR,
    DiagnosticStatus.STALE,
)


class BridgeListener:
    """Hears the diagnostics of one bridge and the messages of one topic."""

    def __init__(self, node: Any, name: str, msg_type: Any, topic: str, qos: Any) -> None:
        self.node = node
        self.name = name
        self.messages: list[Any] = node.collect(msg_type, topic, qos)
        self._arrays: list[DiagnosticArray] = node.collect(DiagnosticArray, '/diagnostics')

    @property
    def status(self) -> DiagnosticStatus:
        name = f'/{self.name}: device'
        own = (s for array in reversed(self._arrays) for s in array.status if s.name == name)
        return next(own, DiagnosticStatus(level=STALE))

    def value(self, key: str) -> str:
        return next((item.value for item in self.status.values if item.key == key), '')

    def until_messages(self, count: int = 10) -> None:
        """Wait for new messages."""
        self.messages.clear()
        self.node.spin_until(lambda: len(self.messages) >= count, 'messages')

    def until_level(self, level: bytes, text: str = '') -> float:
        """Wait for a diagnosis and return how long it took."""
        start = time.monotonic()
        self.node.spin_until(
            lambda: self.status.level == level and text in self.status.message, f'diagnosis {text!r}'
        )
        return time.monotonic() - start

    def until_value(self, key: str, above: float) -> None:
        """Wait until a figure of the diagnostics exceeds a number."""
        self.node.spin_until(lambda: float(self.value(key) or '-inf') > above, f'{key} > {above}')

    def change(self, *transitions: str) -> None:
        """Lead the node through transitions such as 'deactivate'."""
        for name in transitions:
            number = getattr(Transition, f'TRANSITION_{name.upper()}')
            request = ChangeState.Request(transition=Transition(id=number))
            assert self.node.call(ChangeState, f'{self.name}/change_state', request).success
