"""Locations of the shipped files: robots/, config/ and the other shared folders."""

from __future__ import annotations

import os
from pathlib import Path

SHARE = Path('share', 'soft_robot_suite')


def share_folder() -> Path:
    """Return the folder with robots/, config/ and, unless installed by pip, launch/, urdf/ and rviz/.

    This is the source tree if the package is inside it, otherwise share/soft_robot_suite under the install prefix; pip
    and ament use the same place.

    Raises FileNotFoundError if it does not exist.
    """
    package = Path(__file__).absolute().parents[1]
    if (package.parent / 'package.xml').is_file():
        return package.parent
    for prefix in package.parents:
        if (prefix / SHARE).is_dir():
            return prefix / SHARE
    raise FileNotFoundError(f'no {SHARE} under any folder above {package}')


def robot_names() -> list[str]:
    """Return the names of the shipped robots."""
    return sorted(path.stem for path in (share_folder() / 'robots').glob('*.yaml'))


def robot_file(name: str | os.PathLike[str]) -> Path:
    """Return the file of a robot, given by shipped name ('honeycomb_arm') or by path ending in .yaml.

    Raises FileNotFoundError, which lists the shipped robots, if there is no such file; ValueError for other arguments.
    """
    if not isinstance(name, str | os.PathLike):
        raise ValueError(f'name: expected the name of a shipped robot or a path, got {name!r}')
    path = Path(name)
    if path.suffix not in ('.yaml', '.yml'):
        path = share_folder() / 'robots' / f'{name}.yaml'
    if not path.is_file():
        shipped = ', '.join(robot_names())
        raise FileNotFoundError(
            f'no robot {str(name)!r}; shipped are {shipped}; or give the path of a .yaml file'
        )
    return path
