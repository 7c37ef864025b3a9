"""The process group of a node, from start to end, with escalating signals."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess

from soft_dynamics import strict_yaml
from tools.launcher.node import Node
from tools.launcher.parameters import Value

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_libc = ctypes.CDLL(None)


class Process:
    """A node in a session of its own: its children stop with it, and Ctrl-C in the terminal does not reach it."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.command = node.command(lambda parameters: ['--params-file', self._write(parameters)])
        self.popen: subprocess.Popen[bytes] | None = None
        self.has_group = False  # whether the node or one of its children may still run
        self.was_killed = False
        self.starts = 0
        self.start_at: float | None = None  # when to restart it
        self.escalation: list[tuple[float, signal.Signals]] = []  # (time, signal), soonest first

    def _write(self, parameters: dict[str, Value]) -> str:
        """Write a parameter file in memory, which disappears with this process."""
        content = {self.node.parameter_key: {'ros__parameters': parameters}}
        file = os.memfd_create(f'{self.node.label}.yaml')
        os.write(file, strict_yaml.dump(content, default_flow_style=False).encode())
        return f'/proc/{os.getpid()}/fd/{file}'

    @property
    def runs(self) -> bool:
        """Whether the node was started and its end has not been noticed."""
        return self.popen is not None and self.popen.returncode is None

    @property
    def is_done(self) -> bool:
        return not self.has_group and self.start_at is None

    def start(self) -> subprocess.Popen[bytes]:
        """Start the node. Raises OSError if the system refuses."""
        self.start_at = None
        self.starts += 1
        self.was_killed = False
        self.popen = subprocess.Popen(
            self.command,
            env=self.node.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if self.node.shows_stdout else subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=end_with_parent,
        )
        self.has_group = True
        return self.popen

    def stop(self, now: float, first: signal.Signals) -> None:
        """Schedule the signals that end the group, `first` SIGINT or SIGTERM, unless they are scheduled already."""
        self.start_at = None
        if not self.has_group or self.was_killed or self.escalation:
            return
        if first == signal.SIGINT:
            self.escalation.append((now, signal.SIGINT))
            now += self.node.sigterm_timeout
        self.escalation += [(now, signal.SIGTERM), (now + self.node.sigkill_timeout, signal.SIGKILL)]

    def send(self, number: int) -> None:
        """Signal the whole group; signal 0 only checks that it exists."""
        if self.popen is None or not self.has_group:
            return
        try:
            os.killpg(self.popen.pid, number)
            is_gone = False
        except (ProcessLookupError, PermissionError):
            is_gone = True
        self.was_killed |= number == signal.SIGKILL
        if not self.runs and (is_gone or self.was_killed):
            self.has_group = False
            self.escalation.clear()


def end_with_parent() -> None:
    """Let the kernel end this process if its parent is killed."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
