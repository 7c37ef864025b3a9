"""Resolve a host name, and retry while it is unknown."""

from __future__ import annotations

import socket

from soft_hw_bridge.link.backoff import Backoff


class Host:
    """Call `is_known` until it is true: a device may be switched on after this computer."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.address = ''  # IPv4, once resolved
        self.error = ''  # why it is not resolved, in one line
        self._backoff = Backoff()

    def is_known(self, t: float) -> bool:
        """Whether the address is known; resolve it if an attempt is due at time t [s]."""
        if not self.address and self._backoff.is_due(t):
            try:
                self.address = socket.gethostbyname(self.name)
                self.error = ''
            except (OSError, UnicodeError) as error:
                self.error = f'cannot resolve {self.name!r}: {error}'
        return bool(self.address)
