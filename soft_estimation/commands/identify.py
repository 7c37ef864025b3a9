"""Identify unknown parameters of a robot from recordings: `identify ROBOT RECORDING...` writes a new robot file.

A recording is a bag, or an .npz file with the arrays t, q, qd, pressure and optionally qdd and wrench_B. To resume an
interrupted search, give the same command again. Exit code: 0 if done, 2 for wrong input.
"""

from __future__ import annotations

import argparse
import sys
import zipfile
from dataclasses import fields, replace
from datetime import datetime, timezone
from pathlib import Path

import numpy as np

from soft_dynamics.bags import open_bag
from soft_dynamics.description.robot_files import robot_file
from soft_dynamics.description.writer import write_description
from soft_dynamics.robot import Robot, load

from ..identification.budget import Options
from ..identification.identify import METHODS, Identification, identify, problem_of, unknowns
from ..recordings.recording import SOURCES, Recording, read_recording
from .progress_bar import ProgressBar
from .run_command import run_command, say

LARGEST = 2**30  # [bytes] limit of the arrays in a file, which may be compressed


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog='identify', description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument(
        'robot',
        help='shipped robot, or the path of a robot file; the search starts from its values',
    )
    made.add_argument('recordings', nargs='+', type=Path, help='bags, or .npz files of arrays')
    made.add_argument(
        '--method',
        choices=METHODS,
        default='least_squares',
        help='; '.join(f'{name}: {method.summary}' for name, method in METHODS.items()),
    )
    made.add_argument(
        '--fit',
        action='append',
        default=[],
        metavar='KEY[=LOW:HIGH]',
        help='an unknown, like joint1.stiffness, *.damping, *_p0.gain[1] or valve_lag; * scales all matches by '
        'the same factor; repeatable; default: stiffness and damping of every segment',
    )
    made.add_argument(
        '--output', type=Path, help='new robot file; default: <robot>_identified.yaml next to the old one'
    )
    made.add_argument('--window', type=float, default=10.0, help='length of free runs [s]; default 10')
    made.add_argument(
        '--step',
        type=float,
        default=5e-3,
        help='step of the simulation [s]; default 0.005',
    )
    made.add_argument('--start', type=float, default=0.0, help='skip data before this time [s]')
    made.add_argument('--end', type=float, help='skip data after this time [s]')
    made.add_argument(
        '--rate',
        type=float,
        default=100.0,
        help='rate of the samples taken from bags [Hz]; default 100',
    )
    made.add_argument(
        '--source',
        choices=SOURCES,
        default='auto',
        help='source of the motion in bags; auto: state, or else poses',
    )
    made.add_argument(
        '--bandwidth',
        type=float,
        default=10.0,
        help='bandwidth for smoothing poses [Hz]; default 10',
    )
    for field in fields(Options):
        kind = type(field.default)
        text = f'{field.metadata["doc"]}' + (f'; default {field.default}' if field.default else '')
        made.add_argument(f'--{field.name}', type=kind, default=field.default, help=text)
    return made


def recordings_of(robot: Robot, options: argparse.Namespace) -> list[Recording]:
    found = []
    for k, path in enumerate(options.recordings):
        if path.suffix != '.npz':
            with open_bag(path, say):  # repairs the bag if needed, with a message
                pass
        with ProgressBar(f'reading {k + 1}/{len(options.recordings)}') as bar:
            if path.suffix == '.npz':
                recording = read_arrays(path, robot)
            else:
                recording = read_recording(path, robot, options.rate, options.source, options.bandwidth, bar)
        if options.start or options.end is not None:
            end = recording.duration if options.end is None else options.end
            recording = recording.part(options.start, end)
        found.append(recording)
    return found


def read_arrays(path: Path, robot: Robot) -> Recording:
    """Read a recording from an .npz file. Raises ValueError that names the file and the error."""
    if path.exists() and not path.is_file():
        raise ValueError(f'{path}: expected a plain file, found a pipe, device or folder')
    arrays = {}
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(part.file_size for part in archive.infolist())
        if size <= LARGEST:
            with np.load(path) as file:
                arrays = {name: file[name] for name in file.files}
    except OSError:
        raise
    except Exception:  # a damaged file makes NumPy raise various errors
        raise ValueError(f'{path}: damaged, truncated or not a file of plain arrays') from None
    if size > LARGEST:
        raise ValueError(f'{path}: expected arrays of at most {LARGEST} bytes, found {size}')
    missing = [name for name in ('t', 'q', 'qd', 'pressure') if name not in arrays]
    if missing:
        raise ValueError(f'{path}: expected the arrays t, q, qd, pressure; {", ".join(missing)} missing')
    known = {name: arrays[name] for name in ('t', 'q', 'qd', 'qdd', 'pressure', 'wrench_B') if name in arrays}
    try:  # qd stands in for accelerations until the check for them
        recording = Recording(robot.name, **{'qdd': known['qd'], **known})
    except ValueError as error:
        raise ValueError(f'{path}: {error}') from None
    if 'qdd' in known:
        return recording
    return replace(recording, qdd=np.gradient(recording.qd, recording.t, axis=0))


def text_of(robot: Robot, found: Identification) -> str:
    """Return the table of results."""
    width = max(len(parameter.key) for parameter in found.parameters)
    lines = [f'{"unknown":<{width}}  {"found":>11}  {"std":>9}  {"in the file":>11}']
    for parameter, value, std in zip(found.parameters, found.values, found.uncertainty.std, strict=True):
        lines.append(f'{parameter.key:<{width}}  {value:11.5g}  {std:9.2g}  {parameter.shown:11.5g}')
    lines.append('')
    lines.append(f'{"free-run rms":<{width}}  {"found":>11}  {"":>9}  {"in the file":>11}')
    for name, now, before in zip(robot.coordinate_names, found.error, found.before, strict=True):
        lines.append(f'{name:<{width}}  {now:11.4g}  {"":>9}  {before:11.4g}')
    return '\n'.join(lines)


def comment_of(old: Path, found: Identification, options: argparse.Namespace) -> str:
    """Return the head of the new robot file: the old file's head, then this search."""
    head = []
    for line in old.read_text(encoding='utf-8').splitlines():
        if not line.startswith('#'):
            break
        head.append(line.lstrip('# '))
    today = datetime.now(timezone.utc).date()
    names = ', '.join(path.name for path in options.recordings)
    head += ['', f'Identified {today} from {old.name} by `identify --method {found.method}` on {names}:']
    for parameter, value, std in zip(found.parameters, found.values, found.uncertainty.std, strict=True):
        head.append(f'  {parameter.key} = {value:.6g} +- {std:.2g} (was {parameter.shown:.6g})')
    return '\n'.join([*head, *(f'  warning: {line}' for line in found.uncertainty.warnings)])


def command(options: argparse.Namespace) -> int:
    old = robot_file(options.robot)
    robot = load(old)
    beside = old.parent if Path(options.robot).suffix in ('.yaml', '.yml') else Path()
    output: Path = options.output or beside / f'{old.stem}_identified.yaml'
    if output.exists():
        raise FileExistsError(f'{output} exists already; name another --output')
    if not output.parent.is_dir():
        raise ValueError(f'--output: no folder {output.parent}')
    settings = {field.name: getattr(options, field.name) for field in fields(Options)}
    if options.method == 'jensen' and not options.storage:
        settings['storage'] = f'sqlite:///{output.with_suffix(".optuna.db")}'
    budget = Options(**settings)
    unknowns(robot.description, options.method, options.fit)  # reject it before reading a bag
    progress = output.with_suffix('.progress.json')
    recordings = recordings_of(robot, options)
    problem = problem_of(
        robot.description, recordings, options.method, options.fit, window=options.window, step=options.step
    )
    try:
        with ProgressBar('searching') as bar:
            found = identify(
                problem,
                options.method,
                budget,
                lambda part, note: bar(part),
                progress,
            )
    except KeyboardInterrupt:
        say('identify: give the same command again to resume')
        raise
    write_description(output, found.description, comment_of(old, found, options))
    progress.unlink(missing_ok=True)
    print(text_of(robot, found))
    for line in found.uncertainty.warnings:
        say(f'warning: {line}')
    print(f'written: {output}')
    return 0


def main(args: list[str] | None = None) -> int:
    return run_command('identify', parser(), command, args)


if __name__ == '__main__':
    sys.exit(main())
