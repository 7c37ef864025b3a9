"""The command `identify`: writes a new robot file beside the old one, never overwrites, one-line errors."""

from __future__ import annotations

import signal
import subprocess
import sys

import numpy as np
import pytest
from identification_truth import bending_recording, rectangle, wrong

from soft_dynamics.description.robot_description import load_description
from soft_dynamics.description.writer import write_description
from soft_dynamics.robot import Robot
from soft_estimation.commands.identify import main
from soft_estimation.identification.problem import Problem
from tools.made_bag import Rig, write_bag


@pytest.fixture
def lab(tmp_path):
    """A robot file with wrong springs, and a recording with the right ones."""
    truth = load_description('bending_actuator')
    write_description(tmp_path / 'arm.yaml', wrong(truth, stiffness=1.5, damping=0.7), 'Guessed.')
    r = bending_recording(truth)
    np.savez(tmp_path / 'run.npz', t=r.t, q=r.q, qd=r.qd, pressure=r.pressure)
    return tmp_path


def command(lab, *more):
    keys = ['--fit', '*.stiffness', '--fit', '*.damping', '--starts', '1']
    return main([str(lab / 'arm.yaml'), str(lab / 'run.npz'), *keys, *more])


def test_a_new_file_is_written_beside_the_old_one_and_not_twice(lab, capsys) -> None:
    before = (lab / 'arm.yaml').read_text()
    assert command(lab) == 0
    new = lab / 'arm_identified.yaml'
    assert load_description(new).segments[0].material.stiffness[0] == pytest.approx(1.6067, rel=0.02)
    text = new.read_text()
    assert text.startswith('# Guessed.')
    assert 'run.npz' in text
    assert (lab / 'arm.yaml').read_text() == before
    assert sorted(path.name for path in lab.iterdir()) == ['arm.yaml', 'arm_identified.yaml', 'run.npz']
    capsys.readouterr()
    assert command(lab) == 2
    assert 'exists already' in capsys.readouterr().err
    assert new.read_text() == text


@pytest.mark.parametrize(
    ('more', 'text'),
    [
        (['--fit', 'elbow.mass'], 'matches no number'),
        (['--window', '0'], 'window must be > 0'),
        (['--output', 'no/x.yaml'], 'no folder'),
        (['--seed', '-1'], 'seed must be >= 0, got -1'),
        (['--fit', 'valve_lag=1:inf'], "valve_lag: expected =low:high, got '1:inf'"),
    ],
)
def test_a_mistake_is_one_line(lab, capsys, more, text) -> None:
    assert command(lab, *more) == 2
    error = capsys.readouterr().err
    assert text in error
    assert error.count('\n') == 1


@pytest.mark.parametrize(
    ('more', 'text'),
    [
        (['--fit', 'elbow.mass'], 'matches no number'),
        (['--trials', '0'], 'trials must be >= 1'),
        (['--method', 'mehl'], 'method mehl always finds the parameters of its table'),
    ],
)
def test_what_needs_no_recording_is_told_before_one_is_read(lab, capsys, more, text) -> None:
    (lab / 'run.npz').unlink()
    assert command(lab, *more) == 2
    assert text in capsys.readouterr().err


def test_arrays_that_are_missing_are_named(lab, capsys) -> None:
    np.savez(lab / 'run.npz', t=np.arange(3.0))
    assert command(lab) == 2
    assert 'q, qd, pressure missing' in capsys.readouterr().err


@pytest.mark.parametrize(
    ('rows', 'arrays', 'text'),
    [
        (1, {}, 't: expected at least 2 times in a row, got shape (1,)'),
        (None, {'t': np.full(150, 'now')}, 't: expected numbers'),
        (None, {'t': np.arange(149) * 0.01}, 'q: expected 149 rows, got shape (150, 5); t has 149 times'),
        (None, {'qd': np.zeros((149, 5))}, 'qd: expected 150 rows, got shape (149, 5)'),
        (None, {'qd': np.zeros((150, 4))}, 'qd: expected 5 columns, got 4'),
        (None, {'wrench_B': np.zeros((150, 3))}, 'wrench_B: expected 6 columns, got 3'),
        (None, {'t': np.zeros(150)}, 't: expected rising times, got 0 s and then 0 s'),
    ],
)
def test_arrays_that_do_not_fit_are_one_line_with_the_file(lab, capsys, rows, arrays, text) -> None:
    with np.load(lab / 'run.npz') as file:
        whole = {name: file[name][:rows] for name in file.files}
    np.savez(lab / 'run.npz', **{**whole, **arrays})
    assert command(lab) == 2
    error = capsys.readouterr().err
    assert f'run.npz: {text}' in error
    assert error.count('identify: ') == 1


def test_a_damaged_file_of_arrays_is_one_line(lab, capsys) -> None:
    whole = (lab / 'run.npz').read_bytes()
    middle = len(whole) // 2
    for damaged in (b'', b'text', whole[:middle], whole[:middle] + b'\xff' * 9 + whole[middle + 9 :]):
        (lab / 'run.npz').write_bytes(damaged)
        assert command(lab) == 2
        error = capsys.readouterr().err
        assert 'run.npz: damaged, truncated or not a file of plain arrays' in error
        assert error.count('identify: ') == 1


@pytest.fixture(scope='module')
def bag(tmp_path_factory):
    """A bag of the right springs, from the fiber of the actuator, with noise."""
    robot = Robot(load_description('bending_actuator'))
    t = np.arange(0.0, 1.5, 2e-3)
    motion = robot.simulate(robot.rest, np.zeros(robot.nq), rectangle(t, 119e3), t, step=2e-3)
    streams = {'fiber': 100.0, 'pressure': 500.0}
    return write_bag(
        tmp_path_factory.mktemp('bags') / 'run', Rig(robot, motion, noise=1e-3), streams, streams
    )


def on_bag(lab, bag, *more):
    keys = ['--fit', '*.stiffness', '--fit', '*.damping', '--rate', '250', '--starts', '1']
    return main([str(lab / 'arm.yaml'), str(bag), *keys, *more])


def test_a_bag_gives_the_springs_and_dampers_it_was_made_with(lab, bag) -> None:
    assert on_bag(lab, bag) == 0
    (law, *_) = [segment.material for segment in load_description(lab / 'arm_identified.yaml').segments]
    assert law.stiffness[0] == pytest.approx(1.6067, rel=0.02)
    assert law.damping[0] == pytest.approx(0.008, rel=0.02)


def test_a_bag_that_had_to_be_finished_is_told(lab, bag, tmp_path, capsys) -> None:
    left = tmp_path / 'left'
    left.mkdir()
    (left / 'left_0.mcap').write_bytes((bag / 'run_0.mcap').read_bytes()[:-2000])
    on_bag(lab, left, '--end', 'nan')
    assert 'was not finished by its recorder' in capsys.readouterr().err


def test_a_bag_of_another_robot_is_refused_in_one_line(lab, bag, capsys) -> None:
    assert main(['pneumatic_arm', str(bag), '--output', str(lab / 'new.yaml')]) == 2
    error = capsys.readouterr().err
    assert 'no chamber' in error or 'has no' in error
    assert error.count('\n') == 1


@pytest.mark.parametrize(('method', 'trials'), [('least_squares', 1), ('jensen', 30), ('godage', 32)])
def test_an_interrupted_command_goes_on_where_it_was(lab, bag, capsys, monkeypatch, method, trials) -> None:
    """The second run evaluates the model less often than a fresh one."""
    more = ('--method', method, '--trials', str(trials), '--rate', '50', '--step', '0.01')
    calls, run = [0], Problem.run
    last = 0

    def counted(self, *args, **options):
        calls[0] += 1
        if calls[0] == last:
            raise KeyboardInterrupt
        return run(self, *args, **options)

    monkeypatch.setattr(Problem, 'run', counted)
    assert on_bag(lab, bag, *more, '--output', str(lab / 'whole.yaml')) == 0
    whole, calls[0] = calls[0], 0
    last = whole // 2
    assert on_bag(lab, bag, *more) == 130
    assert 'same command again' in capsys.readouterr().err
    calls[0], last = 0, 0
    assert on_bag(lab, bag, *more) == 0
    assert calls[0] < 0.9 * whole
    assert (lab / 'arm_identified.yaml').exists()
    assert not (lab / 'arm_identified.progress.json').exists()


KILLED = """
import os, signal, sys
from soft_estimation.identification.budget import Checkpoint
from soft_estimation.commands.identify import main
save = Checkpoint.save
def save_and_die(self, state):
    save(self, state)
    if state['generation'] == 5:
        os.kill(os.getpid(), signal.SIGKILL)
Checkpoint.save = save_and_die
main(sys.argv[1:])
"""


def test_a_killed_command_goes_on_where_it_was(lab, monkeypatch) -> None:
    """After SIGKILL the results remain, and the same command computes only what is missing."""
    keys = ['--fit', '*.stiffness', '--fit', '*.damping', '--step', '0.01']
    args = [str(lab / 'arm.yaml'), str(lab / 'run.npz'), *keys, '--method', 'godage', '--trials', '160']
    killed = subprocess.run([sys.executable, '-c', KILLED, *args], capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL
    names = sorted(path.name for path in lab.iterdir())
    assert names == ['arm.yaml', 'arm_identified.progress.json', 'run.npz']
    calls, error = [0], Problem.error

    def counted(self, *args, **options):
        calls[0] += 1
        return error(self, *args, **options)

    monkeypatch.setattr(Problem, 'error', counted)
    assert main(args) == 0
    resumed, calls[0] = calls[0], 0
    assert main([*args, '--output', str(lab / 'whole.yaml')]) == 0
    assert resumed < calls[0] - 4 * 16  # generations of 16 members; the fifth was evaluated twice
    assert not (lab / 'arm_identified.progress.json').exists()


def test_a_result_that_cannot_be_written_is_not_searched_again(lab, capsys, monkeypatch) -> None:
    calls, run = [0], Problem.run

    def counted(self, *args, **options):
        calls[0] += 1
        return run(self, *args, **options)

    def full(*_):
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(Problem, 'run', counted)
    with monkeypatch.context() as disk:
        disk.setattr('soft_dynamics.description.writer.write_new', full)
        assert command(lab) == 2
    assert 'No space left' in capsys.readouterr().err
    first, calls[0] = calls[0], 0
    assert command(lab) == 0
    assert calls[0] < 0.9 * first
    assert sorted(path.name for path in lab.iterdir()) == ['arm.yaml', 'arm_identified.yaml', 'run.npz']


def test_a_storage_that_cannot_be_used_is_one_line_without_its_password(lab, bag, capsys) -> None:
    storage = f'sqlite:////{lab}/no/folder/study.db'
    assert on_bag(lab, bag, '--method', 'jensen', '--storage', storage) == 2
    error = capsys.readouterr().err
    assert 'storage: cannot use' in error
    assert error.count('identify: ') == 1
    assert 'Traceback' not in error
    assert on_bag(lab, bag, '--method', 'jensen', '--storage', 'nonsense://me:secret@server/x') == 2
    error = capsys.readouterr().err
    assert 'nonsense://server/x' in error
    assert 'secret' not in error
    assert error.count('identify: ') == 1
    assert 'Traceback' not in error


def test_every_shipped_robot_survives_writing(tmp_path) -> None:
    from soft_dynamics import robot_names

    for name in robot_names():
        write_description(tmp_path / f'{name}.yaml', load_description(name), 'Copy.')
        assert load_description(tmp_path / f'{name}.yaml') == load_description(name)
