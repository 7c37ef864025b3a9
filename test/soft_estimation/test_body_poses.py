"""Poses of many bodies at once equal those of each body alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import soft_dynamics as sd
from soft_dynamics.geometry.quaternion import NORM_TOLERANCE
from soft_dynamics.messages.body_frame import BodyFrame
from soft_estimation.differentiate.pose_differentiator import PoseDifferentiator
from soft_estimation.inverse_kinematics.poses import accepted, pose, poses_from_quaternions, rigid_poses
from soft_estimation.kalman.model_filter import ModelFilter


def test_many_at_once_are_as_one_by_one() -> None:
    rng = np.random.default_rng(1)
    quat, p = rng.normal(size=(20, 4)), rng.normal(size=(20, 3))
    quat *= rng.uniform(1.0 - 5e-4, 1.0 + 5e-4, (20, 1)) / np.linalg.norm(quat, axis=1, keepdims=True)
    X, good = poses_from_quaternions(quat, p)
    assert good.all()
    np.testing.assert_allclose(X, [pose(*each) for each in zip(quat, p, strict=True)], atol=1e-14)
    plain = np.empty_like(X)
    rigid_poses.py_func(quat, p, NORM_TOLERANCE, plain, good)
    np.testing.assert_allclose(plain, X, atol=1e-15)


@pytest.mark.parametrize(
    ('quat', 'p'),
    [
        ([0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
        ([0.0, 0.0, 0.0, 1.01], [0.0, 0.0, 0.0]),
        ([0.0, math.nan, 0.0, 1.0], [0.0, 0.0, 0.0]),
        ([0.0, 0.0, 0.0, 1.0], [0.0, math.inf, 0.0]),
        ([0.0, 0.0, 0.0, 1.0], [-math.inf, math.inf, 0.0]),
    ],
)
def test_what_is_no_pose_is_marked_and_the_others_are_good(quat: list[float], p: list[float]) -> None:
    _, good = poses_from_quaternions(
        np.array([[0.0, 0.0, 0.0, 1.0], quat, [1.0, 0.0, 0.0, 0.0]]), np.array([[0.0] * 3, p, [1.0] * 3])
    )
    assert good.tolist() == [True, False, True]
    with pytest.raises(ValueError, match=r'quaternion|p_WB'):
        pose(quat, p)


FRAME = BodyFrame.of(
    5,
    [
        ('a', (1.0, 2.0, 3.0), (0.0, 0.0, 0.0, 1.0)),
        ('b', (0.0, math.nan, 0.0), (0.0, 0.0, 0.0, 1.0)),
        ('c', (4.0, 5.0, 6.0), (0.0, 0.0, 1.0, 0.0)),
        ('d', (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 2.0)),
    ],
)


def test_a_frame_is_accepted_body_by_body() -> None:
    names, X_WB, refused = accepted(FRAME)
    assert names == ('a', 'c')
    np.testing.assert_allclose(X_WB, [pose(FRAME.quat_WB[k], FRAME.p_WB[k]) for k in (0, 2)])
    assert refused.keys() == {'b', 'd'}
    assert 'p_WB: expected finite numbers' in str(refused['b'])
    assert 'quaternion must have unit length' in str(refused['d'])
    assert accepted(FRAME.only([]))[0] == ()


def test_a_frame_whose_arrays_do_not_fit_its_names_is_refused() -> None:
    with pytest.raises(ValueError, match=r'expected 2 poses, got 6 and 4 numbers'):
        BodyFrame.from_flat(0, ('a', 'b'), np.zeros(6), np.zeros(4))
    with pytest.raises(ValueError, match='frame: expected poses of 1 bodies'):
        accepted(FRAME._replace(names=('a',)))


@pytest.mark.parametrize('make', [ModelFilter, PoseDifferentiator])
def test_a_frame_is_fed_as_its_poses_are_and_the_others_are_told(make: Any) -> None:
    arm = sd.load('honeycomb_arm')
    X_WS = [pose((0.0, 0.0, 0.0, 1.0), X[:3, 3]) for X in arm.forward_kinematics(arm.rest)]
    plates = [f'plate{k}' for k in range(len(X_WS))]
    bodies = [(name, X[:3, 3], (0.0, 0.0, 0.0, 1.0)) for name, X in zip(plates, X_WS, strict=True)]
    by_frame, by_poses = make(arm), make(arm)
    bodies[2] = (plates[2], bodies[2][1], (0.0, 0.0, 0.0, 0.5))
    good = {name: X for k, (name, X) in enumerate(zip(plates, X_WS, strict=True)) if k != 2}
    for t in (0.0, 0.01):
        assert by_frame.feed_frame(t, BodyFrame.of(0, bodies)).keys() == {'plate2'}
        by_poses.feed_poses(t, good)
    assert by_frame.tally == by_poses.tally
    with pytest.raises(ValueError, match=r"expected sensors of honeycomb_arm .*, got 'hat'"):
        by_frame.feed_frame(0.02, BodyFrame.of(0, [('hat', *bodies[0][1:])]))
    with pytest.raises(ValueError, match='expected each sensor once'):
        by_frame.feed_frame(0.02, BodyFrame.of(0, bodies[:1] * 2))
