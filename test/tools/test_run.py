"""Commands of the suite run in its environment, from any shell."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUN = [sys.executable, str(ROOT / 'tools' / 'run.py')]
SHOW = [sys.executable, '-c', 'import json, os; print(json.dumps(dict(os.environ)))']
HOLD = [sys.executable, '-c', 'import os; print(os.environ["ROS_DOMAIN_ID"], flush=True); input()']


def environment_from(shell: dict[str, str]) -> dict[str, str]:
    done = subprocess.run([*RUN, *SHOW], env=shell, check=True, capture_output=True, text=True, timeout=30)
    return json.loads(done.stdout)


@pytest.mark.ros
def test_environment_does_not_depend_on_the_shell() -> None:
    plain = environment_from({'PATH': '/usr/bin:/bin'})
    again = environment_from(plain)
    assert plain == again
    assert plain['PYTHONPATH'].split(':')[0] == str(ROOT)
    assert plain['AMENT_PREFIX_PATH'].split(':')[0] == str(ROOT / 'install')
    assert plain['ROS_AUTOMATIC_DISCOVERY_RANGE'] == 'LOCALHOST'
    assert Path(plain['NUMBA_CACHE_DIR']).is_relative_to(ROOT)


@pytest.mark.ros
def test_what_python_compiles_is_kept() -> None:
    assert 'PYTHONDONTWRITEBYTECODE' not in environment_from({'PYTHONDONTWRITEBYTECODE': '1'})


@pytest.mark.ros
def test_the_user_may_open_the_network() -> None:
    assert (
        environment_from({'ROS_AUTOMATIC_DISCOVERY_RANGE': 'SUBNET'})['ROS_AUTOMATIC_DISCOVERY_RANGE']
        == 'SUBNET'
    )


@pytest.mark.ros
def test_runs_at_the_same_time_get_different_domains() -> None:
    pipes = {'stdin': subprocess.PIPE, 'stdout': subprocess.PIPE, 'text': True}
    runs = [subprocess.Popen([*RUN, '--own-domain', *HOLD], **pipes) for _ in range(3)]
    try:
        domains = [int(run.stdout.readline()) for run in runs]
    finally:
        for run in runs:
            run.communicate('\n', timeout=30)
    assert len(set(domains)) == 3
    assert all(0 < domain < 102 for domain in domains)


@pytest.mark.ros
def test_an_unknown_command_is_one_line() -> None:
    done = subprocess.run([*RUN, 'no_such_command'], capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    assert done.stderr == "run: cannot start 'no_such_command': No such file or directory\n"
