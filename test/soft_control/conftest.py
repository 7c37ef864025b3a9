"""Lets the tests of this folder import what lies beside them, and keeps them on one core."""

import sys
from pathlib import Path
from typing import Any

import numba
import pytest

sys.path.insert(0, str(Path(__file__).parent))
numba.set_num_threads(1)  # a single state gains nothing from more


@pytest.fixture
def bench() -> Any:
    """Return a loop that follows, inflated."""
    from loop_bench import following

    return following()
