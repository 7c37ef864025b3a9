"""Square plates that motion capture confuses with themselves rotated by 180 degrees: normals are recovered."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from soft_estimation.inverse_kinematics.poses import flip_axis, poses_from_normals

AXIS = np.array([0.006, -0.005, 1.0]) / math.hypot(0.006, 0.005, 1.0)


def swing(flips: int) -> tuple[Rotation, np.ndarray]:
    """A plate that swings by half a radian, and the same plate with some samples flipped about AXIS."""
    t, flipped = np.arange(0.0, 20.0, 0.03), np.zeros(667, bool)
    flipped[50 : 50 + 20 * flips : 20] = True
    true = Rotation.from_euler('y', 0.5 * np.sin(t)[:, None])
    seen = true * Rotation.from_rotvec(math.pi * np.where(flipped, 1.0, 0.0)[:, None] * AXIS)
    return true, seen.as_matrix()


def test_the_axis_of_the_flips_is_the_normal_that_they_leave_where_it_is() -> None:
    true, R = swing(20)
    assert flip_axis(R) == pytest.approx(AXIS, abs=1e-3)  # the plate rotates by 15 mrad between samples
    normals = R @ flip_axis(R)
    assert np.abs(normals - true.apply(AXIS)).max() < 2e-3
    of_z = np.linalg.norm(R[:, :, 2] - true.as_matrix()[:, :, 2], axis=1)
    assert of_z.max() == pytest.approx(2.0 * math.hypot(0.006, 0.005), rel=1e-3)


def test_few_flips_tell_nothing() -> None:
    for flips in (0, 2):
        assert flip_axis(swing(flips)[1]) == pytest.approx([0.0, 0.0, 1.0], abs=0.0)


def test_poses_of_normals_have_them_as_z_and_y_as_near_as_can_be() -> None:
    true, _ = swing(0)
    z_WB = true.apply([0.1, 0.2, math.sqrt(0.95)])
    p_WB = np.random.default_rng(1).normal(size=z_WB.shape)
    X_WB = poses_from_normals(p_WB, z_WB)
    assert X_WB[:, :3, 2] == pytest.approx(z_WB, abs=1e-15)
    assert X_WB[:, :3, 3] == pytest.approx(p_WB, abs=0.0)
    R = X_WB[:, :3, :3]
    assert np.swapaxes(R, 1, 2) @ R == pytest.approx(np.tile(np.eye(3), (len(R), 1, 1)), abs=1e-14)
    assert np.linalg.det(R) == pytest.approx(1.0)
    assert R[:, 1, 1] == pytest.approx(np.sqrt(1.0 - z_WB[:, 1] ** 2), abs=1e-14)
