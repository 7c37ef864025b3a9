"""What all tests share."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent
LIVE = [HERE / 'ros', HERE / 'soft_hw_bridge', HERE / 'tools']


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give tests with processes, sockets and clocks a second try; the summary names each that needed it.

    On a shared machine a process may stand still for seconds, which no test can tell from a fault.
    """
    for item in items:
        if any(folder in item.path.parents for folder in LIVE):
            item.add_marker(pytest.mark.flaky(reruns=1))
