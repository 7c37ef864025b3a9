"""Render pictures without RViz, from the command line."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

import soft_dynamics as sd
from soft_dynamics.bags import BagWriter, SampleWriter, open_bag
from tools import render
from tools.made_bag import START_NS, Rig, driven, write_bag

STREAMS = ('state', 'pressure', 'wrench')


def inked(path: Path) -> np.ndarray:
    """Return where a picture is coloured, neither white nor grey."""
    pixels = plt.imread(path)[..., :3]
    return np.ptp(pixels, axis=2) > 0.15


def count_of(path: Path, color: str) -> int:
    """Return the pixels that have a colour."""
    wanted = np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)]) / 255.0
    return int(np.count_nonzero(np.abs(plt.imread(path)[..., :3] - wanted).max(axis=2) < 0.02))


@pytest.fixture(scope='module')
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A second of the honeycomb arm, with reference poses during its second half."""
    robot, folder = sd.load('honeycomb_arm'), tmp_path_factory.mktemp('bags')
    made = write_bag(folder / 'made', Rig(robot, driven(robot, 1.0)), STREAMS)
    with open_bag(made) as old, BagWriter(folder / 'run') as new:
        writer, given = SampleWriter(new), 0
        for message in old.messages():
            new.write(message.topic, message.msgtype, message.data, message.t_ns)
            if message.t_ns > START_NS + (500 + 50 * given) * 1_000_000:
                writer.pose('/reference/pose', message.t_ns, (0, 0, 0, 1), (0.3 - 0.05 * given, -0.2, 0.8))
                given += 1
    return folder / 'run'


def test_a_picture_shows_the_pose(tmp_path: Path) -> None:
    straight, bent = tmp_path / 'straight.png', tmp_path / 'bent.png'
    assert render.main(['honeycomb_arm', '--out', str(straight), '--pose', *['0'] * 8]) == 0
    assert render.main(['honeycomb_arm', '--out', str(bent), '--pose', *['0.5', '0'] * 4]) == 0
    narrow, wide = (np.ptp(np.flatnonzero(inked(p).any(axis=0))) for p in (straight, bent))
    assert inked(straight).sum() > 1000
    assert wide > 2 * narrow


def test_an_animation_moves(tmp_path: Path) -> None:
    out = tmp_path / 'swing.gif'
    arguments = ('bending_actuator', '--animate', '--out', str(out), '--duration', '0.3', '--fps', '10')
    assert render.main([*arguments]) == 0
    with Image.open(out) as film:
        assert film.n_frames == 3
        first = np.asarray(film.convert('RGB')).astype(int)
        film.seek(2)
        assert np.abs(np.asarray(film.convert('RGB')) - first).max() > 50


def test_a_recording_shows_prediction_reference_and_force(bag: Path, tmp_path: Path) -> None:
    def shown(*options: str) -> Path:
        out = tmp_path / f'{len(list(tmp_path.iterdir()))}.png'
        assert render.main(['honeycomb_arm', '--bag', str(bag), '--out', str(out), *options]) == 0
        return out

    before, after = shown('--at', '0.4'), shown('--at', '1.0')
    assert count_of(before, render.PATH) == 0
    assert count_of(after, render.PATH) > 100
    assert count_of(before, render.FORCE) > 100
    beside = shown('--at', '1.0', '--predicted-offset', '0.5', '0', '0')
    widths = [np.ptp(np.flatnonzero(inked(p).any(axis=0))) for p in (after, beside)]
    assert widths[1] > 1.5 * widths[0]


def test_an_animation_goes_through_the_recording(bag: Path, tmp_path: Path) -> None:
    out = tmp_path / 'run.gif'
    assert (
        render.main(['honeycomb_arm', '--bag', str(bag), '--animate', '--fps', '4', '--out', str(out)]) == 0
    )
    with Image.open(out) as film:
        assert film.n_frames == 4


def test_who_is_interrupted_leaves_no_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def interrupted(path: Path) -> None:
        path.write_bytes(b'half')
        raise KeyboardInterrupt

    monkeypatch.setattr(plt.Figure, 'savefig', lambda _, path, **__: interrupted(path))
    assert render.main(['honeycomb_arm', '--out', str(tmp_path / 'a.png')]) == 130
    assert not list(tmp_path.iterdir())
    assert capsys.readouterr().err == 'tools.render: interrupted\n'


@pytest.mark.parametrize(
    ('arguments', 'line'),
    [
        (('nobody',), "no robot 'nobody'"),
        (('honeycomb_arm', '--pose', '1'), '--pose: must have 8 numbers (segment1_theta1, '),
        (('honeycomb_arm', '--pressure', '1'), '--pressure: must have 16 numbers (segment1_p1, '),
        (('honeycomb_arm', '--bag', 'nowhere'), 'bag nowhere: does not exist'),
        (('honeycomb_arm', '--bag', 'BAG', '--at', '7'), '--at: must be 0 to 1 s (the recording), got 7'),
        (('pneumatic_arm', '--bag', 'BAG'), 'is not of pneumatic_arm'),
    ],
)
def test_mistakes_give_one_line(
    capsys: pytest.CaptureFixture[str], bag: Path, arguments: tuple[str, ...], line: str
) -> None:
    assert render.main([str(bag) if word == 'BAG' else word for word in arguments]) == 2
    message = capsys.readouterr().err.splitlines()[-1]
    assert line in message


@pytest.mark.parametrize('option', ['--fps', '--duration'])
def test_an_animation_takes_time(option: str) -> None:
    with pytest.raises(SystemExit) as refused:
        render.main(['honeycomb_arm', '--animate', option, '0'])
    assert refused.value.code == 2
