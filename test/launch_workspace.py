"""A package of stand-in nodes, and functions to launch them with tools/launch.py."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LAUNCH = [sys.executable, str(ROOT / 'tools' / 'launch.py')]
FILES = Path(__file__).parent / 'tools' / 'launch_files'
PATIENCE = 30.0  # [s] longer than any step here


class Workspace:
    """An ament prefix with the package `fake_robot`, and launch files that start its nodes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.prefix = folder / 'prefix'
        self.temporary = folder / 'tmp'
        self.temporary.mkdir()
        self.environment = os.environ | {'AMENT_PREFIX_PATH': str(self.prefix), 'TMPDIR': str(self.temporary)}
        self.environment.pop('ROS_AUTOMATIC_DISCOVERY_RANGE', None)
        share = self.package('fake_robot', ['talker', 'listener'])
        shutil.copytree(FILES, share / 'launch', ignore=shutil.ignore_patterns('*.py', '*.yaml'))
        (share / 'config').mkdir()
        shutil.copy(FILES / 'params.yaml', share / 'config')

    def package(self, name: str, executables: list[str]) -> Path:
        """Add a package and return its share folder."""
        index = self.prefix / 'share' / 'ament_index' / 'resource_index' / 'packages'
        for path in (index, self.prefix / 'lib' / name, self.prefix / 'share' / name):
            path.mkdir(parents=True, exist_ok=True)
        (index / name).touch()
        for executable in executables:
            file = self.prefix / 'lib' / name / executable
            file.write_text(f'#!/bin/sh\nexec "{sys.executable}" -IS "{FILES / "fake_node.py"}" "$@"\n')
            file.chmod(0o755)
        return self.prefix / 'share' / name

    def write(self, *lines: str, name: str = 'test.launch.xml') -> str:
        """Write a launch file, <launch> on its first line, and return its path."""
        file = self.folder / name
        file.write_text('\n'.join(['<launch>', *lines, '</launch>']))
        return str(file)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*LAUNCH, *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    @contextmanager
    def start(self, *arguments: str) -> Iterator[Running]:
        with (self.folder / 'output').open('wb') as output:
            process = subprocess.Popen(
                [*LAUNCH, *arguments],
                env=self.environment,
                stdout=output,
                stderr=output,
                preexec_fn=_hear_hang_ups,
            )
        try:
            yield Running(process, self.folder / 'output')
        finally:
            process.kill()  # its nodes end with it
            process.wait(PATIENCE)


def _hear_hang_ups() -> None:
    """Restore the signals that `nohup make test` ignores: children inherit this, and the runner respects it."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


class Running:
    """The running launcher."""

    def __init__(self, process: subprocess.Popen[bytes], output: Path) -> None:
        self.process = process
        self._output = output

    @property
    def output(self) -> str:
        return self._output.read_text()

    def reports(self, count: int) -> dict[str, dict[str, Any]]:
        """Wait until this many nodes have reported; return label -> report."""
        wait_until(lambda: len(reports(self.output)) >= count)
        return reports(self.output)

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, 'timed out'
        time.sleep(0.02)


def reports(output: str) -> dict[str, dict[str, Any]]:
    return {
        label: json.loads(text)
        for label, text in re.findall(r'^\[([\w-]+)\] (\{.*\})$', output, re.MULTILINE)
    }


def is_running(pid: int) -> bool:
    try:
        return Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0] not in 'ZX'
    except FileNotFoundError:
        return False


def node(arguments: str = '', attributes: str = '', content: str = '') -> str:
    """Return the element of a node that prints to stdout."""
    start = f'<node pkg="fake_robot" exec="talker" output="screen" args="{arguments}" {attributes}>'
    return f'{start}{content}</node>'
