"""Remote control of a running rig: one JSON object per UDP datagram, on loopback.

    {"command": "fault", "device": "mocap", "set": {"silent": true}}   fields of emulators.faults.Faults
    {"command": "clear"}                                               or of one "device"
    {"command": "load", "mass": 0.5}                                   set the mass at the tip [kg]
    {"command": "state"}                                               true state of the plant
    {"command": "advance", "seconds": 0.5}                             pace `stepped` only

The answer is a JSON object; a failed request has an "error".
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import time
from collections.abc import Callable
from typing import Any

from soft_dynamics.errors import one_line, shown
from soft_hw_bridge.errors import UNREADABLE

_MAX_DATAGRAM = 65535
_LARGEST_REQUEST = 8192  # [bytes]
_MOST_REQUESTS = 100  # answered in a row before time continues
_LOOPBACK = '127.0.0.1'


class ControlServer:
    """Answers requests with `handle`, which raises ValueError for invalid ones."""

    def __init__(self, port: int, handle: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        self._handle = handle
        self.refused = 0  # requests
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._socket.bind((_LOOPBACK, port))
        except OSError as error:
            self._socket.close()
            raise OSError(f'cannot bind to {_LOOPBACK}:{port}: {error.strerror}') from error
        self.port: int = self._socket.getsockname()[1]

    def serve(self, until: float) -> None:
        """Answer requests until a time of `time.monotonic`, and all that have arrived unless there are too many."""
        for _ in range(_MOST_REQUESTS):
            if not select.select([self._socket], [], [], max(until - time.monotonic(), 0.0))[0]:
                return
            datagram, client = self._socket.recvfrom(_MAX_DATAGRAM)
            answer = json.dumps(self._answer(datagram)).encode()
            with contextlib.suppress(OSError):  # a client that is gone
                self._socket.sendto(answer, client)

    def close(self) -> None:
        self._socket.close()

    def _answer(self, datagram: bytes) -> dict[str, Any]:
        try:
            if len(datagram) > _LARGEST_REQUEST:
                raise ValueError(f'expected at most {_LARGEST_REQUEST} bytes, got {len(datagram)}')
            request = json.loads(datagram)
            if not isinstance(request, dict):
                raise ValueError(f'expected a JSON object, got {shown(request)}')
            return self._handle(request)
        except UNREADABLE as error:  # invalid JSON and invalid values are ValueErrors
            self.refused += 1
            return {'error': one_line(str(error), 300)}


class RigClient:
    """Client of a rig on this computer; ValueError if the rig rejects a request, TimeoutError without an answer."""

    def __init__(self, port: int, timeout: float = 10.0) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.connect((_LOOPBACK, port))
        self._socket.settimeout(timeout)

    def __enter__(self) -> RigClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def request(self, command: str, **fields: Any) -> dict[str, Any]:
        """Send a command and return the answer."""
        self._socket.send(json.dumps({'command': command, **fields}).encode())
        answer: dict[str, Any] = json.loads(self._socket.recv(_MAX_DATAGRAM))
        if 'error' in answer:
            raise ValueError(answer['error'])
        return answer

    def fault(self, device: str, **faults: Any) -> None:
        """Set fields of a device's `Faults`."""
        self.request('fault', device=device, set=faults)

    def clear(self) -> None:
        """Remove the faults of all devices."""
        self.request('clear')

    def load(self, mass: float) -> None:
        """Set the mass at the tip [kg]; 0 removes it."""
        self.request('load', mass=mass)

    def state(self) -> dict[str, Any]:
        """Return the true state of the plant."""
        return self.request('state')

    def advance(self, seconds: float) -> float:
        """Advance time and return the time of the plant [s]."""
        return float(self.request('advance', seconds=seconds)['t'])
