"""Modbus over TCP: as much of it as a valve terminal needs, and one request at a time.

A library for all of Modbus takes twice the CPU, and there are four hundred requests a second.

    request   transaction, 0, bytes to follow (16 bits each), unit, function (8), address, count or words (16)
    answer    transaction, 0, bytes to follow, unit, function, what was asked for; or function + 128 and a reason
"""

from __future__ import annotations

import socket
import struct

import numpy as np
import numpy.typing as npt

from soft_hw_bridge.errors import DeviceError

Words = npt.NDArray[np.uint16]

READ, WRITE, REFUSED = 3, 16, 128
_HEAD = struct.Struct('>HHHBB')  # transaction, protocol, bytes from the unit on, unit, function
_RANGE = struct.Struct('>HH')  # first register, how many
_WORD = np.dtype('>u2')
_REASONS = {
    1: 'illegal function',
    2: 'illegal address',
    3: 'illegal value',
    4: 'device failure',
    5: 'acknowledge',
    6: 'device busy',
    10: 'gateway path not available',
    11: 'gateway has no answer',
}


class ModbusTcp:
    """A connection to the holding registers of one unit. All it raises is DeviceError; after one, close it."""

    def __init__(self, host: str, port: int, unit: int, timeout: float) -> None:
        self._unit = unit
        self._transaction = 0
        try:
            self._socket = socket.create_connection((host, port), timeout)
        except OSError:
            raise DeviceError(f'no Modbus device at {host}:{port}') from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._answers = self._socket.makefile('rb')

    def read(self, address: int, count: int) -> Words:
        """Return registers."""
        answer = self._request('read', address, READ, _RANGE.pack(address, count))
        if len(answer) != 1 + 2 * count or answer[0] != 2 * count:
            raise DeviceError(f'asked for {count} registers from {address}, got {len(answer) // 2}')
        return np.frombuffer(answer, _WORD, count, 1).astype(np.uint16)

    def write(self, address: int, words: Words) -> None:
        """Set registers."""
        where = _RANGE.pack(address, words.size)
        data = words.astype(_WORD).tobytes()
        answer = self._request('write', address, WRITE, where + bytes([len(data)]) + data)
        if answer != where:
            raise DeviceError(f'write from register {address}: the answer is of other registers')

    def close(self) -> None:
        self._answers.close()
        self._socket.close()

    def _request(self, verb: str, address: int, function: int, body: bytes) -> bytes:
        """Send a request and return what follows the function in its answer."""
        self._transaction = (self._transaction + 1) % 65536
        head = _HEAD.pack(self._transaction, 0, 2 + len(body), self._unit, function)
        try:
            self._socket.sendall(head + body)
            transaction, protocol, unit, answered, rest = self._answer()
        except OSError as error:
            raise DeviceError(f'{verb} from register {address}: {error}') from None
        if (transaction, protocol, unit) != (self._transaction, 0, self._unit):
            raise DeviceError(f'{verb} from register {address}: the answer is to something else')
        if answered == function + REFUSED and rest:
            reason = _REASONS.get(rest[0], f'code {rest[0]}')
            raise DeviceError(f'the device refused to {verb} from register {address}: {reason}')
        if answered != function:
            raise DeviceError(f'{verb} from register {address}: the answer has function {answered}')
        return rest

    def _answer(self) -> tuple[int, int, int, int, bytes]:
        """Wait for a whole answer: transaction, protocol, unit, function and the rest."""
        transaction, protocol, length, unit, function = _HEAD.unpack(self._receive(_HEAD.size))
        return transaction, protocol, unit, function, self._receive(max(length - 2, 0))

    def _receive(self, size: int) -> bytes:
        data = self._answers.read(size)
        if len(data) < size:
            raise ConnectionError('the device closed the connection')
        return data
