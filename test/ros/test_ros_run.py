"""Start and stop of a node process."""

from __future__ import annotations

import os
import re
import signal
import threading
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import rclpy
from ros.nodes_for_test import example
from source_tree import PACKAGES, ROOT
from std_msgs.msg import String

from soft_dynamics.ros import node_main, realtime
from soft_dynamics.ros.qos import DESCRIPTION
from soft_dynamics.ros.realtime import raise_priority

EXAMPLE = 'ros.nodes_for_test.example'
NODES = [
    module
    for package in PACKAGES
    for module in re.findall(r'= (\S+\.nodes\.\S+):main', (ROOT / package / 'setup.cfg').read_text())
]


def wait_until_up(client: Any) -> None:
    shown = client.collect(String, 'config', DESCRIPTION)
    client.spin_until(lambda: shown, 'config of the example node')


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_node_without_a_word(ros_process: Any, ros_client_node: Any, number: int) -> None:
    process = ros_process(EXAMPLE)
    wait_until_up(ros_client_node)
    assert process.stop(number) == 0
    assert (process.stdout, process.stderr) == ('', '')


@pytest.mark.parametrize(('before', 'ends'), [(lambda *_: None, True), (signal.SIG_IGN, False)])
def test_a_closed_terminal_ends_the_node_unless_started_with_nohup(before: Any, ends: bool) -> None:
    previous = signal.signal(signal.SIGHUP, before)
    try:
        with node_main._StopSignals() as stop:
            stop.interrupts = False
            signal.raise_signal(signal.SIGHUP)
        assert stop.requested is ends
        assert signal.getsignal(signal.SIGHUP) is before
    finally:
        signal.signal(signal.SIGHUP, previous)


@pytest.mark.parametrize('name', NODES)
def test_help_says_what_a_node_is_for_and_explains_every_parameter(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv('COLUMNS', '1000')
    monkeypatch.setattr(rclpy, 'init', None)
    module = import_module(name)
    assert module.main([name, '--help']) == 0
    usage, purpose, parameters = capsys.readouterr().out.split('\n\n')
    assert '--ros-args -p name:=value' in usage
    assert purpose == ' '.join(module.__doc__.split('\n\n')[0].split())
    rows = re.findall(r'^  (\S.*?)(?:  |\n)\s*(.*)$', parameters, re.MULTILINE)
    assert (
        'realtime_priority:=0',
        'an integer: real-time priority of all threads (SCHED_FIFO), 1 to 99; 0: normal',
    ) in rows
    assert len(rows) > 3
    assert [left for left, right in rows if not re.search(r': \S', right)] == []  # without a doc


def test_help_shows_types_defaults_and_units(capsys: pytest.CaptureFixture[str]) -> None:
    assert example.main(['example', '--ros-args', '-p', 'rate:=3.0', '--help']) == 0
    shown = ' '.join(capsys.readouterr().out.split())
    assert ' rate:=100.0 a number: samples per second [Hz] ' in shown
    assert ' gains:=[1.0, 2.0] a list of numbers: ' in shown
    assert ' limits.high:=2.0 a number: ' in shown


def test_a_signal_while_the_node_is_being_made_ends_it(ros_process: Any, ros_client_node: Any) -> None:
    process = ros_process('ros.nodes_for_test.awkward', env={'AWKWARD': 'slow to start'})
    ros_client_node.spin_until(lambda: 'starting' in process.stdout, 'start')
    assert process.stop(signal.SIGTERM) == 0
    assert process.stderr == ''


def test_repeated_signals_do_not_cut_the_way_down_short(ros_process: Any, ros_client_node: Any) -> None:
    """A terminal and a launcher may both send SIGINT."""
    process = ros_process('ros.nodes_for_test.awkward', env={'AWKWARD': 'slow to stop'})
    ros_client_node.spin_until(lambda: 'running' in process.stdout, 'start')
    process.process.send_signal(signal.SIGINT)
    ros_client_node.spin_until(lambda: 'stopping' in process.stdout, 'way down')
    assert process.stop(signal.SIGINT) == 0
    assert process.stdout.split() == ['running', 'stopping', 'stopped']


def test_an_end_that_never_comes_is_cut_off_and_says_where(ros_process: Any, ros_client_node: Any) -> None:
    process = ros_process('ros.nodes_for_test.awkward', env={'AWKWARD': 'never stops'})
    ros_client_node.spin_until(lambda: 'running' in process.stdout, 'start')
    assert process.stop(signal.SIGTERM) == 1
    assert 'Timeout' in process.stderr
    assert 'destroy_node' in process.stderr


def test_a_bug_in_a_callback_shows_its_traceback_and_still_goes_down_safely(ros_process: Any) -> None:
    process = ros_process('ros.nodes_for_test.awkward', env={'AWKWARD': 'buggy'})
    assert process.wait() == 1
    assert 'ZeroDivisionError' in process.stderr
    assert process.stdout.split() == ['running', 'stopping', 'stopped']


def test_a_callback_can_end_the_node_with_an_exit_code(ros_process: Any) -> None:
    process = ros_process('ros.nodes_for_test.awkward', env={'AWKWARD': 'finishes'})
    assert process.wait() == 3
    assert process.stdout.split() == ['running', 'stopping', 'stopped']
    assert process.stderr == ''


def test_a_start_that_fails_after_the_node_was_made_destroys_it(ros_process: Any) -> None:
    process = ros_process('ros.nodes_for_test.awkward', env={'AWKWARD': 'refused late'})
    assert process.refusal().endswith('cannot start: no such device')
    assert process.stdout.split() == ['stopping', 'stopped']


def test_no_thread_is_left(ros_process: Any) -> None:
    process = ros_process('ros.nodes_for_test.awkward', env={'AWKWARD': 'counts threads'})
    assert process.wait() == 0
    assert process.stdout.split()[-1] == 'MainThread'


def test_real_time_priority_is_taken_by_all_threads_or_its_refusal_told(
    ros_process: Any, ros_client_node: Any
) -> None:
    process = ros_process(EXAMPLE, {'realtime_priority': 3})
    wait_until_up(ros_client_node)
    ros_client_node.spin_until(
        lambda: (
            priorities(process.process.pid) == {3} or 'realtime_priority 3 is not allowed' in process.stderr
        ),
        'the priority',
    )
    assert process.stop() == 0


def test_a_priority_that_does_not_exist_is_one_line(ros_process: Any) -> None:
    assert 'realtime_priority' in ros_process(EXAMPLE, {'realtime_priority': 200}).refusal()


def test_a_thread_that_ends_meanwhile_needs_no_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    raised = []

    def set_scheduler(thread: int, *_: Any) -> None:
        if thread == os.getpid():
            raise ProcessLookupError(3, 'No such process')
        raised.append(thread)

    monkeypatch.setattr(os, 'sched_setscheduler', set_scheduler)
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        raise_priority(5)
    finally:
        stop.set()
        thread.join()
    assert thread.native_id in raised


@pytest.mark.parametrize('can_wait', [False, True])
def test_a_node_that_can_wait_takes_one_less(monkeypatch: pytest.MonkeyPatch, can_wait: bool) -> None:
    taken: list[int] = []
    monkeypatch.setattr(realtime, 'raise_priority', taken.append)
    monkeypatch.setattr(realtime, 'keep_awake', lambda: None)
    node = SimpleNamespace(can_wait=can_wait, has_parameter=lambda _: True)
    node.get_parameter = lambda _: SimpleNamespace(value=20)
    realtime.take_priority(node)
    assert taken == [20 - can_wait]


def test_computers_that_may_not_be_kept_awake_do_no_harm(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(realtime, '_WAKE_UP_LIMIT', tmp_path / 'none')
    realtime.keep_awake()
    limit = tmp_path / 'limit'
    limit.touch()
    monkeypatch.setattr(realtime, '_WAKE_UP_LIMIT', limit)
    realtime.keep_awake()
    assert limit.read_bytes() == bytes(4)


def priorities(pid: int) -> set[int]:
    """Real-time priorities of the threads of a process."""
    threads = [int(thread.name) for thread in Path(f'/proc/{pid}/task').iterdir()]
    return {os.sched_getparam(thread).sched_priority for thread in threads}
