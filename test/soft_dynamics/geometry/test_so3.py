"""Rotations against fifty digits and against scipy, also near 0 and near pi."""

import mpmath as mp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from soft_dynamics.geometry import so3
from soft_dynamics.kernels.arc import entire

AXES = [[1.0, 0.0, 0.0], [0.0, 0.6, -0.8], [0.48, -0.6, 0.64], [-0.36, -0.48, -0.8]]
SMALL = [0.0, 1e-300, 1e-160, 1e-12, 1e-8, 1e-4]
SEAMS = [2.0 - 1e-9, 2.0 + 1e-9, 2.0 * np.pi / 3.0 - 1e-9, 2.0 * np.pi / 3.0 + 1e-9]  # where formulas switch
LARGE = [np.pi - 1e-3, np.pi - 1e-8, np.pi - 1e-12]
ANGLES = [*SMALL, 0.3, 1.0, *SEAMS, 2.5, *LARGE]


def exact(r: np.ndarray) -> np.ndarray:
    """exp([r]x) with fifty digits, rounded."""
    with mp.workdps(50):
        x, y, z = (mp.mpf(float(value)) for value in r)
        K = mp.matrix([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        square = x * x + y * y + z * z
        phi = mp.sqrt(square)
        f1, f2 = (mp.sin(phi) / phi, (1 - mp.cos(phi)) / square) if phi else (1, mp.mpf('0.5'))
        R = mp.eye(3) + f1 * K + f2 * K * K
        return np.array([[float(R[i, j]) for j in range(3)] for i in range(3)])


@pytest.mark.parametrize('axis', AXES)
@pytest.mark.parametrize('angle', [*ANGLES, np.pi, 5.0, 100.0])
def test_exponential_has_all_its_digits(axis: list[float], angle: float) -> None:
    r = angle * np.array(axis)
    np.testing.assert_allclose(so3.exp(r), exact(r), rtol=0.0, atol=5e-16 * max(1.0, angle))


@pytest.mark.parametrize('axis', AXES)
@pytest.mark.parametrize('angle', ANGLES)
def test_logarithm_is_the_inverse_of_the_exponential(axis: list[float], angle: float) -> None:
    r = angle * np.array(axis)
    np.testing.assert_allclose(so3.log(exact(r)), r, rtol=1e-15, atol=1e-15 * min(1.0, 1e300 * angle))


@pytest.mark.parametrize('axis', [*AXES, [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, -1.0]])
def test_logarithm_of_half_a_turn_is_one_of_its_two_vectors(axis: list[float]) -> None:
    R = 2.0 * np.outer(axis, axis) - np.eye(3)
    r = so3.log(R)
    np.testing.assert_allclose(r * np.sign(r @ axis), np.pi * np.array(axis), atol=1e-15)


def test_many_agree_with_scipy() -> None:
    turns = Rotation.random(1000, random_state=3)
    np.testing.assert_allclose(so3.log(turns.as_matrix()), turns.as_rotvec(), atol=1e-12)
    np.testing.assert_allclose(so3.exp(turns.as_rotvec()), turns.as_matrix(), atol=1e-14)
    np.testing.assert_allclose(so3.angle(turns.as_matrix()), turns.magnitude(), atol=1e-12)
    rpy = turns.as_euler('xyz')
    np.testing.assert_allclose([so3.from_rpy(each) for each in rpy], turns.as_matrix(), atol=1e-14)


def test_left_jacobian_is_the_mean_rotation_on_the_way() -> None:
    """V(r) a = int_0^1 exp(s r) a ds."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    rng = np.random.default_rng(4)
    for r, a in rng.normal(size=(20, 2, 3)):
        mean = sum(0.5 * w * so3.exp(0.5 * (1.0 + s) * r) @ a for s, w in zip(nodes, weights, strict=True))
        f = entire.py_func(float(r @ r))
        found = so3.left_jacobian_kernel(tuple(r), f, tuple(a))
        np.testing.assert_allclose(found, mean, atol=1e-14)


def test_arrays_of_any_shape_and_layout_are_taken_and_left_as_they_are() -> None:
    R = Rotation.random(6, random_state=5).as_matrix()
    wide = np.zeros((2, 3, 4, 4))
    wide[..., :3, :3] = R.reshape(2, 3, 3, 3)
    wide.setflags(write=False)
    np.testing.assert_array_equal(so3.log(wide[..., :3, :3]).reshape(6, 3), so3.log(R))
    np.testing.assert_array_equal(so3.log(R[0].T), -so3.log(R[0]))
    assert so3.log(R[0].tolist()).shape == (3,)
    assert so3.exp(np.zeros((0, 3))).shape == (0, 3, 3)
