"""The smoother of recordings: against least squares over all samples, against a filter, and consistent."""

from __future__ import annotations

import math

import numpy as np
import pytest

from soft_estimation.differentiate.differentiator import START, DifferentiatorConfig, white_jerk
from soft_estimation.differentiate.fixed_interval_smoother import smoothed

CONFIG = DifferentiatorConfig(bandwidth=2.0, noise=0.01)
W = 2.0 * math.pi * CONFIG.bandwidth


def uneven(rng: np.random.Generator) -> np.ndarray:
    """Times of a typical logger: 1 to 60 ms apart, and a gap of half a second."""
    t = np.cumsum(rng.uniform(1e-3, 0.06, 30))
    t[15:] += 0.5
    return t


def test_it_is_the_mean_given_all_samples_at_once() -> None:
    """Of motions by white jerk: x = m + K_xz (K_zz + noise^2)^-1 (z - m), P = K_xx - K_xz (K_zz + noise^2)^-1 K_zx."""
    rng = np.random.default_rng(1)
    t = uneven(rng)
    q, seen = rng.normal(size=(t.size, 1)), rng.uniform(size=(t.size, 1)) < 0.8
    seen[0] = True
    grid = np.union1d(t, np.linspace(t[0], t[-1], 40))
    found = smoothed(t, q, grid, DifferentiatorConfig(2.0, 0.01, gate=1e9), seen)

    S = CONFIG.noise**2 * np.median(np.diff(t)) * W**6
    P = np.diag((START * CONFIG.noise * np.array([1.0, W, W**2])) ** 2)
    K = np.zeros((grid.size, 3, grid.size, 3))
    for i, dt in enumerate(np.diff(grid, prepend=grid[0])):
        F, Q = white_jerk(dt)
        P = F @ P @ F.T + S * Q
        for j in range(i, grid.size):
            K[j, :, i] = white_jerk(grid[j] - grid[i])[0] @ P
            K[i, :, j] = K[j, :, i].T
    at = np.searchsorted(grid, t[seen[:, 0]])
    gain = np.linalg.solve(
        K[at][:, 0, at, 0] + CONFIG.noise**2 * np.eye(at.size), K[at, 0].reshape(at.size, -1)
    ).T
    x = (gain @ (q[seen] - q[0])).reshape(-1, 3) + q[0] * [1.0, 0.0, 0.0]
    P_x = K.reshape(3 * grid.size, -1) - gain @ K[at, 0].reshape(at.size, -1)
    for order, values in enumerate(zip(*((m.q[0], m.qd[0], m.qdd[0]) for m in found), strict=True)):
        assert np.array(values) == pytest.approx(x[:, order], abs=1e-6 * np.abs(x[:, order]).max())
    variance = np.diagonal(P_x).reshape(-1, 3)[:, :2]
    assert np.array([m.variance for m in found]) == pytest.approx(variance, rel=1e-5)


@pytest.mark.parametrize('ratio', [0.5, 1.0, 2.0])
def test_a_sine_is_damped_as_by_butterworth_twice_and_not_delayed(ratio: float) -> None:
    t = np.arange(0.0, 8.0, 0.005)
    q = np.stack([np.sin(ratio * W * t), np.cos(ratio * W * t)], 1)
    found = smoothed(t, q, t[600:1000], DifferentiatorConfig(bandwidth=2.0, gate=1e6))
    expected = q[600:1000] / (1.0 + ratio**6)
    assert np.array([m.q for m in found]) == pytest.approx(expected, abs=2e-3)
    turned = ratio * W * expected[:, ::-1] * [1.0, -1.0]
    assert np.array([m.qd for m in found]) == pytest.approx(turned, abs=2e-3 * W)


def test_it_says_how_far_it_is_off_also_inside_a_gap() -> None:
    """400 motions of its own white-jerk model and noise: squared errors over variances average 1."""
    rng, runs = np.random.default_rng(2), 400
    t = uneven(rng)
    middle = t[14] + np.array([0.05, 0.25, 0.45])
    grid, S = np.union1d(t, middle), CONFIG.noise**2 * np.median(np.diff(t)) * W**6
    x = np.zeros((runs, 3))
    truth = [x]
    for dt in np.diff(grid):
        F, Q = white_jerk(dt)
        x = x @ F.T + rng.multivariate_normal(np.zeros(3), S * Q, runs, method='cholesky')
        truth.append(x)
    at = np.array(truth)[np.searchsorted(grid, t), :, 0]
    found = smoothed(t, at + rng.normal(0.0, CONFIG.noise, at.shape), grid, CONFIG)
    squares = []
    for motion, x in zip(found, truth, strict=True):
        squares.append(np.square(motion.q - x[:, 0]) / motion.variance[:runs])
        squares.append(np.square(motion.qd - x[:, 1]) / motion.variance[runs:])
    band = 4.0 * math.sqrt(2.0 / runs)  # four standard deviations of a mean over the runs
    means = np.mean(squares, 1).reshape(-1, 2)
    inside = np.searchsorted(grid, middle)
    assert np.all(np.abs(means[inside] - 1.0) < band)
    assert np.all(np.abs(means[5:] - 1.0) < 1.5 * band)  # the first rates come from a prior at rest
    spread = np.sqrt([motion.variance[0] for motion in found])
    assert spread[inside[1]] > 3.0 * np.median(spread)


def test_a_parabola_and_a_wild_sample_in_it() -> None:
    t = uneven(np.random.default_rng(3))
    q = (0.3 - 0.7 * t + 2.0 * t**2)[:, None]
    q[20] += 5.0
    times = np.linspace(t[0], t[-1], 50)
    found = smoothed(t, q, times, CONFIG)
    assert np.array([m.q[0] for m in found]) == pytest.approx(0.3 - 0.7 * times + 2.0 * times**2, abs=1e-3)
    assert np.array([m.qdd[0] for m in found]) == pytest.approx(4.0, abs=0.05)


def test_a_new_place_is_accepted_after_the_timeout() -> None:
    """A second before and after the jump, less than a hundredth of it remains."""
    t = np.arange(0.0, 4.0, 0.01)
    q = np.where(t < 2.0, 0.0, 9.0)[:, None]
    found = smoothed(t, q, t, DifferentiatorConfig(bandwidth=2.0, noise=0.01, gate=5.0, timeout=0.2))
    assert np.array([m.q[0] for m in found[:100]]) == pytest.approx(0.0, abs=0.09)
    assert np.array([m.q[0] for m in found[300:]]) == pytest.approx(9.0, abs=0.09)


def test_misuse_is_refused() -> None:
    t, q = np.array([0.0, 1.0, 2.0]), np.zeros((3, 2))
    for arguments, reason in (
        (([0.0, 1.0, 1.0], q, t[:1]), 'at least 2 rising times'),
        ((t, q[:2], t[:1]), r'expected shape \(3, nq\)'),
        ((t, q, [-0.1, 1.0]), 'from 0.000000 to 2.000000'),
        ((t, np.full((3, 2), math.nan), t), 'finite'),
    ):
        with pytest.raises(ValueError, match=reason):
            smoothed(*arguments)
