"""The filter's compiled matrix work against NumPy, SciPy and differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import soft_dynamics as sd
from soft_estimation import kernels
from soft_estimation.configuration import Tracking
from soft_estimation.poses import pose_from_rpy
from soft_estimation.process import Process, ProcessNoise
from soft_estimation.sensing import Mounting


@pytest.mark.parametrize('compiled', [True, False])
def test_an_update_is_the_textbooks(compiled: bool) -> None:
    correct = kernels.correct if compiled else kernels.correct.py_func
    rng = np.random.default_rng(1)
    root, H, x = rng.normal(size=(5, 5)), rng.normal(size=(3, 5)), rng.normal(size=5)
    P, r, variance, misfit = root @ root.T, rng.normal(size=3), np.array([0.1, 0.2, 0.3]), 2.0
    S = H @ P @ H.T + np.diag(variance)
    K = P @ H.T @ np.linalg.inv(S)
    x_after, P_after, nis, test = correct(x, P, r, H, variance, misfit)
    assert x_after == pytest.approx(x + K @ r)
    assert P_after == pytest.approx(P - K @ S @ K.T)
    assert nis == pytest.approx(r @ np.linalg.solve(S, r))
    assert test == pytest.approx(r @ np.linalg.solve(S + misfit**2 * np.diag(variance), r))
    assert correct(x, -P, r, H, variance, misfit)[2] == math.inf


def test_rotation_vectors_at_every_angle() -> None:
    rng, out = np.random.default_rng(2), np.empty(3)
    for angle in (0.0, 1e-9, 0.5, 2.0, 2.2, 3.0, math.pi - 1e-7):
        axis = rng.normal(size=3)
        expected = angle * axis / np.linalg.norm(axis)
        kernels.rotation_vector(Rotation.from_rotvec(expected).as_matrix(), out)
        assert out == pytest.approx(expected, abs=1e-8)


def test_what_is_no_pose_is_found_out() -> None:
    X = np.tile(np.eye(4), (3, 1, 1))
    assert kernels.are_rigid(X, 1e-6)
    for row, column, value in ((0, 0, 1.1), (0, 3, math.nan), (0, 0, math.nan), (3, 0, 0.1), (2, 2, -1.0)):
        wrong = X.copy()
        wrong[1, row, column] = value
        assert not kernels.are_rigid(wrong, 1e-6)


@pytest.mark.parametrize('bodies', [('plate1', 'plate2', 'plate4'), ('plate4', 'plate0'), ('plate3',)])
def test_poses_have_exact_derivatives(bodies: tuple[str, ...]) -> None:
    """Each refers to the body before it; at the pose of the model the innovation is zero, and moves against H."""
    arm = sd.load('honeycomb_arm')
    process, mounting = Process(arm, ProcessNoise()), Mounting(Tracking(arm))
    mount = pose_from_rpy(arm.description.mount.position, arm.description.mount.rpy)
    x, zero = np.random.default_rng(3).normal(0.0, 0.3, 24), np.zeros(16)
    X_M = arm.forward_kinematics(x[:8])
    sample = mounting.poses(0.0, {name: mount @ X_M[int(name[-1])] for name in bodies}, (1e-3, 1e-3))
    assert sample.sensors == tuple(sorted(bodies))
    innovation, H, _ = sample.read(process, x, zero)
    assert innovation == pytest.approx(np.zeros(6 * len(bodies)), abs=1e-12)
    for k in range(24):
        step = np.zeros(24)
        step[k] = 1e-6
        moved = (
            sample.read(process, x + step, zero).innovation - sample.read(process, x - step, zero).innovation
        )
        assert moved / 2e-6 == pytest.approx(-H[:, k], abs=1e-6)
