"""Derivatives of forward dynamics: against finite differences, single state against batch, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from compare import assert_close
from reference import samples
from states import random_states, special_states
from twins import description, twin

import soft_dynamics as sd

WEIGHTS = np.array([4 / 5, -1 / 5, 4 / 105, -1 / 280])  # of differences over 1, 2, 3, 4 steps: order 8
STEP = 5e-4


def differences(robot, q, qd, tau, scale):
    """The derivatives (nq, 2 nq) of the acceleration with respect to (q, qd), by steps of the coordinates' scale."""
    y, n = np.concatenate([q, qd]), robot.nq
    steps = np.diag(STEP * np.tile(scale, 2))
    ways = np.array([1, 2, 3, 4, -1, -2, -3, -4])
    points = (y + ways[:, None, None] * steps).reshape(-1, 2 * n)
    found = robot.forward_dynamics(points[:, :n].copy(), points[:, n:].copy(), tau).reshape(2, 4, 2 * n, n)
    return (np.einsum('i,ikj->jk', WEIGHTS, found[0] - found[1])) / np.diag(steps)


def assert_linearized(robot, q, qd, scale):
    n, tau = robot.nq, robot.inverse_dynamics(q, qd, np.zeros(robot.nq))
    A, B = robot.linearize(q, qd, tau)
    unit = np.tile(scale, 2) / scale[:, None]
    assert_close(A[n:] * unit, differences(robot, q, qd, tau, scale) * unit, 1e-8)
    assert_close(A[:n], np.hstack([np.zeros((n, n)), np.eye(n)]), 1e-15)
    pushed = robot.forward_dynamics(np.tile(q, (n, 1)), qd, tau + np.eye(n))
    assert_close(B[n:], (pushed - robot.forward_dynamics(q, qd, tau)).T, 1e-8)
    assert_close(B[:n], np.zeros((n, n)), 1e-15, 1.0)


@pytest.mark.parametrize('name', [name for name in samples.NAMES if not name.startswith('schultz')])
def test_linearization_agrees_with_finite_differences(name):
    """Against differences of order 8, limited by rounding: 1e-8 of the largest derivative."""
    reference, robot = samples.build(name), twin(name)
    rng = np.random.default_rng(2)
    special = special_states(rng, robot.nq, **reference.layout)
    chosen = [special[key] for key in ('straight', '1e-09 from straight', 'bends of 2.5 rad')]
    scale = np.broadcast_to(reference.layout.get('scale', 1.0), robot.nq)
    for q, qd, _ in (*chosen, *random_states(rng, robot.nq, 3, **reference.layout)):
        assert_linearized(robot, q, qd, scale)


@pytest.mark.parametrize('damping_on', ['angles', 'rates'])
@pytest.mark.parametrize('angles', ['axis_angle', 'zxz'])
def test_linearization_of_discs_agrees_with_finite_differences(angles, damping_on):
    """From an almost straight thread, where the angles have almost no acceleration, to one almost folded back."""
    data = description(f'schultz {angles}')
    for k, segment in enumerate(data['segments']):
        segment.update(damping_on=damping_on, damping=[0.1 * (k + j) for j in range(1, 6)])
    robot, rng = sd.Robot.from_dict(data), np.random.default_rng(2)
    for beta in (0.05, 0.3, 1.2, 2.0, 2.8, -0.4, -2.0):
        q, qd = rng.uniform(-0.6, 0.6, robot.nq), rng.uniform(-1.0, 1.0, robot.nq)
        q[1::5] = beta + rng.uniform(-0.02, 0.02, 3)
        q[3::5] *= 2.0
        assert_linearized(robot, q, qd, np.ones(robot.nq))


def outcome(call, *state):
    """Return the result of the call, or None if it raises."""
    try:
        return call(*state)
    except sd.SingularInertia:
        return None


def test_one_state_is_linearized_as_in_a_batch_or_refused_as_there():
    """Next to theta2 = pi/2, where theta1 moves no mass; forward dynamics fails slightly later."""
    robot, rng, count = sd.load('honeycomb_arm'), np.random.default_rng(3), 400
    q, qd, tau = rng.uniform(-1.0, 1.0, (3, count, 8))
    q[:, 1::2] = np.pi / 2 + rng.choice([-1, 1], (count, 4)) * 10.0 ** rng.uniform(-6.6, -5.8, (count, 4))
    refused = too_far = 0
    for state in zip(q, qd, tau, strict=True):
        one, many = (
            outcome(robot.linearize, *state),
            outcome(robot.linearize, *(a[[0, 0]] for a in np.array(state)[:, None])),
        )
        assert (one is None) == (many is None)
        if one is None:
            refused += 1
            too_far += outcome(robot.forward_dynamics, *state) is not None
        else:
            assert_close(one[0], many[0][0], 1e-9)
            assert_close(one[1], many[1][0], 1e-9)
    assert 0 < too_far < refused < count


def test_derivatives_that_are_not_finite_are_refused_for_one_state_too():
    robot = sd.load('honeycomb_arm')
    q, qd, tau = np.full(8, 0.1), np.full(8, 1e200), np.zeros(8)
    for state in ((q, qd, tau), (q[None], qd[None], tau[None])):
        with pytest.raises(ValueError, match='qd: too large for the model'):
            robot.linearize(*state)
