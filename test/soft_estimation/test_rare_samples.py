"""The model-based filter with few samples, due to a busy machine, a slow device or a fault."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline

import soft_dynamics as sd
from soft_dynamics.geometry.se3 import pose_from_rpy
from soft_estimation.kalman.model_filter import ModelFilter
from tools.made_bag import driven

DENSE, SOON = 0.01, 0.002  # [s] between samples of a fast machine; from a sample to its state
NEAR = 0.05  # [rad]


@pytest.fixture(scope='module')
def arm() -> sd.Robot:
    return sd.load('honeycomb_arm')


class Motion:
    """The arm under pressures that change all the time; its plates have 0.1 mrad of noise."""

    def __init__(self, arm: sd.Robot) -> None:
        self._arm, self._run, self._rng = arm, driven(arm, 6.0, 200.0), np.random.default_rng(0)
        self.q = CubicHermiteSpline(self._run.t, self._run.q, self._run.qd)
        self._X_WM = pose_from_rpy(arm.description.mount.position, arm.description.mount.rpy)

    def pressure(self, t: float) -> np.ndarray:
        return np.array([np.interp(t, self._run.t, column) for column in self._run.inputs.T])

    def poses(self, t: float) -> dict[str, np.ndarray]:
        return self.poses_at(self.q(t))

    def poses_at(self, q: np.ndarray) -> dict[str, np.ndarray]:
        X_WF = self._X_WM @ self._arm.forward_kinematics(q + self._rng.normal(0.0, 1e-4, 8))
        return {f'plate{k}': X for k, X in enumerate(X_WF)}


@pytest.fixture
def motion(arm: sd.Robot) -> Motion:
    return Motion(arm)


def settled(arm: sd.Robot, motion: Motion, has_pressure: bool = True) -> ModelFilter:
    """A filter that has processed two seconds of samples."""
    f = ModelFilter(arm)
    for t in np.arange(0.0, 2.0, DENSE):
        if has_pressure:
            f.feed_pressure(t, motion.pressure(t))
        f.feed_poses(t, motion.poses(t))
        f.estimate(t + SOON)
    return f


@pytest.mark.parametrize('has_pressure', [True, False])
@pytest.mark.parametrize('period', [0.1, 0.3, 1.0])
def test_samples_that_come_rarely_are_believed(
    arm: sd.Robot, motion: Motion, period: float, has_pressure: bool
) -> None:
    """Between samples, pressures that the filter does not receive move the arm anywhere."""
    f = settled(arm, motion, has_pressure)
    for t in np.arange(2.0 + period, 6.0, period):
        if has_pressure:
            f.feed_pressure(t - 1e-4, motion.pressure(t))
        f.feed_poses(t, motion.poses(t))
        np.testing.assert_allclose(f.estimate(t + SOON).q, motion.q(t + SOON), rtol=0.0, atol=NEAR)
    assert sum(count.rejected for count in f.innovations.values()) == 0


def test_a_state_knows_that_its_pressures_are_old(arm: sd.Robot, motion: Motion) -> None:
    """Half a second of prediction with and without pressures: the error is within its bounds both times."""
    late = np.arange(2.0, 2.5, DENSE)
    sigma = {}
    for is_heard in (True, False):
        f = settled(arm, motion)
        for t in late:
            if is_heard:
                f.feed_pressure(t, motion.pressure(t))
            f.estimate(t)
        state = f.estimate(2.5)
        sigma[is_heard] = np.sqrt(state.variance[:8])
        assert np.abs((state.q - motion.q(2.5)) / sigma[is_heard]).max() < 4.0
    assert np.all(sigma[False] > 3.0 * sigma[True])


def test_a_lost_arm_is_found_again_from_poses_that_come_rarely(arm: sd.Robot, motion: Motion) -> None:
    """The filter receives all pressures, and they do not explain the new position."""
    f, elsewhere = settled(arm, motion), np.tile([0.9, -0.8], 4)
    for t in np.arange(2.0, 3.2, DENSE):
        f.feed_pressure(t, motion.pressure(2.0))
        if round(t / DENSE) % 30 == 10:
            f.feed_poses(t, motion.poses_at(elsewhere))
        f.estimate(t + SOON)
    assert f.resets == 1
    f.feed_poses(3.2, motion.poses_at(elsewhere))
    np.testing.assert_allclose(f.estimate(3.2).q, elsewhere, rtol=0.0, atol=NEAR)


def test_pressures_that_are_heard_again_do_not_count_twice(arm: sd.Robot, motion: Motion) -> None:
    """While they were missing, the unknown force accounted for them."""
    f = settled(arm, motion)
    for k, t in enumerate(np.arange(2.0, 5.0, DENSE)):
        if t > 4.2:
            f.feed_pressure(t, motion.pressure(t))
        if k % 5 == 0:
            f.feed_poses(t, motion.poses(t))
        state = f.estimate(t + SOON)
        if t > 4.2:
            np.testing.assert_allclose(state.q, motion.q(t + SOON), rtol=0.0, atol=NEAR)
    assert sum(count.rejected for count in f.innovations.values()) == 0
