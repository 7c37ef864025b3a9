"""Make a bag from a recording in another format: `import_recording FILE MAPPING` reads CSV (also gzipped) and c3d.

A mapping is a small YAML file that assigns a meaning and a unit to each column or marker: see docs/check.md.
Exit code: 0 if the bag was written, 2 for an error in file, mapping or arguments.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from soft_dynamics.bags import STORAGES
from soft_dynamics.robot import Robot, load

from ..importing import ImportTrouble, Mapping, convert, load_mapping, mapping_names, read_table, write_bag
from ..importing.mapping import PRESSURE_UNITS, Pose, Pressures
from ..importing.tables import Table
from .progress_bar import ProgressBar
from .run_command import run_command

TOO_MUCH = 2.0  # times the largest pressure of a robot; beyond it the unit is wrong


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog='import_recording', description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument('file', type=Path, help='recording: .csv, .txt, either .gz, or .c3d')
    made.add_argument('mapping', help=f'path of a .yaml file, or a shipped one: {", ".join(mapping_names())}')
    made.add_argument(
        '--out',
        type=Path,
        help='folder of the new bag; default: named after the file, in the current folder',
    )
    made.add_argument('--storage', choices=sorted(STORAGES), default='mcap')
    made.add_argument('--robot', help='check its chambers, sensors and pressures against this robot')
    return made


def check_robot(robot: Robot, mapping: Mapping, table: Table) -> None:
    """Raise ImportTrouble for a chamber or sensor that the robot does not have, or an impossible pressure."""
    poses = {f'{s.kind}/{s.name}/pose' for s in robot.description.sensors if s.kind in ('mocap', 'vive')}
    for topic in mapping.topics:
        if isinstance(topic, Pose) and topic.topic.lstrip('/') not in poses:
            have = ', '.join(sorted(poses)) or 'no tracked body'
            raise ImportTrouble(table.path, f'{topic.topic} is not a sensor of {robot.name}; it has {have}')
        if isinstance(topic, Pressures) and 'measured' in topic.topic:
            strange = [name for name in topic.chambers if name not in robot.chamber_names]
            if strange:
                have = ', '.join(robot.chamber_names) or 'none'
                raise ImportTrouble(
                    table.path, f'{strange[0]} is not a chamber of {robot.name}; it has {have}'
                )
            largest = (
                abs(table.columns(topic.columns, topic.topic)).max(initial=0.0) * PRESSURE_UNITS[topic.unit]
            )
            limit = robot.description.actuation.pressure_max
            if largest > TOO_MUCH * limit:
                raise ImportTrouble(
                    table.path,
                    f'{topic.topic}: {largest:.4g} Pa if in {topic.unit}; the limit of {robot.name} is {limit:.4g} Pa',
                )


def command(options: argparse.Namespace) -> int:
    mapping = load_mapping(options.mapping)
    table = read_table(options.file, mapping)
    if options.robot:
        check_robot(load(options.robot), mapping, table)
    samples = convert(table, mapping)
    out = options.out or Path(options.file.name.partition('.')[0])
    with ProgressBar('writing') as bar:
        count = write_bag(samples, out, options.storage, mapping.frame_id, bar)
    duration = (samples[-1].t_ns - samples[0].t_ns) * 1e-9
    print(f'{out}: {count} messages, {len(mapping.topics)} topics, {duration:.2f} s')
    return 0


def main(args: list[str] | None = None) -> int:
    return run_command('import_recording', parser(), command, args)


if __name__ == '__main__':
    sys.exit(main())
