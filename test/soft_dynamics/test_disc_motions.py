"""Motions of discs: choice among equivalent angles, moving bases, and the rates that dampers act on."""

from __future__ import annotations

import numpy as np
import pytest
from compare import assert_close
from scipy.integrate import solve_ivp

import soft_dynamics as sd
from soft_dynamics.geometry import disc_angles


def in_angles(robot, q0, qd0, pressure, t):
    """The motion by forward dynamics in angles, which is valid away from singular poses."""
    n = robot.nq

    def slope(now, y):
        q, qd = y[:n], y[n:]
        return np.concatenate([qd, robot.forward_dynamics(q, qd, robot.actuation(q) @ pressure(now))])

    y = solve_ivp(slope, (t[0], t[-1]), np.concatenate([q0, qd0]), 'DOP853', t, rtol=1e-10, atol=1e-12).y
    return y.T[:, :n], y.T[:, n:]


def undamped(**changes):
    return sd.load('fabric_arm', {'segment_defaults': {'damping': [0.0] * 5}, **changes})


@pytest.mark.parametrize('samples', [26, 101, 251])
def test_angles_do_not_depend_on_how_densely_a_motion_is_sampled(samples):
    """A thread passes the straight pose by 0.007 rad, and turns alpha by almost pi within a few milliseconds."""
    rng = np.random.default_rng(3)
    rng.normal(size=10), rng.uniform(size=1), rng.normal(size=15)
    robot, qd0, q0 = undamped(), 0.1 * rng.normal(size=15), rng.uniform(0.3, 0.6, 15)
    phase = rng.uniform(size=1)

    def pressure(now):
        return 5.2 * (1.0 + np.sin(7.0 * now + phase))

    t = np.linspace(0.0, 0.5, samples)
    run = robot.simulate(q0, qd0, pressure, t)
    q, _ = in_angles(robot, q0, qd0, pressure, t)
    assert np.abs(np.sin(run.q[:, 1::5])).min() < 0.05
    assert_close(run.q, q, 1e-6, 1.0)


def test_angles_come_back_through_both_kinds_of_singular_poses_and_over_whole_turns():
    t = np.linspace(0.0, 1.0, 2000)[:, None]
    way = np.concatenate([8.0 * t - 1.0, 1.5 - 3.0 * t, -9.0 * t, 4.0 * t - 0.5, 0.3 + 7.0 * t], 1)
    assert np.ptp(np.sign(way[:, 1])) == 2.0
    assert way[:, 3].max() > np.pi / 2
    assert_close(disc_angles.to_angles(disc_angles.to_quaternions(way), way[0]), way, 1e-9, 1.0)


@pytest.mark.parametrize(
    'base', [{'type': 'prescribed'}, {'type': 'free', 'mass': 1.0, 'inertia': [1.0, 1.2, 1.5]}]
)
def test_discs_move_on_a_base_that_moves(base):
    robot = undamped(base=base)
    rng = np.random.default_rng(1)
    q0 = np.concatenate([0.2 * rng.normal(size=6), rng.uniform(0.3, 0.6, 15)])
    qd0, t = 0.1 * rng.normal(size=21), np.linspace(0.0, 0.3, 16)
    run = robot.simulate(q0, qd0, lambda now: [5.0 * np.sin(7.0 * now)], t)
    q, qd = in_angles(robot, q0, qd0, lambda now: np.array([5.0 * np.sin(7.0 * now)]), t)
    assert_close(run.q, q, 1e-8, 1.0)
    assert_close(run.qd, qd, 1e-7, 1.0)


# ---- dampers --------------------------------------------------------------------------------------------------------

DAMPING = [
    0.0,
    2.0,
    1.0,
    3.0,
    1.5,
]  # of the body rates: beta's for the thread; psi's, phi's and gamma's for the disc


def damped(**changes):
    return sd.load('fabric_arm', {'segment_defaults': {'damping': DAMPING, **changes}})


@pytest.mark.parametrize('angles', ['axis_angle', 'zxz'])
def test_dampers_of_rates_take_the_power_of_the_body_rates(angles):
    """b w^2 of the rates that `simulate` integrates, taken from scipy's rotations; independent of alpha."""
    robot, rng = damped(angles=angles, damping_on='rates'), np.random.default_rng(6)
    q, qd = rng.uniform(-1.4, 1.4, (2, 20, 15))
    joints, rates = q.reshape(-1, 5).copy(), qd.reshape(-1, 5).copy()
    if angles == 'axis_angle':
        joints[:, 2] -= joints[:, 0]
        rates[:, 2] -= rates[:, 0]
    A = disc_angles.rate_matrix(joints, disc_angles.to_quaternions(joints))
    w = np.einsum('kij,kj->ki', A, rates)
    _, beta, gamma, psi, phi = DAMPING
    power = np.sum((w**2 @ [beta, beta, psi, phi, gamma]).reshape(-1, 3), 1)
    assert_close(np.sum(robot.damping(q, qd) * qd, 1), power, 1e-13)
    step = 1e-6 * rng.uniform(-1, 1, qd.shape)  # the force is half the slope of the power
    change = np.sum(robot.damping(q, qd + step) * (qd + step), 1) - np.sum(
        robot.damping(q, qd - step) * (qd - step), 1
    )
    assert_close(4.0 * np.sum(robot.damping(q, qd) * step, 1), change, 1e-8)


@pytest.mark.parametrize('angles', ['axis_angle', 'zxz'])
def test_dampers_of_rates_are_the_same_in_forward_dynamics_and_in_simulation(angles):
    rng = np.random.default_rng(4)
    q0, qd0, t = rng.uniform(0.3, 0.6, 15), 0.5 * rng.normal(size=15), np.linspace(0.0, 0.2, 11)
    q0[1::5] += 0.6  # away from the straight pose, where dampers of angles become arbitrarily stiff

    def pressure(now):
        return np.array([5.0 * np.sin(7.0 * now)])

    on_rates, on_angles = (damped(angles=angles, damping_on=law) for law in ('rates', 'angles'))
    run = on_rates.simulate(q0, qd0, pressure, t)
    q, qd = in_angles(on_rates, q0, qd0, pressure, t)
    assert_close(run.q, q, 1e-8, 1.0)
    assert_close(run.qd, qd, 1e-7, 1.0)
    assert_close(on_angles.simulate(q0, qd0, pressure, t).q, run.q, 1e-15)
    assert np.abs(in_angles(on_angles, q0, qd0, pressure, t)[0] - run.q).max() > 0.01


def test_dampers_of_angles_and_of_rates_are_the_same_in_plane_motion():
    q, qd = np.zeros((2, 15))
    q[1::5], q[3::5], qd[1::5], qd[3::5] = (
        (0.4, -0.2, 0.9),
        (0.1, 0.5, -0.3),
        (1.0, -2.0, 0.5),
        (0.3, 0.7, -1.0),
    )
    force = damped(damping_on='rates').damping(q, qd)
    assert_close(force, damped().damping(q, qd), 1e-14)
    assert_close(damped().damping(q, qd), np.tile(DAMPING, 3) * qd, 1e-15)
