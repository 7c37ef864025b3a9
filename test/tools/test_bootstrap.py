"""The set-up makes only what is missing or out of date; a missing system dependency gives one line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools import bootstrap
from tools.bootstrap import Missing, Stage, ensure

ROOT = Path(__file__).resolve().parents[2]


class Workshop:
    """A stage in a scratch folder that counts its runs and records what it finds there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.found: list[bool] = []  # per run: whether the earlier product was still there
        self.failure: BaseException | None = None

    def make(self) -> None:
        self.found.append((self.folder / 'product').exists())
        self.folder.mkdir(exist_ok=True)
        (self.folder / 'product').touch()
        if self.failure:
            raise self.failure

    def ensure(self, foundation: str = 'a', details: str = 'b', survives: bool = True) -> None:
        ensure(Stage(self.make, [self.folder], foundation, details, survives))


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path / 'product')


def test_nothing_is_made_twice(workshop: Workshop) -> None:
    workshop.ensure()
    workshop.ensure()
    assert workshop.found == [False]


def test_changed_details_go_on_from_what_is_there(workshop: Workshop) -> None:
    workshop.ensure()
    workshop.ensure(details='c')
    assert workshop.found == [False, True]


def test_changed_foundation_starts_from_nothing(workshop: Workshop) -> None:
    workshop.ensure()
    workshop.ensure(foundation='c')
    assert workshop.found == [False, False]


def test_an_interruption_starts_from_nothing(workshop: Workshop) -> None:
    workshop.ensure()
    workshop.failure = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        workshop.ensure(details='c')
    workshop.failure = None
    workshop.ensure(details='c')
    assert workshop.found == [False, True, False]


@pytest.mark.parametrize('survives', [True, False])
def test_a_failed_change_keeps_only_what_survives_it(workshop: Workshop, survives: bool) -> None:
    workshop.ensure()
    workshop.failure = Missing('network')
    with pytest.raises(Missing):
        workshop.ensure(details='c', survives=survives)
    workshop.failure = None
    workshop.ensure(details='c')
    assert workshop.found == [False, True, survives]


@pytest.mark.parametrize(
    ('present', 'word'), [((), 'cmake'), (('cmake',), 'compiler'), (('cmake', 'gcc'), 'compiler')]
)
def test_a_missing_tool_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, present: tuple[str, ...], word: str
) -> None:
    for name in present:
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv('PATH', str(tmp_path))
    monkeypatch.delenv('CC', raising=False)
    monkeypatch.delenv('CXX', raising=False)
    with pytest.raises(Missing, match=f'{word} is missing; .*apt install'):
        bootstrap.require_tools(ros='')


@pytest.mark.parametrize('module', ['ensurepip', 'rclpy'])
def test_a_python_without_a_module_is_refused(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    monkeypatch.setenv('ROS_DISTRO', 'jazzy')
    monkeypatch.setattr(bootstrap.importlib.util, 'find_spec', lambda _name: None)
    with pytest.raises(Missing, match='venv' if module == 'ensurepip' else 'rclpy'):
        bootstrap.require_tools(ros='') if module == 'ensurepip' else bootstrap.sourced_ros()


def test_another_distribution_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('ROS_DISTRO', 'humble')
    with pytest.raises(Missing, match='humble is sourced, wanted jazzy'):
        bootstrap.sourced_ros()


def test_without_network_one_line_says_so(tmp_path: Path) -> None:
    for name in (
        'tools',
        'requirements',
        'pyproject.toml',
        'setup.py',
        'CMakeLists.txt',
        'package.xml',
        'Makefile',
    ):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    env = {key: value for key, value in os.environ.items() if not key.startswith(('PIP_', 'ROS_'))}
    env |= {'PIP_CONFIG_FILE': os.devnull, 'PIP_NO_CACHE_DIR': '1', 'no_proxy': ''}
    env |= {'http_proxy': 'http://127.0.0.1:9', 'https_proxy': 'http://127.0.0.1:9'}  # without a listener
    command = ['make', '--no-print-directory', 'setup', f'PYTHON={sys.executable}']
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode != 0
    assert 'setup: cannot reach the Python package index; connect to the network' in done.stderr
    assert 'Traceback' not in done.stderr
