"""The differentiator against motions whose rates are known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from soft_estimation.differentiator import Differentiator, DifferentiatorConfig

T = np.arange(0.0, 3.0, 0.005)


def rates(filter_: Differentiator, q: np.ndarray) -> np.ndarray:
    out = []
    for t, value in zip(T, q, strict=True):
        filter_.feed(t, [value])
        out.append(filter_.estimate(t).qd[0])
    return np.array(out)


def test_a_parabola_has_its_rate_and_acceleration_without_lag() -> None:
    differentiator = Differentiator(1, DifferentiatorConfig(bandwidth=5.0))
    qd = rates(differentiator, 0.3 - 0.7 * T + 2.0 * T**2)
    assert qd[-100:] == pytest.approx(-0.7 + 4.0 * T[-100:], abs=1e-6)
    assert differentiator.estimate(T[-1] + 0.1).qdd == pytest.approx([4.0], abs=1e-4)


def test_a_noisy_swing_is_differentiated_far_better_than_by_differences() -> None:
    q, qd = 0.5 * np.sin(2.0 * math.pi * T), math.pi * np.cos(2.0 * math.pi * T)
    noisy = q + np.random.default_rng(1).normal(0.0, 1e-3, T.size)
    error = rates(Differentiator(1, DifferentiatorConfig(bandwidth=8.0, noise=1e-3)), noisy)[100:] - qd[100:]
    differences = np.diff(noisy)[99:] / 0.005 - qd[100:]
    assert np.std(error) < 0.12  # [rad/s] of 3.1
    assert np.std(error) < 0.5 * np.std(differences)


@pytest.mark.parametrize('rate', [100.0, 400.0])
def test_the_bandwidth_is_the_same_at_every_rate(rate: float) -> None:
    """Third-order Butterworth: at the cut-off the amplitude is about 1, far above it falls."""
    amplitude = {}
    for frequency in (1.0, 40.0):
        differentiator, values = Differentiator(1, DifferentiatorConfig(bandwidth=5.0, gate=1e6)), []
        for t in np.arange(0.0, 3.0, 1.0 / rate):
            differentiator.feed(t, [math.sin(2.0 * math.pi * frequency * t)])
            values.append(differentiator.estimate(t).q[0])
        amplitude[frequency] = max(values[-int(rate) :])
    assert amplitude[1.0] == pytest.approx(1.0, abs=0.05)
    assert amplitude[40.0] < 0.4


def test_one_wild_sample_leaves_no_trace_and_a_new_place_is_accepted_in_time() -> None:
    differentiator = Differentiator(1, DifferentiatorConfig(bandwidth=8.0, timeout=0.2))
    q = np.where(T > 2.0, 1.5, 0.5)
    q[200] += 0.5
    qd = rates(differentiator, q)
    assert np.max(np.abs(qd[150:400])) < 1e-6
    assert differentiator.rejected > 1
    assert differentiator.estimate(T[-1]).q == pytest.approx([1.5], abs=1e-3)


def test_what_is_not_seen_coasts_with_growing_variance() -> None:
    differentiator = Differentiator(2)
    for t in T[:200]:
        differentiator.feed(t, [t, t])
    before = differentiator.estimate(T[199]).variance
    for t in T[200:230]:
        differentiator.feed(t, [t, 0.0], np.array([True, False]))
    after = differentiator.estimate(T[229])
    assert after.q == pytest.approx([T[229], T[229]], abs=1e-3)
    assert after.variance[1] > 10.0 * before[1]
    assert after.variance[0] == pytest.approx(before[0], rel=0.1)


def test_misuse_is_refused() -> None:
    differentiator = Differentiator(1)
    differentiator.feed(1.0, [0.0])
    for call in (lambda: differentiator.feed(0.9, [0.0]), lambda: differentiator.estimate(0.5)):
        with pytest.raises(ValueError, match='at least 1'):
            call()
    with pytest.raises(ValueError, match='finite'):
        differentiator.feed(2.0, [math.nan])
    with pytest.raises(ValueError, match='bandwidth'):
        Differentiator(1, DifferentiatorConfig(bandwidth=0.0))
