"""Calls with one state run one kernel each, and the memory layout of arguments changes no result."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest
from numba import njit
from states import shipped_states

import soft_dynamics as sd
from soft_dynamics.kernels import batch_calls, kinematics, tracking_forces
from soft_dynamics.model import compilation

CALLS = {
    'inverse_dynamics': 3,
    'forward_dynamics': 3,
    'linearize': 3,
    'inverse_derivatives': 3,
    'tracking_forces': 5,
    'frames_and_jacobian': 1,
}
KERNELS = (
    batch_calls.inverse_one,
    batch_calls.forward_one,
    batch_calls.linearize_one,
    batch_calls.derivatives_one,
    tracking_forces.tracking_forces,
    kinematics.frames_and_jacobian,
)


class Vector(np.ndarray):
    pass


def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


def unaligned(a):
    raw = np.zeros(a.nbytes + 1, np.uint8)
    raw[1:].view(np.float64)[:] = a
    return raw[1:].view(np.float64)


# The same numbers in other layouts and types. All are exact in float32.
LAYOUTS = {
    'list': list,
    'tuple': tuple,
    'list of Python numbers': lambda a: a.tolist(),
    'every second': lambda a: np.repeat(a, 2)[::2],
    'backwards': lambda a: a[::-1].copy()[::-1],
    'column in C order': lambda a: np.tile(a[:, None], 3)[:, 1],
    'row in Fortran order': lambda a: np.asfortranarray(np.tile(a, (3, 1)))[1],
    'float32': lambda a: a.astype(np.float32),
    'long double': lambda a: a.astype(np.longdouble),
    'big-endian': lambda a: a.astype('>f8'),
    'objects': lambda a: a.astype(object),
    'read-only': read_only,
    'unaligned': unaligned,
    'pickled': lambda a: pickle.loads(pickle.dumps(a)),  # its dtype equals float64 but is another object
    'subclass': lambda a: a.view(Vector),
    'masked array': np.ma.masked_array,
    'memoryview': memoryview,
}


@pytest.fixture(scope='module')
def robot():
    return sd.load('pneumatic_arm')


def states_of(robot, count):
    random = np.random.default_rng(3)
    return list(random.integers(1, 64, (count, robot.nq)) / 256.0)


def parts(result):
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize('layout', LAYOUTS)
@pytest.mark.parametrize('name', CALLS)
def test_the_same_numbers_give_the_same_result(robot, name, layout):
    call, states = getattr(robot, name), states_of(robot, CALLS[name])
    wanted = parts(call(*states))
    given = [LAYOUTS[layout](state) for state in states]
    for mixed in (given, *([*states[:k], given[k], *states[k + 1 :]] for k in range(len(states)))):
        for found, other in zip(parts(call(*mixed)), wanted, strict=True):
            assert found.dtype == np.float64
            np.testing.assert_allclose(found, other, rtol=0, atol=1e-9 * max(np.abs(other).max(), 1.0))


@pytest.mark.parametrize('name', CALLS)
def test_whole_numbers_may_be_integers(robot, name):
    call, states = getattr(robot, name), [np.arange(robot.nq) % (2 + k) for k in range(CALLS[name])]
    for found, other in zip(parts(call(*states)), parts(call(*np.array(states, float))), strict=True):
        np.testing.assert_allclose(found, other, rtol=0, atol=1e-9 * max(np.abs(other).max(), 1.0))


def test_no_layout_makes_numba_compile_a_kernel_once_more(robot):
    for name, count in CALLS.items():
        states = states_of(robot, count)
        getattr(robot, name)(*states)
        for layout in LAYOUTS.values():
            getattr(robot, name)(*map(layout, states))
    assert [len(kernel.signatures) for kernel in KERNELS] == [1] * len(KERNELS)


def test_arguments_stay_as_they_are_and_results_are_new_arrays(robot):
    for name, count in CALLS.items():
        states = states_of(robot, count)
        before = np.array(states)
        first = parts(getattr(robot, name)(*states))
        kept = [part.copy() for part in first]
        getattr(robot, name)(*(2.0 * state for state in states))
        np.testing.assert_array_equal(states, before)
        for part, copy in zip(first, kept, strict=True):
            np.testing.assert_array_equal(part, copy)


def test_results_are_those_of_a_batch(robot):
    q, qd, qdd = shipped_states(robot, 20)
    tau = robot.inverse_dynamics(q, qd, qdd)
    for k in range(20):
        found = robot.inverse_dynamics(q[k], qd[k], qdd[k])
        np.testing.assert_allclose(found, tau[k], rtol=0, atol=1e-12 * np.abs(tau[k]).max())
        np.testing.assert_allclose(robot.forward_dynamics(q[k], qd[k], found), qdd[k], rtol=0, atol=1e-9)


def test_frames_jacobian_and_derivatives_are_those_of_separate_calls(robot):
    for q, qd, qdd in zip(*shipped_states(robot, 20), strict=True):
        found = *robot.frames_and_jacobian(q), *robot.inverse_derivatives(q, qd, qdd)
        many = robot.inverse_derivatives(q[None], qd[None], qdd[None])
        separate = robot.forward_kinematics(q), robot.jacobian(q, 'tip'), *(each[0] for each in many)
        for one, other in zip(found, separate, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-12 * max(np.abs(other).max(), 1.0))


@pytest.mark.parametrize('name', ['floating_actuator', 'fabric_arm'])
def test_frames_and_jacobian_of_robots_whose_coordinates_are_not_those_of_joints(name):
    other = sd.load(name)
    X, J = other.frames_and_jacobian(other.rest)
    np.testing.assert_array_equal(X, other.forward_kinematics(other.rest))
    np.testing.assert_array_equal(J, other.jacobian(other.rest, 'tip'))


@pytest.mark.parametrize(
    'bad',
    [
        None,
        3,
        'six of',
        b'six of',
        Ellipsis,
        {},
        np.float64(1.0),
        np.zeros(()),
        np.zeros(5),
        np.zeros(7),
        np.zeros((6, 1)),
        np.zeros(6, complex),
        np.zeros(6, 'M8[s]'),
        np.zeros(6, 'U3'),
        np.full(6, np.nan),
        np.array([0.0] * 5 + [np.inf]),
        [0.0] * 5 + [None],
    ],
    ids=repr,
)
@pytest.mark.parametrize('name', CALLS)
def test_what_is_no_state_is_refused_by_the_name_of_the_argument(robot, name, bad):
    arguments = {
        'forward_dynamics': ('q', 'qd', 'tau'),
        'linearize': ('q', 'qd', 'tau'),
        'tracking_forces': ('q', 'qd', 'q_r', 'qd_r', 'qdd_r'),
    }.get(name, ('q', 'qd', 'qdd')[: CALLS[name]])
    for k, argument in enumerate(arguments):
        given = [bad if k == j else np.zeros(6) for j in range(len(arguments))]
        with pytest.raises(ValueError, match=f'^{argument}: expected'):
            getattr(robot, name)(*given)


def test_no_reference_is_kept_or_let_go(robot):
    state = states_of(robot, 3)
    watched = [*state, None, True, False]
    held = [sys.getrefcount(one) for one in watched]
    for _ in range(1000):
        robot.inverse_dynamics(*state)
        robot.forward_dynamics(*state)
    assert np.abs(np.subtract([sys.getrefcount(one) for one in watched], held)).max() < 100


def test_a_robot_can_be_sent_to_another_process(robot):
    other = pickle.loads(pickle.dumps(robot))
    for name, count in CALLS.items():
        state = states_of(robot, count)
        np.testing.assert_equal(getattr(other, name)(*state), getattr(robot, name)(*state))


def test_a_long_compilation_is_announced_once_and_only_of_our_own_kernels(monkeypatch):
    notes = []

    class Note:
        def __init__(self, _seconds, _tell, words):
            notes.append([*words])

        def start(self):
            notes[-1].append('started')

        def cancel(self):
            notes[-1].append('cancelled')

    monkeypatch.setattr(compilation.threading, 'Timer', Note)

    def called(x):
        return 2.0 * x

    called.__module__ = 'soft_dynamics.somewhere'
    inner = njit(called)

    def kernel(x):
        return inner(x) + 1.0

    for module in ('soft_control.law', 'elsewhere'):
        kernel.__module__ = module
        assert njit(kernel)(1.0) == 3.0
    assert notes == [['soft_control', 'kernel', 'started', 'cancelled']]
