"""Start the nodes of a plan, relay their output, and stop all of them in any case.

One thread waits for output, signals and deadlines in one place.
"""

from __future__ import annotations

import functools
import os
import selectors
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import IO

from tools.launcher.process import Process

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
PIPE_CAPACITY = 1 << 20  # [bytes] more than a pipe holds
LEFTOVER_POLL_PERIOD = 0.1  # [s] the end of grandchildren is not signalled


class Supervisor:
    """Runs processes until all have ended, or until a signal or a required node ends the launch."""

    def __init__(self, processes: Sequence[Process], debug: bool) -> None:
        self.processes = processes
        self.debug = debug
        self.selector = selectors.DefaultSelector()
        self.stopping = False
        self.failed = False

    def run(self) -> int:
        """Return the exit code: 1 if a node failed, else 0."""
        self._listen_to_signals()
        try:
            for process in self.processes:
                if not self.stopping:
                    self._start(process)
            while not all(process.is_done for process in self.processes):
                for key, _ in self.selector.select(self._time_to_deadline()):
                    key.data()
                for process in reversed(self.processes):  # the last to start is the first to stop
                    self._advance(process)
        finally:
            for process in self.processes:
                process.send(signal.SIGKILL)
        return 1 if self.failed else 0

    def _listen_to_signals(self) -> None:
        """Let the interpreter write the number of each signal into a pipe that the loop reads."""
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        for number in (*STOP_SIGNALS, signal.SIGCHLD):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup
                signal.signal(number, lambda *_: None)
        self.selector.register(reader, selectors.EVENT_READ, functools.partial(self._on_signals, reader))

    def _on_signals(self, reader: int) -> None:
        for number in os.read(reader, 1024):
            if number in STOP_SIGNALS:
                name = signal.Signals(number).name
                self._log('WARNING', 'launch', f'{name} received{" again, ignored" if self.stopping else ""}')
                self.stopping = True

    def _time_to_deadline(self) -> float | None:
        now = time.monotonic()
        deadlines = [process.escalation[0][0] for process in self.processes if process.escalation]
        deadlines += [process.start_at for process in self.processes if process.start_at is not None]
        if any(process.has_group and not process.runs for process in self.processes):
            return LEFTOVER_POLL_PERIOD
        return max(0.0, min(deadlines) - now) if deadlines else None

    def _start(self, process: Process) -> None:
        label = process.node.label
        if self.debug:
            self._log('DEBUG', label, f'starting {shlex.join(process.command)}')
        try:
            popen = process.start()
        except OSError as error:
            self._log('ERROR', label, f'cannot start {shlex.join(process.command)}: {error.strerror}')
            self._after_end(process, failed=True)
            return
        self._log('INFO', label, f'process started with pid [{popen.pid}]')
        for stream in filter(None, (popen.stdout, popen.stderr)):
            os.set_blocking(stream.fileno(), False)
            relay = functools.partial(self._relay, stream, label, bytearray())
            self.selector.register(stream, selectors.EVENT_READ, relay)

    def _relay(self, stream: IO[bytes], label: str, partial_line: bytearray) -> None:
        try:
            chunk = os.read(stream.fileno(), PIPE_CAPACITY)
        except BlockingIOError:
            return
        *lines, rest = (bytes(partial_line) + chunk).split(b'\n')
        partial_line[:] = rest
        if not chunk:
            self.selector.unregister(stream)
            stream.close()
            lines = [rest] if rest else []
        for line in lines:
            self._print(b'[%s] %s' % (label.encode(), line))

    def _advance(self, process: Process) -> None:
        """Check whether a process has ended, and do what is due."""
        if process.popen is not None and process.runs and process.popen.poll() is not None:
            self._on_end(process, process.popen)
        elif not process.runs:
            process.send(0)
        now = time.monotonic()
        if self.stopping:
            process.stop(now, signal.SIGINT)
        while process.escalation and process.escalation[0][0] <= now:
            self._escalate(process, process.escalation.pop(0)[1])
        if process.start_at is not None and process.start_at <= now and not process.has_group:
            self._start(process)

    def _on_end(self, process: Process, popen: subprocess.Popen[bytes]) -> None:
        label, code = process.node.label, popen.returncode
        for stream in filter(None, (popen.stdout, popen.stderr)):
            for _ in ('its last words', 'end of file'):
                if not stream.closed:
                    self.selector.get_key(stream).data()
        if code == 0:
            self._log('INFO', label, f'process has finished cleanly [pid {popen.pid}]')
        else:
            command = ' '.join(word for word in process.command if word.strip())
            self._log(
                'ERROR', label, f"process has died [pid {popen.pid}, exit code {code}, cmd '{command}']."
            )
        process.send(0)
        process.stop(time.monotonic(), signal.SIGTERM)
        self._after_end(process, failed=code != 0)

    def _after_end(self, process: Process, failed: bool) -> None:
        """Shut down, restart the node, or continue without it."""
        node = process.node
        if self.stopping:
            return
        if node.required:
            self._log('INFO', 'launch', f'process[{node.label}] was required: shutting down launched system')
            self.stopping = True
        elif node.respawn and (node.respawn_max_retries < 0 or process.starts <= node.respawn_max_retries):
            process.start_at = time.monotonic() + node.respawn_delay
            return
        self.failed |= failed

    def _escalate(self, process: Process, number: signal.Signals) -> None:
        node, label = process.node, process.node.label
        if not process.runs:
            self._log(
                'WARNING', label, f"sending signal '{number.name}' to the child processes of process[{label}]"
            )
        else:
            if number != signal.SIGINT:
                last, seconds = {
                    signal.SIGTERM: ('SIGINT', node.sigterm_timeout),
                    signal.SIGKILL: ('SIGTERM', node.sigkill_timeout),
                }[number]
                self._log(
                    'ERROR',
                    label,
                    f"process[{label}] failed to terminate '{seconds:g}' seconds after receiving '{last}', "
                    f"escalating to '{number.name}'",
                )
            self._log('INFO', label, f"sending signal '{number.name}' to process[{label}]")
            self.failed |= number == signal.SIGKILL
        process.send(number)

    def _log(self, level: str, name: str, text: str) -> None:
        self._print(f'[{level}] [{name}]: {text}'.encode())

    def _print(self, line: bytes) -> None:
        try:
            sys.stdout.buffer.write(line + b'\n')
            sys.stdout.buffer.flush()
        except OSError:  # the reader of stdout is gone
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            self.stopping = True
