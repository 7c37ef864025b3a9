"""A real arm: plates that motion capture flips, gaps, and wires that know the shape without it."""

from __future__ import annotations

import numpy as np
import pytest

from examples.real_data import asu_estimate
from examples.real_data.data import SHARED

FOLDER = SHARED / 'asu_two_segment_arm'
pytestmark = [
    pytest.mark.real_data,
    pytest.mark.skipif(not FOLDER.is_dir(), reason='the recordings of the ASU arm are not here'),
]


def test_the_state_has_no_flip_and_no_gap_and_wires_agree() -> None:
    found = asu_estimate.estimate(FOLDER / 'apr_18_data_collect_1.txt.gz')
    assert found.flips > 10
    assert np.diff(found.t).max() > 0.1  # of the samples; the estimate is there all the time
    assert np.all(np.isfinite(found.plates))
    assert np.abs(np.diff(found.plates, axis=0)).max() < 0.2  # [rad or m] in 10 ms: a flip would be 3
    rms = np.sqrt(np.mean((found.wires - found.plates) ** 2, 0))
    assert np.all(rms < [0.05, 3e-3, 0.05, 3e-3])  # v1 [rad], h1 [m], v2, h2
