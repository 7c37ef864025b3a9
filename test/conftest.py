"""Settings shared by all tests."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# `make test` uses the same inputs each time; `make test-long` prints its seed.
settings.register_profile('shared machine', deadline=None, derandomize=not os.environ.get('SOFT_ROBOT_LONG'))
settings.load_profile('shared machine')

HERE = Path(__file__).parent
LIVE = [HERE / 'ros', HERE / 'soft_hw_bridge', HERE / 'tools']
# in simulated time
REPEATABLE = ['test_air_path', 'test_air_path_serial', 'test_air_path_mutations', 'test_pressure_firmware']
# files that take half a minute or more
LONG = ['closed_loop', 'controllers', 'demo', 'faults', 'pressure_bridge', 'simulation_launch']
LONG += ['state_estimator', 'identification', 'identify_command', 'models', 'wang_examples']


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Retry tests with processes, sockets and clocks once, and mix their files with the others.

    On a shared machine a process may stall for seconds, which a test cannot tell from a fault; the summary names each
    test that needed its second try. Mixing keeps the workers from all starting processes at once; the long files come
    first, so that no worker waits for the others at the end.
    """
    for item in items:
        if any(folder in item.path.parents for folder in LIVE) and item.path.stem not in REPEATABLE:
            item.add_marker(pytest.mark.flaky(reruns=1))
    files = list(dict.fromkeys(item.path for item in items))
    place = {}
    for is_ros in (True, False):
        group = [file for file in files if (HERE / 'ros' in file.parents) == is_ros]
        group.sort(key=lambda file: file.stem.removeprefix('test_') not in LONG)
        place |= {file: k / len(group) for k, file in enumerate(group)}
    items.sort(key=lambda item: place[item.path])
