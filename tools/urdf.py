"""Generate urdf/ from robots/: for each robot a URDF, and a xacro macro to mount it on another robot.

python -m tools.urdf --all                       the shipped robots, into urdf/
python -m tools.urdf my_arm.yaml --out folder    one robot
python -m tools.urdf --all --check               only list files that are out of date
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import soft_dynamics as sd
from soft_dynamics.description.robot_files import share_folder
from soft_dynamics.geometry import urdf


def files(robot: sd.Robot, slices: int = urdf.SLICES) -> dict[str, str]:
    """Return the files of a robot: name and text."""
    made = urdf.model(robot, slices)
    return {f'{robot.name}.urdf': urdf.to_xml(made), f'{robot.name}.xacro': urdf.to_xml(made, macro=True)}


def stale(folder: Path, names: list[str], slices: int = urdf.SLICES) -> dict[Path, str]:
    """Return the missing and outdated files of these robots, with the right text."""
    wanted = {folder / name: text for robot in names for name, text in files(sd.load(robot), slices).items()}
    return {p: t for p, t in wanted.items() if not p.is_file() or p.read_text(encoding='utf-8') != t}


def main() -> int:
    parser = argparse.ArgumentParser(prog='python -m tools.urdf', description=(__doc__ or '').splitlines()[0])
    parser.add_argument('robots', nargs='*', metavar='ROBOT', help='shipped robot or path of a robot file')
    parser.add_argument('--all', action='store_true', help='all shipped robots')
    parser.add_argument(
        '--out', type=Path, default=share_folder() / 'urdf', help='output folder; default: urdf/'
    )
    parser.add_argument('--slices', type=int, default=urdf.SLICES, help='slices per arc')
    parser.add_argument(
        '--check', action='store_true', help='write nothing; exit code 1 if a file is out of date'
    )
    options = parser.parse_args()
    names = sd.robot_names() if options.all else options.robots
    if not names:
        parser.error('name a robot, or --all')
    try:
        changed = stale(options.out, names, options.slices)
    except (ValueError, OSError, sd.SoftRobotError) as error:
        print(error, file=sys.stderr)
        return 1
    for path, text in changed.items():
        if not options.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding='utf-8')
        print(f'{path.name}: {"out of date" if options.check else "written"}')
    return int(options.check and bool(changed))


if __name__ == '__main__':
    sys.exit(main())
