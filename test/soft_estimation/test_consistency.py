"""Robots that equal the filter's model: errors and innovations match the covariances."""

from __future__ import annotations

import pytest

from benchmarks.consistency import ROBOTS, consistency, on_rig


@pytest.mark.parametrize('name', ROBOTS)
def test_errors_and_innovations_of_whole_arms_are_as_large_as_the_filter_says(name: str) -> None:
    """Few runs, so the bands are those of 99.9 %; `python -m benchmarks.consistency` is sharper."""
    found = consistency(name, runs=12, seed=2, probability=0.999)
    assert found.state.is_in_band
    assert found.q.is_in_band
    assert found.innovations.is_in_band


def test_on_the_virtual_rig_the_default_filter_is_careful() -> None:
    """Mean of squared errors over variances; below 1, since the filter assumes more model error than there is."""
    state, q, innovations = on_rig(seed=300, seconds=2.5)
    assert 0.1 < state < 1.0
    assert 0.1 < q < 1.0
    assert 0.03 < innovations < 1.0
