"""The short way into compiled code: the same results as numba's own way, and nothing but plain states is taken."""

from __future__ import annotations

import pickle
import sys
from contextlib import suppress

import numpy as np
import pytest
from states import shipped_states

import soft_dynamics as sd
from soft_dynamics import fast_calls


@pytest.fixture(scope='module')
def robot():
    return sd.load('pneumatic_arm')


@pytest.fixture(params=['direct', 'numba'])
def calls(request, robot, monkeypatch):
    if request.param == 'numba':
        monkeypatch.setattr(fast_calls, 'layout_is_known', lambda: False)
    elif not fast_calls.layout_is_known():
        pytest.skip('no such layout here')
    return fast_calls.FastCalls(*robot._fast.__reduce__()[1])


def test_results_are_those_of_a_batch(robot, calls):
    q, qd, qdd = shipped_states(robot, 20)
    tau = robot.inverse_dynamics(q, qd, qdd)
    for k in range(20):
        found, back = np.empty(6), np.zeros(6)
        assert not calls.inverse(q[k], qd[k], qdd[k], found)
        np.testing.assert_allclose(found, tau[k], rtol=0, atol=1e-12 * np.abs(tau[k]).max())
        assert not calls.forward(q[k], qd[k], found, back)
        np.testing.assert_allclose(back, qdd[k], rtol=0, atol=1e-9)


def test_frames_jacobian_and_derivatives_are_those_of_the_long_way(robot):
    for q, qd, qdd in zip(*shipped_states(robot, 20), strict=True):
        found = *robot.frames_and_jacobian(q), *robot.inverse_derivatives(q, qd, qdd)
        many = robot.inverse_derivatives(q[None], qd[None], qdd[None])
        long = robot.forward_kinematics(q), robot.jacobian(q, 'tip'), *(each[0] for each in many)
        for one, other in zip(found, long, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-12 * max(np.abs(other).max(), 1.0))


@pytest.mark.parametrize('name', ['floating_actuator', 'fabric_arm'])
def test_robots_that_have_no_short_way_take_the_long_one(name):
    other = sd.load(name)
    X, J = other.frames_and_jacobian(other.rest)
    np.testing.assert_array_equal(X, other.forward_kinematics(other.rest))
    np.testing.assert_array_equal(J, other.jacobian(other.rest, 'tip'))


@pytest.mark.parametrize('bad', [np.zeros(5), np.full(6, np.nan), 'six'])
def test_what_the_short_way_does_not_take_is_refused_in_words(robot, bad):
    with pytest.raises(ValueError, match=r'^q: expected'):
        robot.frames_and_jacobian(bad)
    with pytest.raises(ValueError, match=r'^qd: expected'):
        robot.inverse_derivatives(np.zeros(6), bad, np.zeros(6))


class Vector(np.ndarray):
    pass


@pytest.mark.parametrize(
    'bad',
    [
        None,
        3,
        'six of',
        [0.0] * 6,
        Ellipsis,
        np.float64(1.0),
        np.zeros(()),
        np.zeros(5),
        np.zeros(7),
        np.zeros((6, 1)),
        np.zeros((1, 6)),
        np.zeros(6, int),
        np.zeros(6, np.float32),
        np.zeros(6, '>f8'),
        np.zeros(6, complex),
        np.zeros(12)[::2],
        np.zeros(49, np.uint8)[1:].view(np.float64),
        np.full(6, np.nan),
        np.full(6, np.inf),
    ],
    ids=repr,
)
def test_what_is_no_plain_state_is_not_taken(calls, bad):
    good, out = np.zeros(6), np.zeros(6)
    for call in (calls.inverse, calls.forward):
        for place in range(3):
            given = [good, good, good, out]
            given[place] = bad
            with suppress(TypeError, ValueError):  # numba's way to say so
                assert call(*given)


def test_the_direct_way_takes_four_arrays_and_no_kin_of_theirs(robot):
    if not fast_calls.layout_is_known():
        pytest.skip('no such layout here')
    calls = fast_calls.FastCalls(*robot._fast.__reduce__()[1])
    good = np.zeros(6)
    for given in ([], [good], [good] * 3, [good] * 5, [good, good, good.view(Vector), good]):
        assert calls.inverse(*given) is True
    with pytest.raises(TypeError, match='keyword'):
        calls.inverse(good, good, good, tau=good)


def test_states_from_pickles_and_cached_kernels_are_plain_too(calls):
    """Their dtype equals float64 and is another object."""
    q, qd, qdd = pickle.loads(pickle.dumps([np.full(6, 0.1) for _ in range(3)]))
    assert q.dtype is not np.dtype(np.float64)
    assert not calls.inverse(q, qd, qdd, np.empty(6))


def test_nothing_is_kept_or_let_go(robot):
    state, bad = [np.full(6, 0.1) for _ in range(3)], np.zeros(5)
    watched = [*state, bad, None, True]
    robot.inverse_dynamics(*state)
    held = [sys.getrefcount(one) for one in watched]
    for _ in range(1000):
        robot.inverse_dynamics(*state)
        robot.forward_dynamics(*state)
        robot._fast.inverse(*state, bad)
    assert np.abs(np.subtract([sys.getrefcount(one) for one in watched], held)).max() < 100


def test_a_robot_can_be_sent_to_another_process(robot):
    other = pickle.loads(pickle.dumps(robot))
    state = [np.full(6, 0.1) for _ in range(3)]
    for call in ('inverse_dynamics', 'forward_dynamics', 'linearize'):
        np.testing.assert_equal(getattr(other, call)(*state), getattr(robot, call)(*state))
