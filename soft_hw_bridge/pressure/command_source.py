"""Enforce a single publisher of commands."""

from __future__ import annotations

import math

from soft_hw_bridge.pressure.command import Command

UNKNOWN = -1  # sequence number; the ROS process then accepts commands only while the topic has one publisher
_MOST_RATE, _SPARE = 2000.0, 20  # largest gap of one publisher: commands per second, plus a burst


class Master:
    """Tracks the current publisher and detects commands of another one.

    Texts in a message prove nothing, since anyone can write them. The GID of the publisher decides, if the middleware
    provides it. Otherwise the sequence number decides: each publisher counts its own messages, so a number that does
    not follow the previous one belongs to another publisher. The number of a successor can follow by chance, so a
    publisher that appeared during a silence (`generation`) is another one too.

    A second publisher is a fault until `forget`, even if the first one has ended. The exception is a hand-over that
    both declare: the last command of the first and the first command of the second have `is_handover`.
    """

    def __init__(self) -> None:
        self.problem = ''
        self.forget()

    def forget(self) -> None:
        """Accept the next publisher."""
        self.problem = ''
        self._last: Command | None = None
        self._is_settled = self._gives_way = (
            False  # the master has sent a command without, and then one with `is_handover`
        )

    def hear(self, command: Command) -> str:
        """Return why a command must be rejected; '' if it comes from the master."""
        if not self.problem and self._last is not None and not self._is_next(self._last, command):
            if self._gives_way and command.is_handover:
                self._is_settled = False
            else:
                self.problem = 'commands from two publishers'
        if self.problem:
            return self.problem
        if self._last is not None and self._is_older(self._last, command):
            return 'command is older than the one before'
        self._gives_way = self._is_settled and command.is_handover
        self._is_settled |= not command.is_handover
        self._last = command
        return ''

    @staticmethod
    def _is_older(last: Command, command: Command) -> bool:
        """Whether a publisher with a known GID sent this command before the last one, or a second time."""
        known = command.publisher != b'' and UNKNOWN not in (last.sequence, command.sequence)
        return known and command.publisher == last.publisher and command.sequence <= last.sequence

    @staticmethod
    def _is_next(last: Command, command: Command) -> bool:
        """Whether two commands come from one publisher."""
        if command.publisher or last.publisher:
            return command.publisher == last.publisher
        if command.generation != last.generation:
            return False
        if UNKNOWN in (command.sequence, last.sequence):
            return command.sequence == last.sequence
        passed = max(command.heard_t - last.heard_t, 0.0)
        most = _SPARE + math.ceil(_MOST_RATE * min(passed, 1e6))
        return 0 < command.sequence - last.sequence <= most
