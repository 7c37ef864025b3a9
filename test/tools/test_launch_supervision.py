"""tools/launch.py supervises its nodes and leaves no process behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from launch_workspace import LAUNCH, PATIENCE, Workspace, is_running, node, reports, wait_until


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def test_output_is_relayed_line_by_line_with_the_name_of_the_process(workspace: Workspace) -> None:
    quiet = '<node pkg="fake_robot" exec="listener" args="--say quiet --exit 0"/>'
    file = workspace.write(node('--say loud --exit 0'), quiet)
    lines = workspace.run(file).stdout.splitlines()
    assert {'[talker-1] loud to stdout', '[talker-1] loud to stderr', '[listener-2] quiet to stderr'} <= set(
        lines
    )
    assert '[listener-2] quiet to stdout' not in lines
    assert '[listener-2] quiet to stdout' in workspace.run(file, '--show-all').stdout.splitlines()


def test_long_lines_and_an_unfinished_last_line_arrive_whole(workspace: Workspace) -> None:
    script = workspace.prefix / 'lib' / 'fake_robot' / 'writer'
    script.write_text('#!/bin/sh\nhead -c 300000 /dev/zero | tr "\\0" x\nprintf "\\nlast words"\n')
    script.chmod(0o755)
    result = workspace.run(workspace.write('<node pkg="fake_robot" exec="writer" output="screen"/>'))
    lines = result.stdout.splitlines()
    assert lines[1:3] == ['[writer-1] ' + 'x' * 300000, '[writer-1] last words']
    assert 'finished cleanly' in lines[3]


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_all_nodes_cleanly(workspace: Workspace, number: signal.Signals) -> None:
    with workspace.start(workspace.write(node(), node())) as running:
        pids = [report['pid'] for report in running.reports(2).values()]
        assert running.stop(number) == 0
    assert not any(map(is_running, pids))
    for label in ('talker-1', 'talker-2'):
        assert f'[{label}] interrupted' in running.output
        assert f'[INFO] [{label}]: process has finished cleanly' in running.output
    assert list(workspace.temporary.iterdir()) == []


def test_a_node_that_ignores_sigint_gets_sigterm(workspace: Workspace) -> None:
    with workspace.start(workspace.write(node('--ignore INT')), 'sigterm_timeout:=0.2') as running:
        running.reports(1)
        assert running.stop() == 0
    assert (
        "failed to terminate '0.2' seconds after receiving 'SIGINT', escalating to 'SIGTERM'"
        in running.output
    )
    assert 'exit code -15' in running.output


def test_a_node_that_ignores_all_is_killed_and_counts_as_failed(workspace: Workspace) -> None:
    attributes = 'sigterm_timeout="0.2" sigkill_timeout="0.2"'
    with workspace.start(workspace.write(node('--ignore INT,TERM', attributes))) as running:
        running.reports(1)
        assert running.stop() == 1
    assert "escalating to 'SIGKILL'" in running.output
    assert 'exit code -9' in running.output


def test_what_a_node_started_ends_with_it(workspace: Workspace) -> None:
    with workspace.start(workspace.write(node('--child')), 'sigterm_timeout:=0.2') as running:
        child = running.reports(1)['talker-1']['child']
        assert is_running(child)
        assert running.stop() == 0
    assert not is_running(child)
    assert "sending signal 'SIGTERM' to the child processes of process[talker-1]" in running.output


def test_nodes_end_even_if_the_runner_is_killed(workspace: Workspace) -> None:
    with workspace.start(workspace.write(node(), node())) as running:
        pids = [report['pid'] for report in running.reports(2).values()]
        running.stop(signal.SIGKILL)
    wait_until(lambda: not any(map(is_running, pids)))


def test_nodes_end_when_nobody_reads_the_output(workspace: Workspace) -> None:
    file = workspace.write(
        node(attributes='respawn="true"'), node('--exit 0', 'respawn="true" respawn_delay="0.1"')
    )
    runner = subprocess.Popen(
        [*LAUNCH, file], env=workspace.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert runner.stdout is not None
        runner.stdout.readline()
        runner.stdout.close()
        _, errors = runner.communicate(timeout=PATIENCE)
        assert (runner.returncode, errors) == (0, b'')
    finally:
        runner.kill()


def test_a_node_that_dies_is_reported_and_the_others_go_on(workspace: Workspace) -> None:
    with workspace.start(workspace.write(node('--exit 3'), node())) as running:
        reports = running.reports(2)
        wait_until(lambda: 'has died' in running.output)
        assert is_running(reports['talker-2']['pid'])
        assert running.stop() == 1
    command = f'{workspace.prefix}/lib/fake_robot/talker --exit 3 --ros-args'
    report = (
        rf"\[ERROR\] \[talker-1\]: process has died \[pid \d+, exit code 3, cmd '{re.escape(command)}'\]\."
    )
    assert re.search(report, running.output)


def test_a_killed_node_is_reported_with_the_signal(workspace: Workspace) -> None:
    with workspace.start(workspace.write(node())) as running:
        os.kill(running.reports(1)['talker-1']['pid'], signal.SIGKILL)
        assert running.process.wait(PATIENCE) == 1
    assert 'exit code -9' in running.output


@pytest.mark.parametrize('code', [0, 3])
def test_the_end_of_a_required_node_ends_all(workspace: Workspace, code: int) -> None:
    result = workspace.run(workspace.write(node(), node(f'--exit {code}', 'on_exit="shutdown"')))
    assert '[INFO] [launch]: process[talker-2] was required: shutting down launched system' in result.stdout
    assert "[INFO] [talker-1]: sending signal 'SIGINT' to process[talker-1]" in result.stdout
    assert re.search(r'\[talker-1\]: process has (finished|died)', result.stdout)
    assert result.returncode == (1 if code else 0)


def test_a_node_is_started_again_as_often_as_allowed(workspace: Workspace) -> None:
    result = workspace.run(
        workspace.write(node('--exit 4', 'respawn="true" respawn_delay="0.05" respawn_max_retries="2"'))
    )
    assert result.stdout.count('process started with pid') == 3
    assert result.returncode == 1


def test_a_crash_that_respawn_repairs_is_no_failure(workspace: Workspace) -> None:
    with workspace.start(workspace.write(node(attributes='respawn="true"'))) as running:
        first = running.reports(1)['talker-1']['pid']
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: reports(running.output)['talker-1']['pid'] != first)
        assert running.stop() == 0


def test_nothing_more_is_started_if_a_required_node_cannot_be(workspace: Workspace) -> None:
    required = node('--exit 0', 'launch-prefix="/nowhere/gdb" on_exit="shutdown"')
    result = workspace.run(workspace.write(required, node()))
    assert 'process[gdb-1] was required' in result.stdout
    assert 'talker-2' not in result.stdout
    assert result.returncode == 1


def test_a_program_that_cannot_start_is_a_failure(workspace: Workspace) -> None:
    result = workspace.run(
        workspace.write(node('--exit 0', 'launch-prefix="/nowhere/gdb"'), node('--exit 0'))
    )
    assert '[ERROR] [gdb-1]: cannot start /nowhere/gdb' in result.stdout
    assert '[INFO] [talker-2]: process has finished cleanly' in result.stdout
    assert (result.returncode, result.stderr) == (1, '')
