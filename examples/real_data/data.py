"""Where the recordings of real robots are, and how they become recordings of the suite."""

from __future__ import annotations

import tempfile
from pathlib import Path

from soft_dynamics.robot import Robot
from soft_estimation.commands import import_recording
from soft_estimation.recordings.recording import Recording, read_recording

SHARED = Path(__file__).resolve().parents[3] / 'shared' / 'data'


def folder(name: str) -> Path:
    """The folder of one robot. Raises FileNotFoundError that says what is missing."""
    path = SHARED / name
    if not path.is_dir():
        raise FileNotFoundError(f'no recordings of {name}: expected them in {path}')
    return path


def imported(file: Path, mapping: str, robot: Robot, rate: float, bandwidth: float) -> Recording:
    """A recording by way of a bag, as a user would make it: import_recording, then read_recording."""
    with tempfile.TemporaryDirectory() as where:
        bag = Path(where) / 'bag'
        if import_recording.main([str(file), mapping, '--out', str(bag)]) != 0:
            raise ValueError(f'{file.name}: not imported')
        return read_recording(bag, robot, rate=rate, bandwidth=bandwidth)
