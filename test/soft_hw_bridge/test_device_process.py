"""The device process, with a stream that records its calls."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from soft_dynamics.diagnostics import OK, Status
from soft_dynamics.timing.boot_time import boot_time
from soft_hw_bridge.pressure import device_process
from soft_hw_bridge.pressure.config import PressureConfig
from soft_hw_bridge.pressure.device_process import ARM, DISARM, DeviceProcess


class Stream:
    """Records calls, and takes commands in each cycle."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.refuses_arm = False

    def arm(self) -> None:
        self.calls.append('arm')
        if self.refuses_arm:
            raise ValueError('cannot arm: emergency stop')

    def disarm(self) -> None:
        self.calls.append('disarm')

    def poll(self, take: Any) -> list[Any]:
        take()
        self.calls.append('poll')
        return []

    def status(self) -> Status:
        return Status(OK, 'vented', {})

    def close(self) -> None:
        self.calls.append('close')


class Ends:
    """The device process and the sockets of the ROS process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stream = Stream()
        monkeypatch.setattr(device_process, 'make_stream', lambda *_, **__: self.stream)
        kind = socket.AF_UNIX, socket.SOCK_SEQPACKET
        (self.control, control), (self.commands, commands) = (
            socket.socketpair(*kind),
            socket.socketpair(*kind),
        )
        self.process = DeviceProcess(PressureConfig(), control, commands)
        self._sockets = self.control, control, self.commands, commands

    def close(self) -> None:
        for each in self._sockets:
            each.close()


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ends]:
    ends = Ends(monkeypatch)
    yield ends
    ends.close()


def test_requests_do_not_shorten_a_wait_and_are_obeyed_in_it(ends: Ends) -> None:
    """Otherwise a request would end the wait for the watchdog before the next connection."""
    for request in (ARM, DISARM) * 10:
        ends.control.send(request)
    begin = boot_time()
    assert not ends.process.wait(0.2)
    assert boot_time() - begin >= 0.2
    assert ends.stream.calls == ['arm', 'disarm'] * 10


@pytest.mark.parametrize('unread', [False, True])
@pytest.mark.parametrize('where', ['run', 'wait'])
def test_a_ros_process_that_is_gone_ends_it_as_a_close_does(ends: Ends, where: str, unread: bool) -> None:
    """A process killed with unread messages resets the connection: the reader gets an error instead of end-of-file."""
    if unread:
        ends.process._told_t = -1e9
        ends.process._tell()
    ends.control.close()
    ends.commands.close()
    if where == 'wait':
        assert ends.process.wait(60.0)
    ends.process.run()
    assert ends.stream.calls[-1] == 'close'


def test_an_arm_that_is_refused_is_no_fault(ends: Ends) -> None:
    """A measurement may have stopped the guard just before; the device does not count as lost."""
    ends.stream.refuses_arm = True
    ends.control.send(ARM)
    assert not ends.process.wait(0.0001)
    ends.control.close()
    ends.process.run()
    assert ends.stream.calls[-2:] == ['poll', 'close']
