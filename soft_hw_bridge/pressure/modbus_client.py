"""A Modbus TCP client with the functions that a valve terminal needs, one request at a time.

Reasons not to use a Modbus library: at six hundred requests a second it takes twice the CPU, and the contact lease must
be checked between composing a write and sending it.

    request   transaction, 0, bytes to follow (16 bits each), unit, function (8), address, count or words (16)
    answer    transaction, 0, bytes to follow, unit, function, the data; or function + 128 and a reason
"""

from __future__ import annotations

import math
import socket
import struct
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from soft_dynamics.timing.boot_time import boot_time
from soft_hw_bridge.errors import DeviceError
from soft_hw_bridge.pressure.contact_lease import ContactLease

Words = npt.NDArray[np.uint16]

READ, WRITE, REFUSED = 3, 16, 128
_HEAD = struct.Struct('>HHHBB')  # transaction, protocol, bytes from the unit on, unit, function
_FROM_UNIT = 6  # offset of the unit
_LEAST, _MOST = 3, 254  # valid lengths of an answer, from the unit on
_RANGE = struct.Struct('>HH')  # first register, count
_WORD = np.dtype('>u2')
_RESET = struct.pack('ii', 1, 0)  # SO_LINGER of 0 s: close resets
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
    """A connection to the holding registers of one unit. Its only error is DeviceError; then close it.

    timeout [s]: for a whole answer, in any number of pieces.
    lease: each answer renews it; after it has expired, writes fail.
    connect: creates the socket, like socket.create_connection.
    """

    def __init__(
        self,
        where: tuple[str, int],
        unit: int,
        timeout: float,
        lease: ContactLease,
        boot: Callable[[], float] = boot_time,
        connect: Callable[..., socket.socket] = socket.create_connection,
    ) -> None:
        self._unit, self._timeout, self._lease, self._boot = unit, timeout, lease, boot
        self._transaction = 0
        self.has_failed = False  # a request had no valid answer
        try:
            self._socket = connect(where, timeout)
        except (OSError, UnicodeError):  # UnicodeError: a host name that cannot be encoded
            raise DeviceError(f'no Modbus device at {where[0]}:{where[1]}') from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, math.ceil(1000 * timeout))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)

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
            raise DeviceError(f'write from register {address}: the answer names other registers')

    def close(self) -> None:
        """Reset the connection, so that the kernel drops undelivered data."""
        self._socket.close()

    def _request(self, verb: str, address: int, function: int, body: bytes) -> bytes:
        """Send a request and return what follows the function in its answer."""
        has_failed, self.has_failed = self.has_failed, True
        if has_failed:
            raise DeviceError('the connection has already failed')
        self._transaction = (self._transaction + 1) % 65536
        request = _HEAD.pack(self._transaction, 0, 2 + len(body), self._unit, function) + body
        sent_t = self._boot()
        try:
            self._socket.settimeout(self._timeout)
            if function == WRITE:
                self._lease.check()  # just before the kernel takes it
            self._socket.sendall(request)
            transaction, protocol, unit, answered, rest = self._answer(sent_t + self._timeout)
        except DeviceError:
            raise
        except OSError as error:
            raise DeviceError(f'{verb} from register {address}: {error}') from None
        if (transaction, protocol, unit) != (self._transaction, 0, self._unit):
            raise DeviceError(f'{verb} from register {address}: the answer belongs to another request')
        if answered == function + REFUSED and rest:
            self.has_failed = False
            reason = _REASONS.get(rest[0], f'code {rest[0]}')
            raise DeviceError(f'the device refused to {verb} from register {address}: {reason}')
        if answered != function:
            raise DeviceError(f'{verb} from register {address}: the answer has function {answered}')
        self._lease.renew(sent_t)
        self.has_failed = False
        return rest

    def _answer(self, deadline: float) -> tuple[int, int, int, int, bytes]:
        """Wait for a whole answer: transaction, protocol, unit, function and the rest."""
        data = self._receive(b'', _HEAD.size, deadline)
        transaction, protocol, length, unit, function = _HEAD.unpack_from(data)
        if not _LEAST <= length <= _MOST:
            raise ConnectionError(f'an answer must have {_LEAST} to {_MOST} bytes, got {length}')
        data = self._receive(data, _FROM_UNIT + length, deadline)
        if len(data) > _FROM_UNIT + length:
            raise ConnectionError('received more than one answer')
        return transaction, protocol, unit, function, data[_HEAD.size :]

    def _receive(self, data: bytes, size: int, deadline: float) -> bytes:
        """Append received bytes to the data until it has at least `size` bytes; return it."""
        while len(data) < size:
            self._socket.settimeout(max(deadline - self._boot(), 1e-6))  # 0 would mean no wait
            piece = self._socket.recv(_FROM_UNIT + _MOST)
            if not piece:
                raise ConnectionError('the device closed the connection')
            data += piece
        return data
