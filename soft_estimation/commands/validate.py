"""Check a robot's model against a bag: `validate BAG ROBOT` prints tables and writes an HTML report.

The model runs on the measured pressures from the measured start and is compared with the measured state.
Exit code: 0 if done and within every --threshold, 1 if not within, 2 for wrong input.
"""

from __future__ import annotations

import argparse
import re
import sys
from importlib.util import find_spec
from pathlib import Path

from soft_dynamics.atomic_files import write_whole
from soft_dynamics.bags import open_bag
from soft_dynamics.robot import load

from ..recordings.recording import SOURCES, read_recording
from ..validation.free_run import Statistics, Validation, moving, validate
from ..validation.report import html_report, text_report
from .progress_bar import ProgressBar
from .run_command import run_command, say

UNITS = {'rad': ('rad', 1.0), 'deg': ('rad', 0.017453292519943295), 'm': ('m', 1.0), 'mm': ('m', 1e-3)}
STATISTICS = ('mean', 'median', 'max', 'rmse')


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog='validate', description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument('bag', help='folder of the bag, or a .mcap or .db3 file')
    made.add_argument('robot', help='shipped robot, or the path of a robot file')
    made.add_argument(
        '--horizon',
        type=float,
        default=0.1,
        help='length of predictions ahead [s]; default 0.1',
    )
    made.add_argument('--start', type=float, default=0.0, help='skip data before this time [s]')
    made.add_argument('--end', type=float, help='skip data after this time [s]')
    made.add_argument('--rate', type=float, default=100.0, help='rate of the grid [Hz]; default 100')
    made.add_argument(
        '--source',
        choices=SOURCES,
        default='auto',
        help='source of the state; auto: state, or else poses',
    )
    made.add_argument(
        '--bandwidth',
        type=float,
        default=10.0,
        help='bandwidth for smoothing poses [Hz]; default 10',
    )
    made.add_argument(
        '--threshold',
        action='append',
        default=[],
        metavar='VALUE[UNIT]',
        help='fail if a total is larger; with a unit (rad, deg, m, mm) only the total of that kind; repeatable',
    )
    made.add_argument(
        '--statistic', choices=STATISTICS, default='median', help='statistic to compare; default median'
    )
    made.add_argument(
        '--of',
        choices=('free', 'ahead'),
        default='free',
        help='run to compare; default free',
    )
    made.add_argument(
        '--report',
        type=Path,
        metavar='HTML',
        help='report file; default: <bag>_<robot>.html in the current folder',
    )
    made.add_argument('--no-report', action='store_true', help='print only the tables')
    return made


def thresholds(texts: list[str]) -> list[tuple[str, float]]:
    """Return (unit or '', limit in SI) of each --threshold."""
    found = []
    for text in texts:
        match = re.fullmatch(r'([-+.\deE]+)\s*(rad|deg|mm|m)?', text)
        try:
            value = float(match[1]) if match else -1.0
        except ValueError:
            value = -1.0
        if not match or not 0.0 <= value < float('inf'):
            raise ValueError(
                f'--threshold: expected a number >= 0 with rad, deg, m, mm or no unit, got {text!r}'
            )
        unit, scale = UNITS[match[2]] if match[2] else ('', 1.0)
        found.append((unit, scale * value))
    return found


def judge(validation: Validation, options: argparse.Namespace) -> tuple[bool, str] | None:
    """Return (passed, why) by the thresholds; None if there are none."""
    limits = thresholds(options.threshold)
    if not limits:
        return None
    prediction = validation.free if options.of == 'free' else validation.ahead
    run = 'free run' if options.of == 'free' else f'{validation.horizon:g} s ahead'
    if prediction.stopped:
        return False, f'{run}: {prediction.stopped}'
    totals = [row for row in prediction.table if row.name == 'total']
    verdicts: list[tuple[Statistics, float, float]] = []
    for unit, limit in limits:
        chosen = [row for row in totals if unit in ('', row.unit)]
        verdicts += [(row, getattr(row, options.statistic), limit) for row in chosen]
    text = ', '.join(
        f'{value:.4g} {row.unit} {"<=" if value <= limit else ">"} {limit:.4g}'
        for row, value, limit in verdicts
    )
    return all(value <= limit for _, value, limit in verdicts), f'{run}, {options.statistic} error: {text}'


def command(options: argparse.Namespace) -> int:
    robot = load(options.robot)
    units = {robot.coordinate_units[k] for k in moving(robot)}
    for unit, _ in thresholds(options.threshold):
        if unit and unit not in units:
            raise ValueError(f'--threshold: {robot.name} has no coordinate in {unit}, only in {units.pop()}')
    bag = Path(options.bag)
    report: Path = options.report or Path(f'{bag.resolve().stem}_{robot.name}.html')
    if not report.parent.is_dir():
        raise ValueError(f'--report: no folder {report.parent}')
    if not options.no_report and find_spec('matplotlib') is None:
        raise ValueError("the report needs matplotlib: pip install 'soft-robot-suite[bags]', or --no-report")
    with open_bag(bag, say):
        pass
    with ProgressBar('reading') as bar:
        recording = read_recording(bag, robot, options.rate, options.source, options.bandwidth, bar)
    if options.start or options.end is not None:
        recording = recording.part(options.start, recording.duration if options.end is None else options.end)
    with ProgressBar('simulating') as bar:
        validation = validate(robot, recording, options.horizon, bar)
    verdict = judge(validation, options)
    print(text_report(robot, validation))
    if not options.no_report:
        write_whole(report, html_report(robot, validation, bag.name, verdict))
        print(f'report: {report}')
    if verdict is not None:
        print(f'{"passed" if verdict[0] else "failed"}: {verdict[1]}')
    return 0 if verdict is None or verdict[0] else 1


def main(args: list[str] | None = None) -> int:
    return run_command('validate', parser(), command, args)


if __name__ == '__main__':
    sys.exit(main())
