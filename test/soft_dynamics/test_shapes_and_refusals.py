"""Shapes and numbers: the universal joint of an arc, the centreline, numeric helpers of the kernels, refusals."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from compare import assert_close
from reference.wang import pcc_pose, pcc_to_puj, puj_pose
from states import shipped_states
from twins import description

import soft_dynamics as sd
from soft_dynamics.kernels.arc import entire
from soft_dynamics.kernels.vec3 import sincos
from soft_dynamics.segments.universal import from_constant_curvature

ROBOTS = sd.robot_names()


# ---- geometry -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('psi', [0.0, 1e-9, 0.3, 1.5, 2.0, 3.0])
@pytest.mark.parametrize('phi', [-2.5, -0.7, 0.0, 0.9, math.pi / 2, math.pi])
def test_constant_curvature_as_universal_joint(phi, psi):
    pose = from_constant_curvature(phi, psi, 0.2)
    X_arc, X_universal = pcc_pose(phi, psi, 0.2), puj_pose(pose.d, pose.theta1, pose.theta2, pose.d)
    twist = np.eye(4)
    c, s = math.cos(pose.twist), math.sin(pose.twist)
    twist[:2, :2] = [[c, -s], [s, c]]
    assert_close(X_universal @ twist, X_arc, 1e-12)
    reference = pcc_to_puj(phi, psi, 0.2)
    assert_close(
        [pose.d, pose.theta1, pose.theta2], [reference.d1, reference.theta1, reference.theta2], 1e-12
    )


def test_a_half_circle_has_no_universal_joint():
    with pytest.raises(ValueError, match='psi'):
        from_constant_curvature(0.0, math.pi, 0.2)


@pytest.mark.parametrize('name', ROBOTS)
def test_centerline_starts_at_the_base_and_ends_at_the_tip(name):
    robot = sd.load(name)
    q = shipped_states(robot, 1)[0][0]
    points = robot.centerline(q, np.linspace(0.0, robot.length, 50))
    assert_close(points[0], robot.pose(q, 'base')[:3, 3], 1e-12, 1.0)
    assert_close(points[-1], robot.pose(q, 'tip')[:3, 3], 1e-12, 1.0)
    if name == 'pneumatic_arm':
        assert_close(np.linalg.norm(np.diff(points, axis=0), axis=1).sum(), robot.length, 1e-3)
    with pytest.raises(ValueError, match='s_samples'):
        robot.centerline(q, [0.0, 2.0 * robot.length])


@pytest.mark.parametrize('ends', ['not-a-knot', 'natural', 'clamped'])
def test_ends_of_the_spline_through_hinges_are_selectable(ends):
    """All pass through the joints; natural: no curvature at the ends; clamped: starts in the direction of the base."""
    robot = sd.load('bending_actuator', {'spline_ends': ends, 'base': {'rpy': [0.2, 0.1, 0.5]}})
    q = np.array([[0.3, 0.5, -0.2, 0.1, 0.4], [0.1, 0.0, 0.2, -0.1, 0.3]])
    assert_close(
        robot.centerline(q, robot.length / 5 * np.arange(6)), robot.forward_kinematics(q)[:, :, :3, 3], 1e-12
    )
    h = 1e-4
    near = robot.centerline(q, h * np.arange(3))
    far = robot.centerline(q, robot.length - h * np.arange(3)[::-1])
    bends = [np.linalg.norm(np.diff(points, 2, axis=1)[:, 0], axis=-1) / h**2 for points in (near, far)]
    slope = (-1.5 * near[:, 0] + 2.0 * near[:, 1] - 0.5 * near[:, 2]) / h
    along = robot.forward_kinematics(q)[:, 0, :3, 1]
    if ends == 'clamped':
        assert_close(slope, along, 1e-5)
    else:
        assert np.all(np.linalg.norm(slope - along, axis=1) > 0.01)
    assert np.all((bends[0] < 0.2) == (ends == 'natural'))
    assert np.all((bends[1] < 0.2) == (ends != 'not-a-knot'))


def test_only_hinges_have_a_spline_with_ends():
    with pytest.raises(sd.RobotFileError, match='spline_ends: expected a robot of hinges only'):
        sd.load('honeycomb_arm', {'spline_ends': 'natural'})


def test_spline_through_hinges_is_a_parabola_for_two_links():
    """Two segments and not-a-knot ends: one parabola through three points.                  [Godage, sec. III-A]"""
    whole = sd.load('bending_actuator').description
    robot = sd.Robot(dataclasses.replace(whole, segments=whole.segments[:2]))
    s = np.linspace(0.0, robot.length, 9)
    points = robot.centerline(np.array([0.3, 0.5]), s)
    assert_close(np.diff(points[:, :2], 3, axis=0), np.zeros((6, 2)), 1e-14, 1.0)


# ---- numbers --------------------------------------------------------------------------------------------------------


def test_entire_functions_are_right_on_both_sides_of_the_seam():
    for x in (0.0, 1e-24, 1e-8, 0.5, 3.9999, 4.0001, 9.0, 16.0):
        exact = [math.fsum((-x) ** k / math.factorial(2 * k + j) for k in range(40)) for j in range(1, 10)]
        np.testing.assert_allclose(entire(x), exact, rtol=2e-12)


def test_sincos_is_sine_and_cosine():
    angles = np.concatenate([np.linspace(-20, 20, 4001), np.arange(-8, 9) * np.pi / 2, [9e4, 1e6, -1e9]])
    found = np.array([sincos(a) for a in angles])
    np.testing.assert_allclose(found, np.stack([np.sin(angles), np.cos(angles)], 1), rtol=0, atol=3e-16)
    assert np.isnan(sincos(math.nan)).all()


@pytest.mark.parametrize('bend', [0.0, 1e-12, 1e-9, 1e-4])
def test_derivative_of_gravity_is_right_next_to_the_straight_pose(bend):
    """A difference quotient over 1e-2 rad cannot resolve the bend; the exact derivative must agree with it there."""
    robot = sd.load('pneumatic_arm')
    q = np.full(6, bend)
    A = robot.linearize(q, np.zeros(6), np.zeros(6))[0]
    h = 1e-2

    def acceleration(k, i):
        return robot.forward_dynamics(q + i * h * np.eye(6)[k], np.zeros(6), np.zeros(6))

    weights = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
    columns = [
        sum(w * (acceleration(k, i) - acceleration(k, -i)) for i, w in enumerate(weights, 1)) / h
        for k in range(6)
    ]
    assert_close(A[6:, :6], np.array(columns).T, 1e-9)


# ---- refusals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('name', ['honeycomb_arm', 'floating_actuator'])
@pytest.mark.parametrize(
    ('bad', 'message'),
    [
        (np.zeros(3), r'q: expected shape \(\d+,\) or \(count, \d+\), got \(3,\)'),
        (np.zeros((2, 2, 2)), 'q: expected shape'),
        ('abc', 'q: expected numbers, got str'),
        (None, 'q: expected'),
        ([1.0, [2.0]], 'q: expected numbers, got list'),
        (['0.1'] * 8, 'q: expected numbers, got list'),
        (np.ones(8, complex), 'q: expected numbers, got ndarray'),
        ([10**400] * 8, 'q: expected numbers, got list'),
        (np.array([1.0, np.nan]), r'q: expected finite numbers, got nan at index \[1\]'),
        (np.full(8, np.inf), 'q: expected finite numbers, got inf'),
    ],
)
def test_wrong_states_are_named(name, bad, message):
    robot = sd.load(name)
    good = np.zeros(robot.nq)
    for call in (robot.inverse_dynamics, robot.forward_dynamics, robot.linearize):
        with pytest.raises(ValueError, match=message):
            call(bad, good, good)
    with pytest.raises(ValueError, match=message):
        robot.mass_matrix(bad)


def test_states_of_other_types_are_taken():
    robot = sd.load('honeycomb_arm')
    q, qd, qdd = (a[0] for a in shipped_states(robot, 1))
    expected = robot.inverse_dynamics(q, qd, qdd)
    assert_close(robot.inverse_dynamics(q.tolist(), tuple(qd), qdd), expected, 1e-15)
    assert_close(robot.inverse_dynamics(np.repeat(q, 2)[::2], qd, qdd), expected, 1e-15)
    whole = robot.inverse_dynamics(np.ones(8, dtype=int), np.zeros(8, dtype=np.float32), qdd)
    assert_close(whole, robot.inverse_dynamics(np.ones(8), np.zeros(8), qdd), 1e-15)


def test_batches_of_different_lengths_are_refused():
    robot = sd.load('honeycomb_arm')
    with pytest.raises(ValueError, match=r'batches of different lengths: q \(2, 8\), qd \(3, 8\)'):
        robot.inverse_dynamics(np.zeros((2, 8)), np.zeros((3, 8)), np.zeros(8))


def test_unknown_frames_are_refused():
    robot = sd.load('honeycomb_arm')
    zero = np.zeros(8)
    for call in (lambda: robot.jacobian(zero, 'hand'), lambda: robot.pose(zero, 'hand')):
        with pytest.raises(ValueError, match=r"frame: expected one of base, segment1.*tip; got 'hand'"):
            call()


def test_massless_robots_are_refused_by_forward_dynamics():
    data = description('jensen point')
    for segment in data['segments']:
        segment['mass'] = 0.0
        segment.pop('inertia', None)
    data['tip_load'] = 0.0
    robot = sd.Robot.from_dict(data)
    with pytest.raises(sd.SingularInertia, match='moves no mass'):
        robot.forward_dynamics(np.zeros(6), np.zeros(6), np.zeros(6))


def test_angles_of_discs_have_no_acceleration_at_the_straight_pose():
    robot = sd.load('fabric_arm')
    with pytest.raises(sd.SingularInertia, match='simulate'):
        robot.forward_dynamics(np.zeros(15), np.zeros(15), np.zeros(15))
