"""Releases from strongly bent poses, where Newton fails for whole steps of the implicit method."""

from __future__ import annotations

import numpy as np
import pytest

import soft_dynamics as sd

T = np.linspace(0.0, 0.3, 16)


def bent(robot, size, count, seed=11):
    """Poses (count, nq) away from rest by `size` [rad], of Mehl's actuator by a twentieth of it [m]."""
    away = size * np.random.default_rng(seed).normal(size=(count, robot.nq))
    if robot.name == 'floating_actuator':
        away *= 0.05 * (np.arange(robot.nq) >= 6)
    return robot.rest + away


@pytest.mark.parametrize('name', ['bending_actuator', 'honeycomb_arm', 'pneumatic_arm', 'floating_actuator'])
@pytest.mark.parametrize('size', [0.2, 0.5, 0.8])
def test_any_bent_pose_may_be_released(name, size):
    robot = sd.load(name)
    q0 = bent(robot, size, 20)
    run = robot.simulate(q0, np.zeros(robot.nq), None, T)
    assert np.all(np.isfinite(run.q))
    alone = robot.simulate(q0[7], np.zeros(robot.nq), None, T)
    np.testing.assert_allclose(alone.q, run.q[7], rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ('name', 'size', 'limit'),
    [('bending_actuator', 0.5, 2e-3), ('honeycomb_arm', 0.5, 5e-4), ('floating_actuator', 0.8, 1e-5)],
)
def test_releases_agree_with_radau(name, size, limit):
    """Under pressures that change within the steps, so that half steps need inputs at their own times."""
    robot = sd.load(name)
    level = 0.1 * robot.description.actuation.pressure_max

    def pressures(t):
        return level * (1.0 + np.sin(200.0 * t + np.arange(len(robot.chamber_names))))

    q0 = bent(robot, size, 2, seed=4)
    run = robot.simulate(q0, np.zeros(robot.nq), pressures, T)
    exact = robot.simulate(q0, np.zeros(robot.nq), pressures, T, 'Radau', rtol=1e-8, atol=1e-10)
    assert np.abs(run.q - exact.q).max() < limit


def test_steps_are_whole_again_after_a_release():
    """After the first moments the result is as accurate as with a small step, and of order four."""
    robot = sd.load('honeycomb_arm')
    q0, zero = bent(robot, 0.8, 1)[0], np.zeros(robot.nq)
    exact = robot.simulate(q0, zero, None, T, step=1e-4).q
    errors = [np.abs(robot.simulate(q0, zero, None, T, step=h).q - exact).max() for h in (5e-3, 2.5e-3)]
    assert errors[0] < 1e-3
    assert np.log2(errors[0] / errors[1]) > 3.0
