"""Robots that are the filter's model: its errors and innovations are as large as it says."""

from __future__ import annotations

import pytest

from benchmarks.consistency import ROBOTS, consistency


@pytest.mark.parametrize('name', ROBOTS)
def test_errors_and_innovations_of_whole_arms_are_as_large_as_the_filter_says(name: str) -> None:
    """Few runs, so the bands are those of 99.9 %; `python -m benchmarks.consistency` is sharper."""
    found = consistency(name, runs=12, seed=2, probability=0.999)
    assert found.state.is_in_band
    assert found.q.is_in_band
    assert found.innovations.is_in_band
