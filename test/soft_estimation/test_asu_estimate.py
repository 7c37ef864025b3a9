"""A real arm: plates that motion capture flips, gaps, and wires that know the shape without it."""

from __future__ import annotations

import numpy as np
import pytest

from examples.real_data import asu_estimate
from examples.real_data.data import SHARED
from soft_estimation.differentiator import Differentiator, DifferentiatorConfig
from soft_estimation.smoothing import smoothing_spline

FOLDER = SHARED / 'asu_two_segment_arm'
FLIPS = {  # at least, of each recording
    'apr_18_data_collect_1': 30,
    'apr_4_data_collect_1': 300,
    'apr_4_data_collect_2': 10,
    'apr_4_data_collect_3': 15,
    'apr_4_data_collect_4': 0,
}
pytestmark = [
    pytest.mark.real_data,
    pytest.mark.skipif(not FOLDER.is_dir(), reason='the recordings of the ASU arm are not here'),
]


@pytest.mark.parametrize('name', FLIPS)
def test_the_state_has_no_flip_and_no_gap_is_smooth_and_wires_agree(name: str) -> None:
    """Units are [rad] and [m]: v1, h1, v2, h2. Steps of 10 ms are at the ends of gaps; a flip would be 3 rad."""
    found = asu_estimate.estimate(FOLDER / f'{name}.txt.gz')
    assert found.flips >= FLIPS[name]
    assert np.diff(found.t).max() > 0.1  # of the samples; the estimate is there all the time
    assert np.all(np.isfinite(found.plates))
    assert np.all(np.abs(np.diff(found.plates, axis=0)).max(0) < [0.1, 7e-3, 0.1, 7e-3])
    rms = np.sqrt(np.mean((found.wires - found.plates) ** 2, 0))
    assert np.all(rms < [0.05, 3e-3, 0.05, 3e-3])

    motion = Differentiator(4, DifferentiatorConfig(2.0, 5e-3))
    q, qd = motion.follow(found.t, found.samples, found.times)
    assert np.array_equal(q, found.plates)
    settled = (found.times > found.t[0] + 0.5) & (found.times < found.t[-1])
    assert np.all(np.abs(qd[settled]).max(0) < [1.3, 0.07, 1.3, 0.07])
    accelerations = asu_estimate.RATE * np.diff(qd, axis=0)[settled[1:]]
    assert np.all(np.sqrt(np.mean(accelerations**2, 0)) < [6.0, 0.25, 6.0, 0.25])
    assert np.all(np.abs(accelerations).max(0) < [120.0, 8.0, 120.0, 8.0])
    spline = smoothing_spline(found.t, found.samples, 2.0)  # the same, without haste
    off = np.sqrt(np.mean((q - spline(found.times))[settled] ** 2, 0))
    assert np.all(off < [8e-3, 5e-4, 8e-3, 5e-4])
    assert np.all(np.abs(qd - spline(found.times, 1))[settled].max(0) < [1.0, 0.06, 1.0, 0.06])
