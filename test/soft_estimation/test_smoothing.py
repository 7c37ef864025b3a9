"""The smoothing spline: against scipy's, and its frequency response."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import make_smoothing_spline

from soft_estimation.differentiate.smoothing_spline import smoothing_spline

RANDOM = np.random.default_rng(3)


def test_it_is_scipys_spline() -> None:
    t = np.sort(0.01 * np.arange(200) + RANDOM.uniform(-0.004, 0.004, 200))
    y = np.sin(6.0 * t) + 0.1 * RANDOM.normal(size=t.size)
    lam = 1.0 / (np.diff(t).mean() * (2.0 * np.pi * 10.0) ** 4)
    theirs, ours = make_smoothing_spline(t, y, lam=lam), smoothing_spline(t, y, 10.0)
    at = np.linspace(t[0], t[-1], 777)
    for order in range(3):
        np.testing.assert_allclose(ours(at, order), theirs(at, order), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize('ratio', [0.3, 1.0, 2.0])
def test_a_sine_is_damped_as_by_butterworth_twice_and_not_delayed(ratio: float) -> None:
    t, bandwidth = np.arange(4000) / 1000.0, 8.0
    y = np.sin(2.0 * np.pi * ratio * bandwidth * t)
    smooth = smoothing_spline(t, np.stack([y, -2.0 * y], 1), bandwidth)(t)
    inner = slice(1000, 3000)
    expected = y / (1.0 + ratio**4)
    np.testing.assert_allclose(smooth[inner, 0], expected[inner], atol=2e-3)
    np.testing.assert_allclose(smooth[inner, 1], -2.0 * expected[inner], atol=4e-3)


def test_a_straight_line_is_kept() -> None:
    t = np.cumsum(RANDOM.uniform(0.005, 0.03, 50))
    spline = smoothing_spline(t, 3.0 - 2.0 * t, 1.0)
    np.testing.assert_allclose(spline(t), 3.0 - 2.0 * t, atol=1e-10)
    np.testing.assert_allclose(spline(t, 1), -2.0, atol=1e-8)


def test_refusals() -> None:
    with pytest.raises(ValueError, match='expected at least 3 rising times'):
        smoothing_spline([0.0, 1.0, 1.0], [0.0, 0.0, 0.0], 1.0)
    with pytest.raises(ValueError, match='bandwidth must be > 0 Hz, got 0'):
        smoothing_spline([0.0, 1.0, 2.0], [0.0, 0.0, 0.0], 0.0)
