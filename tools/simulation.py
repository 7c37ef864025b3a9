"""Run simulation.launch.xml as a child process on free ports, for the demo, the benchmarks and the tests."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from soft_dynamics import strict_yaml
from soft_dynamics.description.robot_files import robot_file
from soft_hw_bridge.rig.remote_control import RigClient
from tools.launcher.process import end_with_parent

ROOT = Path(__file__).resolve().parent.parent
PORTS = ('mocap_port', 'vive_port', 'fiber_port', 'ft_port', 'ft_http_port', 'pressure_port', 'control_port')
_EVENT = re.compile(
    r'\[(?P<node>\w+)-\d+\]: process (started with pid \[(?P<pid>\d+)|has died \[(?P<death>.*?), cmd)'
)


class Ended(Exception):
    """The launch ended without a request."""


class Simulation:
    """The launched nodes and their fate; `arguments`: for the launch file.

    tell: called with one line when a node dies and when it has restarted.
    """

    def __init__(self, tell: Callable[[str], None] = lambda _: None, **arguments: object) -> None:
        self._tell = tell
        self.ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
        self.pids: dict[str, int] = {}  # by node
        self.deaths: list[str] = []
        self.dead: set[str] = set()  # nodes that died and have not restarted
        self.lines: list[str] = []  # of the nodes
        launch = [
            sys.executable,
            str(ROOT / 'tools' / 'launch.py'),
            'soft_robot_suite',
            'simulation.launch.xml',
        ]
        self.process = subprocess.Popen(
            [*launch, *(f'{name}:={value}' for name, value in (self.ports | arguments).items())],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=end_with_parent,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Simulation:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def rig(self) -> RigClient:
        """Return a connection to the control port of the virtual rig."""
        return RigClient(self.ports['control_port'])

    def kill(self, node: str) -> None:
        """Kill a node with SIGKILL."""
        os.kill(self.pids[node], signal.SIGKILL)

    def check(self) -> None:
        """Raise Ended if the launch has ended."""
        if self.process.poll() is not None:
            self._reader.join(5.0)
            reason = self.deaths[-1] if self.deaths else (self.lines or ['no output'])[-1].strip()
            raise Ended(f'the launch ended with exit code {self.process.returncode}: {reason}')

    def stop(self) -> int:
        """End the launch as Ctrl-C does; return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(30.0)
            except subprocess.TimeoutExpired:
                self.process.terminate()
                self.process.wait(30.0)
        self._reader.join(5.0)
        return self.process.returncode

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            event = _EVENT.search(line)
            if event is None:
                continue
            node = event['node']
            if event['death']:
                self.deaths.append(f'{node} died ({event["death"]})')
                self.dead.add(node)
                self._tell(self.deaths[-1])
            else:
                if node in self.dead:
                    self.dead.remove(node)
                    self._tell(f'{node} is back as process {event["pid"]}')
                self.pids[node] = int(event['pid'])


def patient(robot: str, folder: Path) -> Path:
    """Write a copy of a shipped robot file with time-outs for a busy computer.

    A virtual arm tolerates states and commands that are half a second old.
    """
    return changed(robot, folder, safety={'state_timeout': 0.5, 'command_timeout': 0.5})


def with_all_sensors(robot: str, folder: Path, tracked: Sequence[str]) -> Path:
    """Write a copy of a shipped robot file with Vive trackers on some frames and a fiber that starts at the base."""
    trackers = [{'name': f'tracker_{frame}', 'kind': 'vive', 'frame': frame} for frame in tracked]
    return changed(robot, folder, sensors=[*trackers, {'name': 'fiber', 'kind': 'fiber', 'frame': 'base'}])


def changed(robot: str, folder: Path, **additions: Any) -> Path:
    """Write a copy of a shipped robot file with keys or entries added to the named parts."""
    content = strict_yaml.load(robot_file(robot))
    for part, more in additions.items():
        if isinstance(more, dict):
            content[part] = content.get(part, {}) | more
        else:
            content[part] = content.get(part, []) + more
    file = folder / f'{robot}.yaml'
    file.write_text(strict_yaml.dump(content), encoding='utf-8')
    return file


def free_ports(count: int) -> list[int]:
    """Return ports that are free for TCP and UDP now."""
    held, ports = [], []
    while len(ports) < count:
        tcp = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        tcp.bind(('127.0.0.1', 0))
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        held += [tcp, udp]
        try:
            udp.bind(tcp.getsockname())
            ports.append(tcp.getsockname()[1])
        except OSError:
            continue
    for each in held:
        each.close()
    return ports
