"""numba's cache is used as long as no kernel has changed, and never afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from source_tree import PACKAGES, ROOT, imports, modules

from soft_dynamics.kernel_cache import KERNEL_FOLDERS, kernel_cache
from tools.run import environment

TOP = """
from numba import njit
import soft_dynamics
from .part import part

@njit(cache=True)
def whole(x):
    return part(x)
"""
PART = """
from numba import njit

@njit(cache=True)
def part(x):
    return {} * x
"""
SCALED = """
from numba import njit
import soft_dynamics
from .part import FACTOR

@njit(cache=True)
def whole(x):
    return FACTOR * x
"""
NUMBA_IN_USE = 'import {}, numba; print(numba.config.CACHE_DIR)'


def seen_by(code: str, packages: Path, **variables: str) -> str:
    """Return the output of a new Python process that imports the packages from a folder, without set-up."""
    env = {name: value for name, value in os.environ.items() if name != 'NUMBA_CACHE_DIR'}
    env |= {'PYTHONPATH': str(packages), **variables}
    command = [sys.executable, '-c', code]
    done = subprocess.run(command, env=env, cwd=packages, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The packages as installed, without a source tree nearby."""
    folder = tmp_path / 'site-packages'
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns('__pycache__'))
    return folder


@pytest.mark.parametrize(
    'file',
    [
        'soft_control/allocation/box_qp.py',
        'soft_estimation/kalman/kernels.py',
        'soft_dynamics/kernels/vec3.py',
        'soft_dynamics/kernels/chain.py',
        'soft_dynamics/geometry/quaternion.py',  # compiled by so3
    ],
)
def test_a_changed_kernel_that_others_use_has_another_cache(installed: Path, file: str) -> None:
    before = kernel_cache(installed)
    with (installed / file).open('a') as stream:
        stream.write('# changed\n')
    assert kernel_cache(installed) != before


@pytest.mark.parametrize('file', ['soft_control/nodes/controller_base.py', 'soft_hw_bridge/natnet/stream.py'])
def test_a_file_beside_no_kernel_keeps_the_cache(installed: Path, file: str) -> None:
    before = kernel_cache(installed)
    with (installed / file).open('a') as stream:
        stream.write('# changed\n')
    assert kernel_cache(installed) == before


def test_kernels_and_what_they_import_lie_in_the_folders_that_name_the_cache() -> None:
    folders = {ROOT / folder for folder in KERNEL_FOLDERS}
    for file in modules(*PACKAGES):
        names = {found.name for found in imports(file)}
        if names & {'numba.njit', 'numba.extending', 'soft_dynamics.kernels.vec3.inline'}:
            assert ROOT / file.parent in folders
            for name in names:
                path = ROOT.joinpath(*name.split('.'))
                sources = [source.with_suffix('.py') for source in (path, path.parent)]
                assert {source.parent for source in sources if source.is_file()} <= folders, f'{file}: {name}'


@pytest.mark.parametrize(('whole', 'part'), [(TOP, PART), (SCALED, 'FACTOR = {}\n')])
def test_what_a_kernel_imports_is_not_used_in_its_old_text(
    installed: Path, tmp_path: Path, whole: str, part: str
) -> None:
    kernels = installed / 'soft_control'
    (kernels / 'whole.py').write_text(whole)
    found = []
    # Sources of different lengths: Python's own cache identifies a source by time (to a second) and size.
    for factor in (2, 30):
        (kernels / 'part.py').write_text(part.format(factor))
        run = 'from soft_control.whole import whole; print(whole(1.0))'
        found.append(float(seen_by(run, installed, XDG_CACHE_HOME=str(tmp_path / 'cache'))))
    assert found == [2.0, 30.0]


@pytest.mark.parametrize('first', ['soft_dynamics', 'numba, soft_dynamics', 'soft_estimation.kalman.kernels'])
def test_numba_of_an_installation_uses_the_users_cache(installed: Path, tmp_path: Path, first: str) -> None:
    cache = Path(seen_by(NUMBA_IN_USE.format(first), installed, XDG_CACHE_HOME=str(tmp_path / 'cache')))
    assert cache.parent == tmp_path / 'cache' / 'soft_robot_suite' / 'numba'
    assert cache.name == kernel_cache(installed).name


def test_the_users_choice_of_a_cache_stands(installed: Path, tmp_path: Path) -> None:
    chosen = str(tmp_path / 'mine')
    assert seen_by(NUMBA_IN_USE.format('soft_dynamics'), installed, NUMBA_CACHE_DIR=chosen) == chosen


def test_source_tree_uses_the_cache_that_set_up_filled() -> None:
    filled = environment()['NUMBA_CACHE_DIR']
    assert Path(filled).parent == ROOT / '.cache' / 'numba'
    assert seen_by(NUMBA_IN_USE.format('soft_dynamics'), ROOT) == filled
