"""Public calls reject invalid arguments, and return arrays in the documented layout."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from states import shipped_states

import soft_dynamics as sd

ROBOTS = sd.robot_names()
HINGE = {'name': 'a', 'type': 'hinge', 'length': 1.0, 'mass': 1.0}


def robot_of(*segments, **more):
    return sd.Robot.from_dict({'format': 1, 'name': 'x', 'segments': list(segments), **more})


def calls(robot):
    """Every call that takes states: number of states, their names, and the function."""
    three = {'inverse_dynamics': 'qdd', 'base_wrench': 'qdd', 'inverse_derivatives': 'qdd'}
    three |= {'forward_dynamics': 'tau', 'linearize': 'tau', 'momentum_rate': 'tau'}
    for name, last in three.items():
        yield ('q', 'qd', last), getattr(robot, name)
    for name in ('coriolis', 'coriolis_matrix', 'damping', 'energy', 'momentum'):
        yield ('q', 'qd'), getattr(robot, name)
    for name in ('gravity', 'elastic', 'mass_matrix', 'forward_kinematics', 'actuation'):
        yield ('q',), getattr(robot, name)
    yield ('q',), lambda q: robot.pose(q, 'tip')
    yield ('q',), lambda q: robot.jacobian(q, 'tip')
    yield ('q',), lambda q: robot.centerline(q, [0.0, robot.length])


@pytest.mark.parametrize('name', ROBOTS)
@pytest.mark.parametrize(
    ('bad', 'message'),
    [
        ([], r'expected shape \(\d+,\) or \(count, \d+\), got \(0,\)'),
        (None, 'expected numbers, got NoneType None'),
        ([None, 1.0], 'expected numbers, got list'),
        (0.1, r'expected shape \(\d+,\) or \(count, \d+\), got \(\)'),
    ],
)
def test_every_call_names_the_argument(name, bad, message):
    robot = sd.load(name)
    good = robot.rest + 0.3
    for names, call in calls(robot):
        for k, argument in enumerate(names):
            with pytest.raises(ValueError, match=f'^{argument}: {message}'):
                call(*(bad if j == k else good for j in range(len(names))))


@pytest.mark.parametrize('name', ROBOTS)
def test_batches_that_do_not_match_are_told_by_the_callers_arguments(name):
    robot = sd.load(name)
    q = np.tile(robot.rest + 0.3, (5, 1))
    for names, call in calls(robot):
        if len(names) > 1:
            with pytest.raises(ValueError, match='batches of different lengths') as caught:
                call(q, *(q[:3] for _ in names[1:]))
            assert str(caught.value).count('(') == len(names)


@pytest.mark.parametrize('name', ROBOTS)
def test_results_are_in_c_order(name):
    robot = sd.load(name)
    states = dict(zip(('q', 'qd', 'qdd'), shipped_states(robot, 3), strict=True)) | {
        'tau': np.ones((3, robot.nq))
    }
    for names, call in calls(robot):
        found = call(*(states[argument] for argument in names))
        for part in found if isinstance(found, tuple) else (found,):
            assert part.flags.c_contiguous
            assert part.dtype == np.float64
            assert len(part) == 3


def test_a_scalar_is_no_state_even_of_one_coordinate():
    robot = robot_of(HINGE)
    with pytest.raises(ValueError, match=r'^q: expected shape \(1,\) or \(count, 1\), got \(\)'):
        robot.inverse_dynamics(0.1, 0.2, 0.3)
    assert robot.inverse_dynamics([0.1], [0.2], [0.3]).shape == (1,)


@pytest.mark.parametrize(
    ('external', 'message'),
    [
        ([1, 2], '^external: expected a mapping of frames to wrenches, got list'),
        (np.zeros(6), '^external: expected a mapping of frames to wrenches, got ndarray'),
        ({'hand': np.zeros(6)}, "^external: expected one of base, segment1.*, tip; got 'hand'"),
        ({3: np.zeros(6)}, '^external: expected one of base, .*; got 3'),
        ({'tip': np.zeros(5)}, r"^external\['tip'\]: expected shape \(6,\) or \(1, 6\), got \(5,\)"),
    ],
)
def test_wrong_wrenches_are_named(external, message):
    robot = sd.load('honeycomb_arm')
    for call in (robot.inverse_dynamics, robot.forward_dynamics, robot.base_wrench):
        with pytest.raises(ValueError, match=message):
            call(*np.zeros((3, 8)), external=external)


@pytest.mark.parametrize('frame', [None, 3, ['tip'], 'TIP', b'tip', {}, np.zeros(2)])
def test_what_is_no_frame_is_refused(frame):
    robot = sd.load('honeycomb_arm')
    for call in (robot.pose, robot.jacobian):
        with pytest.raises(ValueError, match=r'^frame: expected one of base, segment1'):
            call(np.zeros(8), frame)


@pytest.mark.parametrize('name', ['pneumatic_arm', 'floating_actuator'])
def test_numbers_too_large_for_the_model_are_refused(name):
    """The arguments are finite, but the result is not."""
    robot = sd.load(name)
    huge, small = np.full(robot.nq, 1e200), np.full(robot.nq, 0.01)
    with np.errstate(all='ignore'):
        for call in (robot.inverse_dynamics, robot.forward_dynamics, robot.linearize, robot.base_wrench):
            with pytest.raises(ValueError, match=r'^q: too large for the model, got 1e\+200'):
                call(huge, small, small)
            with pytest.raises(ValueError, match=r'^qd: too large for the model, got 1e\+200'):
                call(small, huge, small)
        for call in (robot.mass_matrix, robot.gravity, lambda q: robot.jacobian(q, 'tip')):
            with pytest.raises(ValueError, match=r'^q: too large for the model'):
                call(huge)


def test_robots_that_cannot_move_are_refused_when_they_are_read():
    link = {'name': 'a', 'type': 'link', 'length': 1.0, 'mass': 1.0}
    with pytest.raises(
        sd.RobotFileError, match='segments: expected at least one that moves, found links only'
    ):
        robot_of(link)
    assert robot_of(link, base={'type': 'free', 'mass': 1.0, 'inertia': [1.0, 1.0, 1.0]}).nq == 6


def test_what_is_no_robot_is_refused():
    with pytest.raises(ValueError, match='overrides: expected a mapping of keys of the robot file, got 5'):
        sd.load('honeycomb_arm', 5)
    for name in (3, None, ['honeycomb_arm']):
        with pytest.raises(ValueError, match='name: expected the name of a shipped robot or a path, got'):
            sd.load(name)


def test_the_module_lists_what_it_has():
    assert set(sd.__all__) <= set(dir(sd))


def test_a_robot_does_not_change():
    robot = sd.load('honeycomb_arm')
    for name in ('nq', 'name', 'description', 'anything'):
        with pytest.raises(AttributeError, match='a robot is immutable'):
            setattr(robot, name, 3)
    with pytest.raises(AttributeError, match='a robot is immutable'):
        del robot.nq
    assert copy.copy(robot).nq == robot.nq == 8


@pytest.mark.parametrize(
    ('change', 'error', 'message'),
    [
        ({'step': 'a'}, ValueError, "step: expected a finite number > 0, got 'a'"),
        ({'rtol': None}, ValueError, 'rtol: expected a finite number > 0, got None'),
        ({'progress': 3}, ValueError, 'progress: expected a function'),
        ({'method': None}, ValueError, 'method: expected one of'),
        (
            {'stepp': 1e-3},
            TypeError,
            "no option 'stepp', expected one of step, tolerance, rtol, atol, progress",
        ),
        ({'t_eval': 1.0}, ValueError, r't_eval: expected rising times, got shape \(\)'),
        ({'t_eval': None}, ValueError, 't_eval: expected numbers, got NoneType'),
        ({'q0': []}, ValueError, r'q0: expected shape \(8,\) or \(count, 8\), got \(0,\)'),
    ],
)
def test_wrong_options_of_a_simulation_are_named(change, error, message):
    robot = sd.load('honeycomb_arm')
    good = {'q0': np.zeros(8), 'qd0': np.zeros(8), 'inputs': None, 't_eval': [0.0, 0.01]}
    with pytest.raises(error, match=message):
        robot.simulate(**{**good, **change})


def test_one_chamber_may_be_given_as_one_number():
    robot = sd.load('bending_actuator')
    t = np.linspace(0.0, 0.1, 6)
    run = robot.simulate(np.zeros(5), np.zeros(5), lambda now: 1e5, t)
    assert np.array_equal(run.q, robot.simulate(np.zeros(5), np.zeros(5), np.full((6, 1), 1e5), t).q)
