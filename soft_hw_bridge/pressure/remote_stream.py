"""Starts and supervises the device process, from the ROS process."""

from __future__ import annotations

import contextlib
import pickle
import select
import socket
import subprocess
import sys
import threading

import numpy as np

from soft_dynamics.diagnostics import ERROR, Status
from soft_dynamics.timing.boot_time import boot_time
from soft_hw_bridge.link.backoff import Backoff
from soft_hw_bridge.pressure.command import Command
from soft_hw_bridge.pressure.config import PressureConfig, make_stream
from soft_hw_bridge.pressure.device_process import (
    ARM,
    CLOSE,
    COMMAND,
    DISARM,
    LARGEST,
    MEASURED,
    NUMBER,
    REFUSED,
    STAMP,
    STATUS,
    STOP,
    STOPPED,
)
from soft_hw_bridge.pressure.stream import Measured

_POLL_S = 0.1  # longest wait for a message from the device process
_START_S = 30.0  # longest wait for the first status of a new process
_SILENCE_S = 1.0  # after this silence a process counts as stopped or hung
_STOP_S, _STOP_CYCLES = 0.3, 3.0  # their sum is the longest wait for the answer to an emergency stop
_END_S = 5.0  # longest wait for the end, in addition to the ramp


class RemoteStream:
    """Starts the process that drives the valves, and restarts it if it ends.

    One thread calls `poll` in a loop; other threads may call the rest. A restarted process follows no commands until
    `arm`, because it does not know the previous publisher.
    """

    def __init__(self, config: PressureConfig) -> None:
        stream = make_stream(config)  # never opened: only describes the device
        self.names, self.about = stream.names, stream.about
        self.watchdog, self.late_writes_excluded = stream.watchdog, stream.late_writes_excluded
        self.command_timeout, self._ramp_time = stream.limits.command_timeout, stream.limits.ramp_time
        self._stop_s = _STOP_S + _STOP_CYCLES * stream.limits.cycle
        self._config = config
        self._backoff = Backoff()
        self._is_stopped = False
        self._ended = ''  # why the process ended; kept until `arm`
        self._status = Status(ERROR, 'not connected yet')
        self._stops = 0  # emergency stops
        self._vented = (False, '')  # whether zero was read back since the last one, and what is known
        self._answered = threading.Event()
        self._start()

    def arm(self) -> None:
        """Follow commands from now on. Do nothing after an emergency stop, until `disarm`."""
        if self._is_stopped:
            return
        self._ended = ''
        self._request(ARM)

    def disarm(self) -> None:
        """Vent along the ramp and stop following commands."""
        self._is_stopped = False
        self._request(DISARM)

    def emergency_stop(self) -> tuple[bool, str]:
        """Vent at once and stay vented until disarmed and armed.

        Return whether the device has read back zero since then, and what is known about the result. A device process
        that is starting receives the request before it writes anything but zero.
        """
        self._is_stopped = True
        self._stops += 1
        self._answered.clear()
        self._request(self._stop_request())
        if self._answered.wait(self._stop_s):
            return self._vented
        if self._process.poll() is not None:
            what = 'the device process has ended'
        elif not self._has_answered:
            return False, 'not confirmed, the device process is still starting: it will vent the device'
        elif self.watchdog is None:
            what = 'the device process does not answer, and the device has no watchdog'
        else:
            self._process.kill()
            what = 'the device process did not answer and was killed'
        if self.watchdog is None:
            return False, f'{what}: shut off the supply'
        return False, f'{what}: the device vents after {self.watchdog:g} s'

    def command(self, command: Command) -> None:
        """Send a command; drop it if the device process does not read, since it would be stale later."""
        self._send(COMMAND + command.pack())

    def refuse(self, command: Command, reason: str) -> None:
        """Vent because of an invalid command, which still counts for its publisher."""
        self._send(REFUSED + pickle.dumps((command.pack(), reason[:200])))

    def poll(self) -> list[Measured]:
        """Return new measurements; wait for a bounded time."""
        if self._process.poll() is not None:
            self._lose()
            return []
        measured: list[Measured] = []
        if select.select([self._control], [], [], _POLL_S)[0]:
            with contextlib.suppress(BlockingIOError, ConnectionError):
                while data := self._control.recv(LARGEST):
                    self._take(data, measured)
        return measured

    def status(self) -> Status:
        """Return the status of device and commands."""
        level, line, values = self._status
        if boot_time() - self._heard_t > (_SILENCE_S if self._has_answered else _START_S):
            return Status(ERROR, 'the device process does not answer', values)
        if self._ended:
            return Status(ERROR, f'{self._ended}; deactivate and activate to resume', values)
        return Status(level, line, values)

    def close(self) -> None:
        """Vent along the ramp and end the process."""
        self._request(CLOSE)
        try:
            self._process.wait(2.0 * self._ramp_time + _END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._control.close()
        self._commands.close()

    def _start(self) -> None:
        here, control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        commands_here, commands = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        numbers = [control.fileno(), commands.fileno()]
        self._process = subprocess.Popen(
            [sys.executable, '-m', 'soft_hw_bridge.pressure.device_process', *map(str, numbers)],
            pass_fds=numbers,
            start_new_session=True,  # a signal to the process group of ROS must not end it before the ramp
        )
        control.close()
        commands.close()
        here.setblocking(False)
        commands_here.setblocking(False)
        here.send(pickle.dumps(self._config))  # before any request of another thread
        self._heard_t, self._has_answered = boot_time(), False
        self._control, self._commands = here, commands_here
        if self._is_stopped:
            self._request(self._stop_request())

    def _stop_request(self) -> bytes:
        return STOP + NUMBER.pack(self._stops)

    def _lose(self) -> None:
        """Record that the process has ended, and start another one when due."""
        code = self._process.returncode
        how = f'signal {-code}' if code < 0 else f'exit code {code}'
        self._ended = f'the device process ended with {how}'
        if not self._backoff.is_due(boot_time()):
            select.select([], [], [], _POLL_S)
            return
        self._control.close()
        self._commands.close()
        self._start()

    def _take(self, data: bytes, measured: list[Measured]) -> None:
        kind, rest = data[:1], data[1:]
        self._heard_t, self._has_answered = boot_time(), True
        if kind == MEASURED:
            pressure = np.frombuffer(rest, np.float64, -1, STAMP.size)
            measured.append(Measured(STAMP.unpack_from(rest)[0], pressure))
        elif kind == STATUS:
            self._status = Status(*pickle.loads(rest))
        elif kind == STOPPED and NUMBER.unpack_from(rest)[0] == self._stops:
            self._vented = pickle.loads(rest[NUMBER.size :])
            self._answered.set()

    def _request(self, request: bytes) -> None:
        """Send a request; kill a process that does not read. `poll` notices one that has ended."""
        try:
            self._control.send(request)
        except BlockingIOError:
            self._process.kill()
        except OSError:
            pass

    def _send(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            self._commands.send(data)
