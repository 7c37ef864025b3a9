"""When the shape was last observed: late or rejected samples do not count."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import soft_dynamics as sd
from soft_dynamics.geometry.se3 import pose_from_rpy
from soft_estimation.differentiate.pose_differentiator import PoseDifferentiator
from soft_estimation.kalman.model_filter import FilterConfig, ModelFilter

STEP = 0.01  # [s]


@pytest.fixture(scope='module')
def arm() -> sd.Robot:
    return sd.load('honeycomb_arm')


def make(arm: sd.Robot, method: str) -> Any:
    return (
        PoseDifferentiator(arm)
        if method == 'differentiator'
        else ModelFilter(arm, FilterConfig(recovery_time=60.0))
    )


def plates(arm: sd.Robot, q: float = 0.1, off: float = 0.0) -> dict[str, np.ndarray]:
    """Poses of the plates; all but that of the base are off by this much [m]."""
    mount = pose_from_rpy(arm.description.mount.position, arm.description.mount.rpy)
    X_WF = mount @ arm.forward_kinematics(np.full(arm.nq, q))
    X_WF[1:, :3, 3] += off
    return {f'plate{i}': X for i, X in enumerate(X_WF)}


@pytest.mark.parametrize('method', ['model', 'differentiator'])
def test_poses_that_are_let_in_show_the_shape_at_their_time(arm: sd.Robot, method: str) -> None:
    estimator = make(arm, method)
    assert estimator.shown_at == -math.inf
    for k in range(20):
        estimator.feed_poses(k * STEP, plates(arm))
        estimator.estimate(k * STEP + 0.05)
    assert estimator.shown_at == pytest.approx(19 * STEP)
    let_in, left_out = estimator.tally
    assert let_in > 0
    assert left_out == 0


@pytest.mark.parametrize('method', ['model', 'differentiator'])
@pytest.mark.parametrize(('late', 'off'), [(2.0, 0.0), (0.0, 0.3)], ids=['too late', 'unexplained'])
def test_poses_that_are_left_out_do_not(arm: sd.Robot, method: str, late: float, off: float) -> None:
    estimator = make(arm, method)
    for k in range(20):
        estimator.feed_poses(k * STEP, plates(arm))
        estimator.estimate(k * STEP)
    before, (let_in, _) = estimator.shown_at, estimator.tally
    for k in range(20, 120):
        estimator.feed_poses(k * STEP - late, plates(arm, 0.4, off))
        estimator.estimate(k * STEP)
    assert estimator.shown_at == pytest.approx(before, abs=2 * STEP)
    assert estimator.tally[1] > 90 * (4 if off else 1)  # a late set counts once
    assert estimator.tally[0] - let_in <= 100  # the base has not moved


def test_a_wrench_is_let_in_but_shows_no_shape(arm: sd.Robot) -> None:
    estimator, q = ModelFilter(arm), np.full(arm.nq, 0.1)
    estimator.feed_poses(0.0, plates(arm))
    estimator.feed_wrench(0.1, 'base_ft', arm.base_wrench(q, 0.0 * q, 0.0 * q))
    assert estimator.shown_at == 0.0
    assert estimator.accepted_at == pytest.approx(0.1)


def test_readings_that_no_sensor_gives_are_refused(arm: sd.Robot) -> None:
    estimator = ModelFilter(arm)
    estimator.feed_poses(0.0, plates(arm))
    with pytest.raises(ValueError, match=r'wrench: expected at most 100000 N m and N, got 1e\+300'):
        estimator.feed_wrench(0.1, 'base_ft', np.full(6, 1e300))
    with pytest.raises(ValueError, match=r'pressure: expected at most 2.5e\+06 Pa, 10 times .* got 1e\+07'):
        estimator.feed_pressure(0.1, np.full(16, 1e7))
    assert estimator.accepted_at == 0.0
