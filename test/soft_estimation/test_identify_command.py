"""The command `identify`: a new robot file beside the old, never over another, and one line for a mistake."""

from __future__ import annotations

import numpy as np
import pytest
from identification_truth import bending_recording, wrong

from soft_dynamics.description import load_description
from soft_dynamics.writer import write_description
from soft_estimation.identify import main


@pytest.fixture
def lab(tmp_path):
    """A robot file with wrong springs, and a recording of the right ones."""
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
        (['--fit', 'elbow.mass'], 'names no number'),
        (['--window', '0'], 'window must be > 0'),
        (['--output', 'no/x.yaml'], 'no folder'),
    ],
)
def test_a_mistake_is_one_line(lab, capsys, more, text) -> None:
    assert command(lab, *more) == 2
    error = capsys.readouterr().err
    assert text in error
    assert error.count('\n') == 1


def test_arrays_that_are_missing_are_named(lab, capsys) -> None:
    np.savez(lab / 'run.npz', t=np.arange(3.0))
    assert command(lab) == 2
    assert 'q, qd, pressure missing' in capsys.readouterr().err


def test_every_shipped_robot_survives_writing(tmp_path) -> None:
    from soft_dynamics import robot_names

    for name in robot_names():
        write_description(tmp_path / f'{name}.yaml', load_description(name), 'Copy.')
        assert load_description(tmp_path / f'{name}.yaml') == load_description(name)
