"""Damaged quaternions and positions: rejected, or the state is right all the same."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import soft_dynamics as sd
from soft_dynamics.geometry.quaternion import NORM_TOLERANCE
from soft_dynamics.geometry.se3 import pose_from_rpy
from soft_estimation.differentiate.pose_differentiator import PoseDifferentiator
from soft_estimation.inverse_kinematics.pose_tracking import Tracking
from soft_estimation.inverse_kinematics.poses import pose, poses_from_quaternions
from soft_estimation.kalman.model_filter import ModelFilter

ARM = sd.load('honeycomb_arm')
TRACKING = Tracking(ARM)
PLATES = [f'plate{k}' for k in range(5)]
BENT = np.array([0.2, -0.1, 0.3, 0.1, -0.2, 0.3, 0.1, -0.3])

BROKEN = st.sampled_from([math.nan, math.inf, -math.inf, 1e308, -1e200, 1.1])
SCALE = st.one_of(
    st.sampled_from([1.0, -1.0, 0.0, 2.0, 1e-300, 1e300]),
    st.floats(0.99, 1.01),
    st.floats(-1.01, -0.99),
    st.floats(allow_nan=False, allow_infinity=False),
).filter(lambda scale: abs(abs(abs(scale) - 1.0) - NORM_TOLERANCE) > 1e-9)


def measured(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quaternions (5, 4) and positions (5, 3) of all plates in the world."""
    mount = pose_from_rpy(ARM.description.mount.position, ARM.description.mount.rpy)
    X_WS = mount @ ARM.forward_kinematics(q)
    return Rotation.from_matrix(X_WS[:, :3, :3]).as_quat(), X_WS[:, :3, 3].copy()


@given(st.lists(st.tuples(SCALE, st.none() | st.tuples(st.integers(0, 3), BROKEN)), min_size=5, max_size=5))
def test_what_is_let_in_gives_the_right_state(damage: list[Any]) -> None:
    """Single and joint checks reject the same poses; coordinates determined by the remaining plates do not change."""
    quat, p = measured(BENT)
    whole = quat.copy()
    for k, (scale, broken) in enumerate(damage):
        quat[k] *= scale
        if broken is not None:
            quat[k, broken[0]] = broken[1]
    X_WS, good = poses_from_quaternions(quat, p)
    for k, (scale, broken) in enumerate(damage):
        is_good = broken is None and abs(abs(scale) - 1.0) <= NORM_TOLERANCE
        assert good[k] == is_good
        if is_good:
            assert X_WS[k] == pytest.approx(pose(whole[k], p[k]), abs=1e-14)
            assert pose(quat[k], p[k]) == pytest.approx(X_WS[k], abs=1e-15)
        else:
            with pytest.raises(ValueError, match='quaternion'):
                pose(quat[k], p[k])
    found = TRACKING.configuration({PLATES[k]: X_WS[k] for k in np.flatnonzero(good)})
    assert found.q[found.observed] == pytest.approx(BENT[found.observed], abs=1e-9)


@pytest.mark.parametrize('seed', range(4))
@pytest.mark.parametrize(('make', 'kinds'), [(ModelFilter, 6), (PoseDifferentiator, 5)])
def test_a_stream_with_broken_poses_gives_the_right_state(make: Any, kinds: int, seed: int) -> None:
    """A third of all plates is damaged: not of unit length, NaN, negated, extremely far away.

    The filter, which has a model, also gets randomly rotated plates; it coasts better through many losses.
    """
    rng, estimator = np.random.default_rng(seed), make(ARM)
    t = np.arange(0.0, 2.0, 0.01)
    motion = ARM.simulate(0.3 * BENT, np.zeros(8), None, t)
    refused, off = 0, []
    for k, now in enumerate(t.tolist()):
        quat, p = measured(motion.q[k])
        quat = quat + rng.normal(0.0, 2e-4, quat.shape)
        for body in np.flatnonzero(rng.uniform(size=5) < 0.33):
            kind = rng.integers(kinds)
            if kind == 0:
                quat[body] *= -1.0
            elif kind == 1:
                quat[body] *= rng.choice([0.0, 0.5, 1.1, 1e200])
            elif kind == 2:
                quat[body, rng.integers(4)] = rng.choice([math.nan, math.inf])
            elif kind == 3:
                p[body] = rng.choice([1e150, -1e9, 50.0])
            elif kind == 4:
                p[body, rng.integers(3)] = rng.choice([math.nan, -math.inf])
            else:
                quat[body] = Rotation.random(random_state=rng).as_quat()
        X_WS, good = poses_from_quaternions(quat, p)
        refused += np.count_nonzero(~good)
        estimator.feed_poses(now, {PLATES[i]: X_WS[i] for i in np.flatnonzero(good)})
        if estimator.located:
            state = estimator.estimate(now)
            off.append((state.q - motion.q[k]) / np.maximum(0.01, np.sqrt(state.variance[:8])))
    assert refused > 100
    assert estimator.tally[1] > 50  # and as many valid poses that do not fit this arm
    assert len(off) > 180
    assert np.abs(off).max() < (5.0 if make is ModelFilter else 20.0)  # standard deviations, or 0.01 rad
    assert np.sqrt(np.mean(np.square(off[50:]))) < 0.5


@pytest.mark.parametrize('seed', range(6))
@pytest.mark.parametrize('body', range(5))
@pytest.mark.parametrize('make', [ModelFilter, PoseDifferentiator])
def test_a_first_pose_that_is_turned_anyhow_does_not_make_the_state(make: Any, body: int, seed: int) -> None:
    estimator = make(ARM)
    for k in range(30):
        quat, p = measured(BENT)
        if k == 0:
            quat[body] = Rotation.random(random_state=seed).as_quat()
        X_WS, _ = poses_from_quaternions(quat, p)
        estimator.feed_poses(0.01 * k, dict(zip(PLATES, X_WS, strict=True)))
        if estimator.located:
            state = estimator.estimate(0.01 * k)
            assert np.all(np.abs(state.q - BENT) < np.maximum(0.05, np.sqrt(state.variance[:8])))
    assert estimator.located
    assert estimator.tally[1] > 0


def test_a_motion_that_the_model_does_not_have_is_an_error() -> None:
    process = ModelFilter(ARM).process
    start = process.start(0.0, 1.0, 5.0)
    start.x[:8], start.x[8:16] = np.linspace(-100.0, 100.0, 8), np.linspace(1e5, -1e5, 8)
    with pytest.raises(ValueError, match='expected finite'):
        process.predict(start, 0.01, np.zeros(16))
