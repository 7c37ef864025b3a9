"""Poses: the exponential against scipy's matrix exponential, errors and steps against each other."""

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from soft_dynamics.geometry import se3


def pose(r: np.ndarray, p: np.ndarray) -> np.ndarray:
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = Rotation.from_rotvec(r).as_matrix(), p
    return X


@pytest.mark.parametrize('angle', [0.0, 1e-9, 1.0, 3.0, 7.0])
def test_exponential_of_a_twist_is_that_of_its_matrix(angle: float) -> None:
    rng = np.random.default_rng(1)
    phi, rho = rng.normal(size=(2, 3))
    phi *= angle / np.linalg.norm(phi)
    x, y, z = phi
    twist = np.zeros((4, 4))
    twist[:3] = np.column_stack([[[0, -z, y], [z, 0, -x], [-y, x, 0]], rho])
    R, p = se3.exp_kernel(tuple(phi), tuple(rho))
    np.testing.assert_allclose(np.column_stack([np.reshape(R, (3, 3)), p]), expm(twist)[:3], atol=1e-13)


@pytest.mark.parametrize('angle', [0.0, 1e-12, 0.5, 2.1, 3.1415])
def test_a_step_is_what_the_error_says(angle: float) -> None:
    rng = np.random.default_rng(2)
    r, p = rng.normal(size=(2, 3))
    X = pose(r, p)
    step = rng.normal(size=6)
    step[:3] *= angle / np.linalg.norm(step[:3])
    X.setflags(write=False)
    moved = se3.moved(X, step)
    turn = Rotation.from_rotvec(step[:3]).as_matrix()
    np.testing.assert_allclose(
        moved, pose(Rotation.from_matrix(turn @ X[:3, :3]).as_rotvec(), p + step[3:]), atol=1e-13
    )
    np.testing.assert_allclose(se3.pose_error(moved, X), step, atol=1e-12)


def test_inverse_of_many_poses() -> None:
    rng = np.random.default_rng(3)
    X = np.array([pose(*each) for each in rng.normal(size=(5, 2, 3))])
    np.testing.assert_allclose(se3.inverse(X) @ X, np.tile(np.eye(4), (5, 1, 1)), atol=1e-14)


def test_a_pose_from_roll_pitch_and_yaw_is_that_of_scipy() -> None:
    rpy, position = [0.3, -1.2, 2.5], [0.1, 0.2, 0.3]
    X = se3.pose_from_rpy(position, rpy)
    np.testing.assert_allclose(X[:3, :3], Rotation.from_euler('xyz', rpy).as_matrix(), atol=1e-15)
    assert X[:3, 3].tolist() == position
    assert X[3].tolist() == [0.0, 0.0, 0.0, 1.0]
