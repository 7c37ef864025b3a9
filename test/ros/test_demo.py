"""`make demo` as a user runs it: to its end, twice at once, and with nodes killed meanwhile."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from source_tree import ROOT

from tools.demo import Screen

LIMIT = 240.0  # [s]


class Demo:
    """A running demo, its output and the processes it listed."""

    def __init__(self, picture: Path, seconds: float) -> None:
        command = [sys.executable, 'tools/run.py', '--own-domain', 'python', '-m', 'tools.demo']
        short = ['--seconds', str(seconds), '--star', '0.2', '--rate', '50']
        self.picture = picture
        self.process = subprocess.Popen(
            [*command, *short, '--figure', str(picture)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(self.process.stdout)  # list.extend takes each line as it arrives

    def wait_for(self, pattern: str) -> re.Match[str]:
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            for line in list(self.lines):
                if match := re.search(pattern, line):
                    return match
            if self.process.poll() is not None and not self.reader.is_alive():
                break
            time.sleep(0.05)
        raise AssertionError(f'no line with {pattern!r} in:\n{"".join(self.lines)}')

    def kill(self, node: str) -> None:
        os.kill(int(self.wait_for(rf'{node} \((\d+)\)')[1]), signal.SIGKILL)

    def end(self) -> int:
        code = self.process.wait(LIMIT)
        self.reader.join(LIMIT)
        return code

    def left_over(self) -> list[int]:
        """Return the processes of this demo that are still alive."""
        pids = [int(pid) for line in self.lines for pid in re.findall(r'(?:\w+ \(|process )(\d+)', line)]
        return [pid for pid in pids if Path(f'/proc/{pid}').exists()]


@pytest.fixture
def demo(tmp_path):
    running: list[Demo] = []

    def start(seconds: float) -> Demo:
        running.append(Demo(tmp_path / f'demo{len(running)}.png', seconds))
        return running[-1]

    yield start
    for each in running:
        if each.process.poll() is None:
            each.process.send_signal(signal.SIGINT)
            each.process.wait(60.0)


class Terminal(io.StringIO):
    """A screen that records its text."""

    def isatty(self) -> bool:
        return True


def test_what_is_said_does_not_stand_behind_the_live_line(monkeypatch):
    monkeypatch.setenv('COLUMNS', '20')
    terminal, file = Terminal(), io.StringIO()
    for screen in (Screen(terminal), Screen(file)):
        screen.show('tip here')
        screen.show('tip there, which is far away')
        screen.say('! node died')
        screen.say('failed')
    clear = '\x1b[K'
    assert terminal.getvalue() == (
        f'\rdemo: tip here{clear}\rdemo: tip there, wh{clear}\ndemo: ! node died\ndemo: failed\n'
    )
    assert file.getvalue().splitlines() == [
        'demo: tip here',
        'demo: tip there, which is far away',
        'demo: ! node died',
        'demo: failed',
    ]


def check_failed(demo: Demo, line: str) -> None:
    assert demo.end() == 1
    demo.wait_for(line)
    assert 'Traceback' not in ''.join(demo.lines)
    assert not demo.left_over()


def test_of_two_demos_at_once_one_loses_its_rig_and_the_other_a_bridge_that_comes_back(demo):
    whole, broken = demo(8.0), demo(30.0)
    whole.wait_for('figure of eight, ')
    whole.kill('ft_bridge')
    broken.wait_for('figure of eight, ')
    assert whole.process.poll() is None
    broken.kill('virtual_rig')
    check_failed(broken, r'failed: the launch ended with exit code 1: virtual_rig died \(.*exit code -9')
    assert whole.end() == 0, ''.join(whole.lines)
    whole.wait_for(r'! ft_bridge died \(.*exit code -9')
    whole.wait_for(r'! ft_bridge is back as process \d+')
    whole.wait_for(r'weight at rest 29\.\d+ N measured at the base, 29\.43 N from the robot file')
    whole.wait_for(r'task controller took over: \d+ ms between two commands')
    whole.wait_for(r'figure of eight +configuration +0 g +[\d.]+ mm')
    whole.wait_for(r'star +task +200 g +[\d.]+ mm')
    whole.wait_for(r'vented the arm in')
    whole.wait_for(r'done in .*exit code \d, no process is left')
    assert whole.picture.read_bytes().startswith(b'\x89PNG')
    assert 'virtual_rig died' not in ''.join(whole.lines)
    assert 'Traceback' not in ''.join(whole.lines)
    assert not whole.left_over()


def test_demo_without_the_controller_in_command_fails_in_one_line(demo):
    only = demo(30.0)
    only.wait_for('figure of eight, ')
    only.kill('configuration_controller')
    check_failed(only, r'failed: configuration_controller died and no controller is in command')
