"""Puts this folder on the import path, and limits its tests to one core."""

import sys
from pathlib import Path
from typing import Any

import numba
import pytest

sys.path.insert(0, str(Path(__file__).parent))
numba.set_num_threads(1)  # a single state gains nothing from more cores


@pytest.fixture
def bench() -> Any:
    """Return an inflated loop in mode follow."""
    from loop_bench import following

    return following()
