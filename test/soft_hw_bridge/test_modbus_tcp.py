"""Answers of a Modbus server: complete, in pieces, and wrong."""

import socket
import threading
import time
from contextlib import contextmanager, suppress

import pytest

from soft_hw_bridge.errors import DeviceError
from soft_hw_bridge.pressure.contact_lease import ContactLease
from soft_hw_bridge.pressure.modbus_client import ModbusTcp

ANSWER = bytes.fromhex('0001 0000 0007 01 03 04 0001 0002')  # two registers, of the first request


def connected(port, timeout=10.0):
    lease = ContactLease()
    lease.start(1000.0)
    return ModbusTcp(('127.0.0.1', port), 1, timeout, lease)


@pytest.mark.parametrize(
    ('answer', 'problem'),
    [
        (b'', 'closed the connection'),
        (ANSWER[:-1], 'closed the connection'),
        (ANSWER[:1] + b'\x02' + ANSWER[2:], 'belongs to another request'),
        (ANSWER[:6] + b'\x09' + ANSWER[7:], 'belongs to another request'),
        (ANSWER[:7] + b'\x04' + ANSWER[8:], 'has function 4'),
        (ANSWER[:8] + b'\x02' + ANSWER[9:], 'asked for 2 registers from 7, got 2'),
        (bytes.fromhex('0001 0000 0005 01 03 02 0001'), 'asked for 2 registers from 7, got 1'),
        (bytes.fromhex('0001 0000 0003 01 83 06'), 'refused to read from register 7: device busy'),
        (bytes.fromhex('0001 0000 0003 01 83 63'), 'refused to read from register 7: code 99'),
        (bytes.fromhex('0001 0000 0000 01 03'), 'an answer must have 3 to 254 bytes, got 0'),
        (bytes.fromhex('0001 0000 ffff 01 03'), 'an answer must have 3 to 254 bytes, got 65535'),
        (ANSWER + b'\0', 'more than one answer'),
    ],
)
def test_answers_that_are_none_are_device_errors(answer, problem):
    with _answering(answer) as port, pytest.raises(DeviceError, match=problem):
        connected(port).read(7, 2)


def test_an_answer_may_come_in_pieces():
    with _answering(*(ANSWER[k : k + 1] for k in range(len(ANSWER)))) as port:
        assert connected(port).read(7, 2).tolist() == [1, 2]


def test_an_answer_in_pieces_has_no_more_time_than_a_whole_one():
    pieces = (ANSWER[k : k + 1] for k in range(len(ANSWER)))
    with _answering(*pieces, pause=0.1) as port, pytest.raises(DeviceError, match='timed out'):
        connected(port, 0.5).read(7, 2)


def test_a_name_that_none_can_be_is_a_device_error():
    with pytest.raises(DeviceError, match=r'no Modbus device at valves\.\.local:502'):
        ModbusTcp(('valves..local', 502), 1, 0.5, ContactLease())


@contextmanager
def _answering(*pieces, pause=0.002):
    """A server that takes one request, sends these bytes and closes the connection."""

    def serve():
        client, _ = listener.accept()
        with client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.recv(100)
            with suppress(OSError):  # the client has disconnected
                for piece in pieces:
                    client.sendall(piece)
                    time.sleep(pause)

    with socket.create_server(('127.0.0.1', 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()
