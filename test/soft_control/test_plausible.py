"""Plausibility limits: every shipped robot stays within them at full pressure; several times that is beyond."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from closed_loop import robot_of

from soft_control.allocation.pressure_allocation import first_actuated, generic_pose
from soft_control.safety.plausibility import Plausible
from soft_control.safety.state_machine import Limits, State, pose_reference_fault, state_fault
from soft_dynamics.description.robot_description import Description
from soft_dynamics.description.robot_files import robot_names
from soft_dynamics.geometry.se3 import moved
from soft_dynamics.robot import Robot
from soft_dynamics.segments import Arc, Material, Universal


def strokes(robot: Robot) -> tuple[Any, Any]:
    """Coordinates and rates while the chambers of a coordinate, one direction or the other, get full pressure."""
    actuation, zero = robot.description.actuation, np.zeros(robot.nq)
    t, step = np.arange(0.0, 1.5, 0.01), 0.002 if robot.name == 'fabric_arm' else 0.005  # also while it falls
    A = robot.actuation(generic_pose(robot))
    filled = {tuple(sign * row > 0.1 * np.abs(row).max()) for row in A for sign in (-1.0, 1.0) if np.any(row)}
    rise = 1.0 - np.exp(-t / max(actuation.valve_lag, 1e-3))
    inputs = [actuation.pressure_max * np.outer(rise, chambers) for chambers in filled]
    motions = [robot.simulate(robot.rest, zero, pressure, t, step=step) for pressure in inputs]
    return np.concatenate([m.q for m in motions]), np.concatenate([m.qd for m in motions])


def fault_at(limits: Limits, q: Any, qd: Any) -> str:
    return state_fault(limits, 0.0, State(0.0, q, qd), None)


@pytest.mark.parametrize('name', robot_names())
def test_what_all_the_air_does_is_plausible_and_several_times_that_is_not(name: str) -> None:
    robot = robot_of(name)
    limits, (q, qd) = Limits.of(robot), strokes(robot)
    assert {fault_at(limits, *row) for row in zip(q, qd, strict=True)} == {''}
    most, fastest = np.max(np.abs(q - robot.rest)), np.max(np.abs(qd))
    for k in range(first_actuated(robot), robot.nq):
        turns = limits.plausible.coordinate[k] > 2.0 * math.pi  # allowed for any time
        axis = np.eye(robot.nq)[k]
        for factor in (-7.0, 7.0):
            far = robot.rest + (8.0 * math.pi if turns else most) * factor * axis
            assert fault_at(limits, far, 0.0 * axis).startswith(f'state has {robot.coordinate_names[k]} more')
            fast = fault_at(limits, robot.rest, 5.0 * factor * fastest * axis)
            assert fast.startswith(f'state has a rate of {robot.coordinate_names[k]}')


@pytest.mark.parametrize(
    ('name', 'coordinate', 'good', 'bad'),
    [
        ('bending_actuator', 'link1_theta', 0.6, 1.1),
        ('fabric_arm', 'disc2_beta', -2.2, -3.3),
        ('fabric_arm', 'disc2_alpha', 9.0, 19.0),
        ('floating_actuator', 'actuator_dx', 0.05, 0.09),
        ('floating_actuator', 'actuator_dy', -0.05, 3.0),
        ('floating_actuator', 'actuator_dl', 0.05, -0.07),
        ('floating_actuator', 'base_x', 2.0, 4.0),
        ('floating_actuator', 'base_gamma', -3.14, 3.3),
        ('honeycomb_arm', 'segment4_theta2', 1.4, -2.1),
        ('pneumatic_arm', 'joint3_u', 1.4, 2.1),
    ],
)
def test_limits_of_the_shipped_robots(name: str, coordinate: str, good: float, bad: float) -> None:
    robot = robot_of(name)
    limits, axis = Limits.of(robot), np.eye(robot.nq)[robot.coordinate_names.index(coordinate)]
    assert fault_at(limits, good * axis, 0.0 * axis) == ''
    assert fault_at(limits, bad * axis, 0.0 * axis).startswith(f'state has {coordinate} more than')


def test_a_moving_base_has_rates_of_its_own_and_takes_the_tip_along() -> None:
    robot = robot_of('floating_actuator')
    own, safety = Plausible.of(robot), robot.description.safety
    arm, base = safety.rate_limit, safety.base_rate_limit
    np.testing.assert_allclose(own.rate[:6], base)
    reach = robot.length * (1.3 + safety.stretch_limit)
    assert (own.tip_speed, own.turn_rate) == pytest.approx((reach * arm + base, arm + base))


def test_lengths_count_from_those_at_rest() -> None:
    honeycomb, pneumatic = (robot_of(name).description for name in ('honeycomb_arm', 'pneumatic_arm'))
    free = Robot(replaced(honeycomb, Universal, lengths='free'))
    own = Plausible.of(free)
    assert own.names[:4] == ('segment1_d1', 'segment1_theta1', 'segment1_theta2', 'segment1_d2')
    np.testing.assert_allclose(own.centre, free.rest)
    np.testing.assert_allclose(own.coordinate[:4], [0.04625, 2.0, 2.0, 0.04625])
    np.testing.assert_allclose(own.rate[:4], [0.925, 20.0, 20.0, 0.925])
    longer = Robot(replaced(pneumatic, Arc, extensible=True, material=Material()))
    own = Plausible.of(longer)
    np.testing.assert_allclose(own.centre, longer.rest)
    np.testing.assert_allclose(own.coordinate[:3], [2.0, 2.0, 0.1])
    assert own.tip == pytest.approx(0.92 * 1.8)


def replaced(description: Description, kind: type, **changes: Any) -> Description:
    segments = [dataclasses.replace(s, **changes) if isinstance(s, kind) else s for s in description.segments]
    return dataclasses.replace(description, segments=tuple(segments))


@pytest.mark.parametrize('name', robot_names())
def test_the_tip_may_go_no_further_than_the_robot_reaches(name: str) -> None:
    """The limits are relative to the base: they move with it."""
    robot = robot_of(name)
    q = robot.rest.copy()
    if first_actuated(robot):
        q[:6] = [1.0, -2.0, 0.5, 0.0, 0.0, 1.0]
    limits, X_WT, X_WB = Limits.of(robot), robot.pose(q, 'tip'), robot.forward_kinematics(q)[0]
    assert pose_reference_fault(limits, q, X_WT, None, 0.0) == ''
    away = X_WT[:3, 3] - X_WB[:3, 3]
    for factor in (-3.0, 2.0):
        far = moved(X_WT, np.r_[np.zeros(3), (factor - 1.0) * away])
        assert pose_reference_fault(limits, q, far, None, 0.0).startswith('reference is more than')
