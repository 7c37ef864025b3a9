"""Find packages: a prefix of AMENT_PREFIX_PATH holds lib/<package>/<executable> and share/<package>/."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from tools.launcher.errors import LaunchError


def prefix(package: str, environment: Mapping[str, str]) -> Path:
    """Return the first prefix whose index contains the package."""
    path = environment.get('AMENT_PREFIX_PATH', '')
    for folder in filter(None, path.split(os.pathsep)):
        if Path(folder, 'share', 'ament_index', 'resource_index', 'packages', package).is_file():
            return Path(folder)
    raise LaunchError(f'package {package!r} is not in AMENT_PREFIX_PATH={path!r}; is it built?')


def share(package: str, environment: Mapping[str, str]) -> Path:
    """Return the package's share folder."""
    return prefix(package, environment) / 'share' / package


def executable(package: str, name: str, environment: Mapping[str, str]) -> Path:
    """Return the path of a package's executable."""
    folder = prefix(package, environment) / 'lib' / package
    file = folder / name
    if file.is_file() and os.access(file, os.X_OK):
        return file
    names = sorted(path.name for path in folder.glob('*') if path.is_file())
    raise LaunchError(f'package {package!r} has no executable {name!r}; it has: {", ".join(names) or "none"}')


def launch_file(package: str, name: str, environment: Mapping[str, str]) -> Path:
    """Return the path of a launch file anywhere in the package's share folder."""
    folder = share(package, environment)
    found = sorted(folder.rglob(name))
    if len(found) > 1:
        raise LaunchError(f'package {package!r} has {name!r} more than once: {", ".join(map(str, found))}')
    if not found:
        names = sorted(path.name for path in folder.rglob('*.launch.xml'))
        raise LaunchError(
            f'package {package!r} has no launch file {name!r}; it has: {", ".join(names) or "none"}'
        )
    return found[0]
