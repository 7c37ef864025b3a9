"""The address behind a host name, which the network may not know yet."""

from __future__ import annotations

import socket

from soft_hw_bridge.link.backoff import Backoff


class Host:
    """Call `is_known` until it is true: a computer in the lab may be switched on later than we are."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.address = ''  # IPv4, once it is known
        self.error = ''  # why it is not, in one line
        self._backoff = Backoff()

    def is_known(self, t: float) -> bool:
        """Whether there is an address; the network is asked for it when that is due at time t [s]."""
        if not self.address and self._backoff.is_due(t):
            try:
                self.address = socket.gethostbyname(self.name)
                self.error = ''
            except (OSError, UnicodeError) as error:
                self.error = f'{self.name!r} is no known host: {error}'
        return bool(self.address)
