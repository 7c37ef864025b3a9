"""A real arm: plates that motion capture flips, gaps, and wire sensors that measure the shape without it."""

from __future__ import annotations

import numpy as np
import pytest
from real_recordings import RECORDINGS, needs_recordings

from examples.real_data import asu_estimate
from examples.real_data.asu_estimate import CONFIG, NOISE, STEP, Found
from soft_estimation.differentiate.fixed_interval_smoother import smoothed

FOLDER = RECORDINGS / 'asu_two_segment_arm'
FLIPS = {  # minimum for each recording
    'apr_18_data_collect_1': 70,
    'apr_4_data_collect_1': 300,
    'apr_4_data_collect_2': 10,
    'apr_4_data_collect_3': 15,
    'apr_4_data_collect_4': 0,
}
LATE = 0.1  # [s] longer than the error of stamps: over less, differences of samples say little about rates
pytestmark = [pytest.mark.real_data, needs_recordings]


@pytest.fixture(scope='module', params=FLIPS)
def recording(request: pytest.FixtureRequest) -> tuple[str, Found]:
    return request.param, asu_estimate.estimate(FOLDER / f'{request.param}.txt.gz')


def fastest(t: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest rates and accelerations in the samples, by differences over LATE and slightly more."""
    first = np.arange(np.searchsorted(t, t[-1] - 3.0 * LATE))
    middle = np.searchsorted(t, t[first] + LATE)
    last = np.searchsorted(t, t[middle] + LATE)
    before, after = ((q[b] - q[a]) / (t[b] - t[a])[:, None] for a, b in ((first, middle), (middle, last)))
    bend = 2.0 * (after - before) / (t[last] - t[first])[:, None]
    return np.abs(before).max(0), np.abs(bend).max(0)


def test_the_state_is_there_all_the_time_and_smooth(recording: tuple[str, Found]) -> None:
    """Despite flips and gaps, the state is near the samples and never faster or more sharply curved than they are."""
    name, found = recording
    assert found.flips >= FLIPS[name]
    assert np.diff(found.t).max() > 0.1
    assert np.all(np.isfinite(found.plates))
    assert found.times == pytest.approx(STEP * np.arange(found.times.size))
    assert found.times[-1] > found.t[-1] - 0.1
    rate, acceleration = fastest(found.t, found.samples)
    assert np.all(np.abs(np.diff(found.plates, axis=0)).max(0) < STEP * rate)
    assert np.all(np.abs(np.diff(found.plates, 2, axis=0)).max(0) < STEP**2 * acceleration)
    at = np.array([np.interp(found.t, found.times, q) for q in found.plates.T]).T
    assert np.all(np.sqrt(np.mean((found.samples - at) ** 2, 0)) < 1.5 * NOISE)


def test_a_gap_that_is_cut_out_is_bridged_as_well_as_its_variance_says(recording: tuple[str, Found]) -> None:
    """Gaps of 0.2 s every 2 s. Late stamps and plates that stay flipped raise the mean square above 1."""
    _, found = recording
    lost = np.abs(found.t % 2.0 - 1.0) < 0.1
    kept, t = ~lost, found.t[lost]
    motions = smoothed(found.t[kept], found.samples[kept] / NOISE, t, CONFIG)
    off = [
        (q - m.q) / np.sqrt(m.variance[:4] + 1.0)
        for q, m in zip(found.samples[lost] / NOISE, motions, strict=True)
    ]
    assert len(off) > 50
    assert np.all(np.mean(np.square(off), 0) < 4.0)


def test_the_causal_estimate_is_near_the_smooth_one(recording: tuple[str, Found]) -> None:
    """Three standard deviations of a sample: the state steps at a sample after a gap, and does not diverge."""
    _, found = recording
    assert np.all(np.isfinite(found.causal))
    assert np.all(np.sqrt(np.mean((found.causal - found.plates) ** 2, 0)) < 3.0 * NOISE)


def test_wires_alone_tell_the_shape(recording: tuple[str, Found]) -> None:
    """To 5 % of the range of the arm: 1 rad and 60 mm."""
    _, found = recording
    rms = np.sqrt(np.mean((found.wires - found.plates) ** 2, 0))
    assert np.all(rms < [0.05, 3e-3, 0.05, 3e-3])
