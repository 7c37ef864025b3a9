"""The recordings that an example reads: the option --data, and the way from a file to a recording of the suite."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

from soft_dynamics.robot import Robot
from soft_estimation.commands import import_recording
from soft_estimation.recordings.recording import Recording, read_recording


def add_data_option(parser: argparse.ArgumentParser, *files: str) -> None:
    """Add `--data FOLDER`, a folder that holds these files, gzipped or not."""
    parser.add_argument(
        '--data',
        required=True,
        metavar='FOLDER',
        type=folder_with(*files),
        help=f'folder with {" and ".join(files)}, gzipped or not; docs/real_data.md says where to get them',
    )


def folder_with(*files: str) -> Callable[[str], Path]:
    """Argparse type: a folder that holds these files."""

    def parse(text: str) -> Path:
        folder = Path(text)
        for name in files:
            if not file_in(folder, name).is_file():
                raise argparse.ArgumentTypeError(f'no file {name} or {name}.gz in {folder}')
        return folder

    return parse


def file_in(folder: Path, name: str) -> Path:
    """Return the path of a file, or of its gzipped form if that exists."""
    gzipped = folder / f'{name}.gz'
    return gzipped if gzipped.is_file() else folder / name


def imported(file: Path, mapping: str, robot: Robot, rate: float, bandwidth: float) -> Recording:
    """Convert a file to a bag with import_recording, as a user would, and read the bag."""
    with tempfile.TemporaryDirectory() as where:
        bag = Path(where) / 'bag'
        if import_recording.main([str(file), mapping, '--out', str(bag)]) != 0:
            raise ValueError(f'{file.name}: not imported')
        return read_recording(bag, robot, rate=rate, bandwidth=bandwidth)
