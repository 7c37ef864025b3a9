"""Quaternions against scipy's rotations."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from soft_dynamics.geometry import quaternion

HALF_TURNS = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0.6, 0.8, 0, 0], [0, 0.6, -0.8, 1e-9]]
QUATS = [*HALF_TURNS, [0, 0, 0, 1], *Rotation.random(200, random_state=1).as_quat()]


@pytest.mark.parametrize('quat', QUATS)
def test_rotation_matches_scipy_and_comes_back(quat: list[float]) -> None:
    R = quaternion.to_rotation(quat)
    assert np.allclose(R, Rotation.from_quat(quat).as_matrix(), atol=1e-15)
    back = quaternion.from_rotation(R)
    assert back[3] >= 0
    assert np.linalg.norm(back) == pytest.approx(1.0, abs=1e-15)
    assert np.allclose(quaternion.to_rotation(back), R, atol=1e-15)


def test_rounding_of_the_length_is_repaired() -> None:
    assert np.allclose(
        quaternion.unit([0, 0, 0.6004, 0.8]), np.array([0, 0, 0.6004, 0.8]) / 1.00024, atol=1e-7
    )


@pytest.mark.parametrize('quat', [[0, 0, 0, 0], [0, 0, 0, 1.01], [np.nan, 0, 0, 1], [np.inf, 0, 0, 1]])
def test_a_length_that_is_off_is_refused(quat: list[float]) -> None:
    with pytest.raises(ValueError, match='unit length'):
        quaternion.unit(quat)


def test_a_wrong_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r'4 numbers, got shape \(3,\)'):
        quaternion.unit([0, 0, 1])


def test_a_bridge_has_quaternions_without_waiting_for_numba() -> None:
    code = 'import sys; import soft_dynamics.geometry.quaternion; sys.exit("numba" in sys.modules)'
    assert subprocess.run([sys.executable, '-c', code], timeout=60, check=False).returncode == 0
