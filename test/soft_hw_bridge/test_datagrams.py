"""Kernel time stamps of datagrams are right even if the reader slept."""

import socket
import time

import pytest

from soft_hw_bridge.link.udp_timestamps import receive, stamp_arrivals


@pytest.fixture
def pair():
    receiver, sender = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    receiver.bind(('127.0.0.1', 0))
    receiver.setblocking(False)
    stamp_arrivals(receiver)
    yield receiver, lambda data: sender.sendto(data, receiver.getsockname())
    receiver.close()
    sender.close()


def test_the_stamp_is_of_the_arrival_and_not_of_the_reading(pair):
    receiver, send = pair
    before = time.time_ns()
    send(b'hello')
    after = time.time_ns()
    time.sleep(0.2)
    data, (host, _), arrived_ns = receive(receiver, 100, time.time_ns)
    assert (data, host) == (b'hello', '127.0.0.1')
    assert before - 1_000_000 <= arrived_ns <= after + 50_000_000


def test_a_reader_held_up_while_it_reads_does_not_shift_the_stamp(pair):
    receiver, send = pair

    def held_up() -> int:
        now_ns = time.time_ns()
        time.sleep(0.2)
        return now_ns

    before = time.time_ns()
    send(b'hello')
    assert before - 1_000_000 <= receive(receiver, 100, held_up)[2] <= before + 100_000_000


def test_on_a_simulated_clock_it_is_the_reading(pair):
    receiver, send = pair
    send(b'hello')
    time.sleep(0.1)
    assert receive(receiver, 100, lambda: 42)[2] == 42


def test_nothing_there_is_an_error_of_the_socket(pair):
    with pytest.raises(BlockingIOError):
        receive(pair[0], 100, time.time_ns)
