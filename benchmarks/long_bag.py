"""Time `validate` on a bag of ten minutes with all topics.

python -m benchmarks.long_bag [--robot honeycomb_arm] [--seconds 600] [--source state poses]

The bag is simulated and deleted afterwards. The whole command is timed: start, reading, runs, figures, report.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import soft_dynamics as sd
from soft_dynamics.bags import open_bag
from soft_estimation.recordings.recording import SOURCES
from tools.made_bag import Rig, driven, write_bag

STREAMS = ('state', 'pressure', 'poses', 'wrench', 'fiber')
LIMIT = 30.0  # [s] of wall time, for 600 s of motion


class Times(NamedTuple):
    """[s]"""

    wall: float
    cpu: float


def made(path: Path, robot: sd.Robot, seconds: float) -> Path:
    """Write a bag of the robot's sensors, pressures and state."""
    has_ft = any(sensor.kind == 'ft' for sensor in robot.description.sensors)
    streams = [stream for stream in STREAMS if stream != 'wrench' or has_ft]
    return write_bag(path, Rig(robot, driven(robot, seconds, 200.0), noise=1e-3), streams)


def timed(bag: Path, robot: str, source: str) -> Times:
    """Run `validate` in a process of its own. Raises CalledProcessError if it fails."""
    command = [sys.executable, '-m', 'soft_estimation.commands.validate', str(bag), robot, '--source', source]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [*command, '--report', str(bag.with_suffix('.html'))], check=True, stdout=subprocess.DEVNULL
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Times(wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def main(args: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or '').partition('\n')[0])
    parser.add_argument('--robot', default='honeycomb_arm', help='shipped robot or path of a robot file')
    parser.add_argument('--seconds', type=float, default=600.0, help='length of the motion [s]; default 600')
    parser.add_argument('--source', nargs='+', choices=SOURCES, default=['state', 'poses'])
    options = parser.parse_args(args)
    with tempfile.TemporaryDirectory() as folder:
        path = made(Path(folder) / 'run', sd.load(options.robot), options.seconds)
        with open_bag(path) as bag:
            count, topics = sum(bag.counts.values()), len(bag.counts)
        size = sum(file.stat().st_size for file in path.iterdir())
        print(
            f'{options.seconds:g} s of {options.robot}: {topics} topics, {count} messages, {size / 1e6:.0f} MB'
        )
        for source in options.source:
            wall, cpu = timed(path, options.robot, source)
            print(f'--source {source}: {wall:.1f} s, {cpu:.1f} s of processor time; limit {LIMIT:g} s')


if __name__ == '__main__':
    main()
