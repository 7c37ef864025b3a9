"""The kernels that convert between angles and the regular form of disc_angles."""

from __future__ import annotations

import numpy as np
import pytest
from compare import assert_close, slope

from soft_dynamics.geometry import disc_angles
from soft_dynamics.kernels import disc_dynamics

MIXED = np.array([0.0, 1.0, 1.0, 0.0])  # discs in axis angles and in zxz


@pytest.fixture(params=[np.zeros(4), np.ones(4), MIXED], ids=['axis_angle', 'zxz', 'mixed'])
def zxz(request):
    return request.param


def motion(count=4, seed=2):
    """Angles, rates and accelerations (5 count,) of disc_angles."""
    return np.random.default_rng(seed).uniform(-1.2, 1.2, (3, 5 * count))


def regular(zxz, q, qd):
    x, v = np.empty(8 * q.size // 5), np.empty(q.size)
    disc_dynamics.regular_state(zxz, q, qd, x, v)
    return x, v


def test_state_is_that_of_the_simulation(zxz):
    q, qd, _ = motion()
    x, v = regular(zxz, q, qd)
    angles, rates = q.reshape(-1, 5).copy(), qd.reshape(-1, 5).copy()
    angles[:, 2] -= (1.0 - zxz) * angles[:, 0]
    rates[:, 2] -= (1.0 - zxz) * rates[:, 0]
    quaternions = disc_angles.to_quaternions(angles)
    signs = np.sign(np.sum((quaternions * x.reshape(-1, 8)).reshape(-1, 2, 4), -1, keepdims=True))
    assert_close((signs * x.reshape(-1, 2, 4)).reshape(-1, 8), quaternions, 1e-14)
    expected = np.einsum('kij,kj->ki', disc_angles.rate_matrix(angles, quaternions), rates)
    assert_close(v.reshape(-1, 5), expected, 1e-14)


def test_disc_accelerations_are_the_slopes_of_the_rates(zxz):
    q, qd, qdd = motion()
    v, vd = regular(zxz, q, qd)[1], np.empty(q.size)
    disc_dynamics.regular_accelerations(zxz, q, qd, qdd, v, vd)
    found = slope(lambda t: regular(zxz, q + t * qd + 0.5 * t * t * qdd, qd + t * qdd)[1])
    assert_close(vd.reshape(-1, 5)[:, 2:], found.reshape(-1, 5)[:, 2:], 1e-9)


def test_accelerations_and_forces_come_back(zxz):
    q, qd, qdd = motion()
    v, vd, found = regular(zxz, q, qd)[1], np.empty(q.size), np.empty(q.size)
    disc_dynamics.regular_accelerations(zxz, q, qd, qdd, v, vd)
    assert disc_dynamics.angle_accelerations(zxz, q, qd, v, vd, found) == -1
    assert_close(found, qdd, 1e-13)
    disc_dynamics.angle_forces(zxz, q, qd, vd, found)
    assert_close(np.dot(found, qd), np.dot(vd, v), 1e-13, np.abs(vd).max())
    back = np.empty(q.size)
    disc_dynamics.regular_forces(zxz, q, qd, found, back)
    assert_close(back, vd, 1e-13)


def test_angles_without_mass_are_named(zxz):
    q, qd, qdd = motion()
    out = np.empty(q.size)
    for angle, value, first in ((6, 0.0, 5), (6, np.pi, 5), (13, np.pi / 2, 12)):
        singular = q.copy()
        singular[angle] = value
        assert disc_dynamics.angle_accelerations(zxz, singular, qd, qd, qdd, out) == first
