"""Poses of many bodies at once are those of each by itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

from soft_dynamics.geometry.quaternion import NORM_TOLERANCE
from soft_estimation.inverse_kinematics.poses import pose, poses_from_quaternions, rigid_poses


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
