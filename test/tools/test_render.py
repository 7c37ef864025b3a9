"""Pictures without RViz, from the command line."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

from tools import render


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, 'argv', ['render', *arguments])
    return render.main()


def inked(path: Path) -> np.ndarray:
    """Where a picture is coloured, and not white or grey."""
    pixels = plt.imread(path)[..., :3]
    return np.ptp(pixels, axis=2) > 0.15


def test_a_picture_shows_the_pose(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    straight, bent = tmp_path / 'straight.png', tmp_path / 'bent.png'
    assert run(monkeypatch, 'honeycomb_arm', '--out', str(straight), '--pose', *['0'] * 8) == 0
    assert run(monkeypatch, 'honeycomb_arm', '--out', str(bent), '--pose', *['0.5', '0'] * 4) == 0
    narrow, wide = (np.ptp(np.flatnonzero(inked(p).any(axis=0))) for p in (straight, bent))
    assert inked(straight).sum() > 1000
    assert wide > 2 * narrow


def test_an_animation_moves(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    out = tmp_path / 'swing.gif'
    arguments = ('bending_actuator', '--animate', '--out', str(out), '--duration', '0.3', '--fps', '10')
    assert run(monkeypatch, *arguments) == 0
    with Image.open(out) as film:
        assert film.n_frames == 3
        first = np.asarray(film.convert('RGB')).astype(int)
        film.seek(2)
        assert np.abs(np.asarray(film.convert('RGB')) - first).max() > 50


@pytest.mark.parametrize(
    ('arguments', 'line'),
    [
        (('nobody',), "no robot 'nobody'"),
        (('honeycomb_arm', '--pose', '1'), '--pose: expected 8 numbers (segment1_theta1, '),
    ],
)
def test_mistakes_give_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], line: str
) -> None:
    assert run(monkeypatch, *arguments) == 1
    (message,) = capsys.readouterr().err.splitlines()
    assert line in message
