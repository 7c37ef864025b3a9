"""A TCP server that sends the same bytes to all its clients."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable

_SEND_TIMEOUT_S = 1.0


class StreamServer:
    """Serves on loopback until closed; drops clients that do not read."""

    def __init__(self, port: int = 0, greeting: Callable[[], bytes] = bytes) -> None:
        self._greeting = greeting
        self._lock = threading.Lock()
        self._clients: list[socket.socket] = []
        self._listener = socket.create_server(('127.0.0.1', port))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, name='stream_server', daemon=True)
        self._thread.start()

    @property
    def clients(self) -> int:
        """Number of connected clients."""
        return len(self._clients)

    def send(self, data: bytes) -> None:
        """Send to every client."""
        with self._lock:
            self._clients = [client for client in self._clients if _sent(client, data)]

    def drop_clients(self) -> None:
        """Close all connections, like a restart of the device."""
        with self._lock:
            for client in self._clients:
                client.close()
            self._clients.clear()

    def close(self) -> None:
        """Stop serving."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        self.drop_clients()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            client.settimeout(_SEND_TIMEOUT_S)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                if _sent(client, self._greeting()):
                    self._clients.append(client)


def _sent(client: socket.socket, data: bytes) -> bool:
    try:
        client.sendall(data)
    except OSError:
        client.close()
        return False
    return True
