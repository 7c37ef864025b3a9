"""A Modbus TCP server for holding registers. Independent of the client, so that errors cannot cancel."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Sequence
from struct import pack, unpack
from typing import Protocol

ILLEGAL_FUNCTION, ILLEGAL_ADDRESS, ILLEGAL_VALUE = 1, 2, 3
_LARGEST = 254  # [bytes] of a request, from the unit on
_MOST_READ, _MOST_WRITTEN = 125, 123  # registers


class Registers(Protocol):
    """The served registers. LookupError: no such register."""

    @property
    def is_silent(self) -> bool:
        """Whether the server ignores requests."""

    def read(self, first: int, count: int) -> Sequence[int]: ...

    def write(self, first: int, words: Sequence[int]) -> None: ...


class ModbusServer:
    """Serves on loopback until closed, with a thread per client: functions 3, 6 and 16 of any unit."""

    def __init__(self, registers: Registers, port: int = 0) -> None:
        self._registers = registers
        self._listener = socket.create_server(('127.0.0.1', port))
        self.port: int = self._listener.getsockname()[1]
        self._clients: dict[socket.socket, threading.Thread] = {}
        self._thread = threading.Thread(target=self._accept, name='modbus_server', daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close all connections and stop serving."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        for client, thread in list(self._clients.items()):
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            thread = threading.Thread(target=self._serve, args=(client,), name='modbus_client', daemon=True)
            self._clients[client] = thread
            thread.start()

    def _serve(self, client: socket.socket) -> None:
        """Answer a client until it disconnects or sends invalid Modbus."""
        with client, client.makefile('rb') as requests, contextlib.suppress(OSError):
            while len(head := requests.read(7)) == 7:
                transaction, protocol, length, unit = unpack('>3HB', head)
                if protocol or not 2 <= length <= _LARGEST:
                    break
                request = requests.read(length - 1)
                if len(request) == length - 1 and not self._registers.is_silent:
                    answer = self._answer(request)
                    client.sendall(pack('>3HB', transaction, 0, 1 + len(answer), unit) + answer)
        self._clients.pop(client, None)

    def _answer(self, request: bytes) -> bytes:
        """Return the answer to a request, both starting at the function."""
        function = request[0]
        try:
            if function == 3 and len(request) == 5:
                return self._read(request)
            if function == 6 and len(request) == 5:
                first, word = unpack('>2H', request[1:])
                self._registers.write(first, [word])
                return request
            if function == 16 and len(request) >= 6:
                return self._write(request)
        except LookupError:
            return bytes([function | 128, ILLEGAL_ADDRESS])
        return bytes([function | 128, ILLEGAL_FUNCTION if function not in (3, 6, 16) else ILLEGAL_VALUE])

    def _read(self, request: bytes) -> bytes:
        first, count = unpack('>2H', request[1:])
        if not 1 <= count <= _MOST_READ:
            return bytes([3 | 128, ILLEGAL_VALUE])
        words = self._registers.read(first, count)
        return pack(f'>2B{count}H', 3, 2 * count, *words)

    def _write(self, request: bytes) -> bytes:
        first, count, size = unpack('>2HB', request[1:6])
        if not (1 <= count <= _MOST_WRITTEN and size == len(request) - 6 == 2 * count):
            return bytes([16 | 128, ILLEGAL_VALUE])
        self._registers.write(first, unpack(f'>{count}H', request[6:]))
        return request[:5]
