"""References pass through their way-points, smoothly and without a jump at the start; invalid ones are rejected."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from soft_control import references
from soft_control.references import JointPath, JointSample, PosePath
from soft_control.safety.plausibility import Plausible
from soft_control.safety.state_machine import Limits
from soft_dynamics.geometry import se3

START = JointSample(np.array([0.1, -0.2]), np.array([0.3, 0.0]), np.array([0.0, 0.5]))
TIMES = [0.5, 1.0, 2.0]
POINTS = np.array([[0.2, 0.0], [0.5, -0.4], [0.3, 0.1]])
RATES = np.array([[0.1, 0.2], [0.0, -0.3], [0.0, 0.0]])


@pytest.mark.parametrize('derivatives', [(), (RATES,), (RATES, 0.0 * RATES)])
def test_way_points_are_met_and_derivatives_are_consistent(derivatives: tuple[np.ndarray, ...]) -> None:
    path = JointPath(10.0, START, TIMES, POINTS, *derivatives)
    for t, q in zip(TIMES[:-1], POINTS, strict=False):
        np.testing.assert_allclose(path.sample(10.0 + t).q, q, atol=1e-12)
    np.testing.assert_allclose(path.sample(10.0).q, START.q, atol=1e-12)
    np.testing.assert_allclose(path.sample(10.0).qd, START.qd, atol=1e-12)
    h = 1e-4
    for t in (10.2, 10.73, 11.9):
        before, now, after = (path.sample(t + k * h) for k in (-1, 0, 1))
        np.testing.assert_allclose((after.q - before.q) / (2 * h), now.qd, atol=1e-5)
        np.testing.assert_allclose((after.qd - before.qd) / (2 * h), now.qdd, atol=1e-4)


def test_positions_alone_give_continuous_accelerations_from_start_to_rest() -> None:
    path = JointPath(0.0, START, TIMES, POINTS)
    np.testing.assert_allclose(path.sample(0.0).qdd, START.qdd, atol=1e-9)
    for t in TIMES[:-1]:
        np.testing.assert_allclose(path.sample(t - 1e-6).qdd, path.sample(t + 1e-6).qdd, atol=1e-3)
    np.testing.assert_allclose(path.sample(2.0 - 1e-6).qd, 0.0, atol=1e-4)
    end = path.sample(99.0)
    np.testing.assert_allclose(end.q, POINTS[-1])
    assert not np.any([end.qd, end.qdd])


def test_given_rates_and_accelerations_are_kept() -> None:
    accelerations = np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    path = JointPath(0.0, START, TIMES, POINTS, RATES, accelerations)
    np.testing.assert_allclose(path.sample(0.5).qd, RATES[0], atol=1e-9)
    np.testing.assert_allclose(path.sample(1.0).qdd, accelerations[1], atol=1e-8)


def test_a_first_way_point_where_the_robot_is_may_have_time_zero() -> None:
    path = JointPath(0.0, START, [0.0, 1.0], [START.q, POINTS[0]])
    np.testing.assert_allclose(path.sample(1.0).q, POINTS[0])


@pytest.mark.parametrize(
    ('times', 'points', 'message'),
    [
        ([0.0, 1.0], POINTS[:2], 'set a later time'),
        ([0.0], [START.q], 'set a later time'),
        ([1.0, 1.0], POINTS[:2], 'rising times'),
        ([-1.0, 1.0], POINTS[:2], 'rising times'),
        ([1.0, math.nan], POINTS[:2], 'rising times'),
        ([1.0], [[0.0, math.nan]], 'finite'),
        ([1.0], [[0.0]], 'shape'),
        ([], [], 'shape'),
    ],
)
def test_impossible_way_points_are_refused(
    times: list[float], points: list[list[float]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        JointPath(0.0, START, times, points)


def test_numbers_that_no_float_can_hold_are_refused() -> None:
    with pytest.raises(ValueError, match='too far apart for the time between them'):
        JointPath(0.0, START, [10.0], POINTS[:1], RATES[:1], [[1e308, 0.0]])


def allowed(coordinate: list[float], rate: list[float]) -> Limits:
    """Limits of a robot of two coordinates."""
    names, most, fastest = ('bend', 'length'), np.array(coordinate), np.array(rate)
    own = Plausible(names, np.zeros(2), most, fastest, np.eye(4), tip=1.0, tip_speed=1.0, turn_rate=1.0)
    return Limits(pressure_max=1.0, slew=1.0, state_timeout=1.0, plausible=own)


def test_motions_beyond_the_limits_are_refused() -> None:
    path = JointPath(0.0, START, [0.1], [[2.0, 0.0]])
    path.check(allowed([3.0, 0.3], [50.0, 50.0]))
    with pytest.raises(ValueError, match='trajectory has a rate of bend beyond 10'):
        path.check(allowed([3.0, 0.3], [10.0, 50.0]))
    with pytest.raises(ValueError, match='trajectory has bend more than 1'):
        path.check(allowed([1.0, 10.0], [50.0, 50.0]))
    with pytest.raises(ValueError, match=r'trajectory has length more than 0\.3'):
        JointPath(0.0, START, [0.1], [[0.0, 0.4]]).check(allowed([3.0, 0.3], [50.0, 50.0]))


def test_the_motion_is_looked_at_between_way_points_however_close_they_are() -> None:
    rest = JointSample(*np.zeros((3, 2)))
    hop = JointPath(0.0, rest, [5.0, 5.001, 10.0], [[0.0, 0.0], [0.02, 0.0], [0.02, 0.0]], np.zeros((3, 2)))
    with pytest.raises(ValueError, match='trajectory has a rate of bend beyond 10'):
        hop.check(allowed([3.0, 0.3], [10.0, 50.0]))
    for bad in (-1.0, 1.0):  # far away in between, although at rest in all way-points
        swing = JointPath(0.0, rest, [2.0], [[0.0, 0.0]], [[0.0, 0.0]], [[bad, 0.0]])
        with pytest.raises(ValueError, match=r'trajectory has bend more than 0\.05'):
            swing.check(allowed([0.05, 0.3], [10.0, 50.0]))


def test_extremes_are_those_of_samples() -> None:
    path = JointPath(0.0, START, TIMES, POINTS)
    samples = [path.sample(t) for t in np.linspace(0.0, 2.0, 2001)[:-1]]
    q, qd = np.array([s.q for s in samples]), np.array([s.qd for s in samples])
    for extremes in (references._extremes, references._extremes.py_func):
        low, high, fastest = extremes(path._knots, path._coefficients)
        np.testing.assert_allclose(low, q.min(0), atol=2e-3)
        np.testing.assert_allclose(high, q.max(0), atol=2e-3)
        np.testing.assert_allclose(fastest, np.abs(qd).max(0), rtol=1e-2)


def test_a_dense_trajectory_does_not_hold_up_the_commands() -> None:
    """3000 way-points of eight coordinates take at most a fifth of the default command_timeout."""
    t = 0.02 * np.arange(1.0, 3001.0)
    rest, points = JointSample(*np.zeros((3, 8))), np.tile(0.1 * np.sin(t)[:, None], 8)
    own = Plausible(('q',) * 8, np.zeros(8), np.ones(8), np.ones(8), np.eye(4), 1.0, 1.0, 1.0)
    took = []
    for _ in range(3):
        start = time.thread_time()
        JointPath(0.0, rest, t, points).check(
            Limits(pressure_max=1.0, slew=1.0, state_timeout=1.0, plausible=own)
        )
        took.append(time.thread_time() - start)
    assert min(took) < 0.04


def pose(turn: list[float], p: list[float]) -> np.ndarray:
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = Rotation.from_rotvec(turn).as_matrix(), p
    return X


def test_a_pose_path_keeps_its_speeds_and_its_twist_is_its_derivative() -> None:
    start, a, b = (
        pose([0, 0, 0], [0, 0, 0.5]),
        pose([0.5, 0.2, 0], [0.1, 0, 0.5]),
        pose([1.5, 0, 0], [0.1, 0, 0.5]),
    )
    path = PosePath(1.0, start, [a, b], speed=0.2, angular_speed=2.0)
    np.testing.assert_allclose(path.sample(1.5).X_WT, a, atol=1e-12)
    np.testing.assert_allclose(path.sample(9.0).X_WT, b, atol=1e-12)
    assert not np.any(path.sample(9.0).V_WT)
    h = 1e-5
    for t in (1.2, 1.6):
        before, now, after = (path.sample(t + k * h) for k in (-1, 0, 1))
        twist = se3.pose_error(after.X_WT, before.X_WT) / (2 * h)
        np.testing.assert_allclose(now.V_WT, twist, atol=1e-8)
        assert np.linalg.norm(now.V_WT[3:]) <= 0.2 + 1e-12
        assert np.linalg.norm(now.V_WT[:3]) <= 2.0 + 1e-12


def test_a_stream_of_poses_is_spread_over_its_period_and_expires() -> None:
    path = PosePath(0.0, pose([0, 0, 0], [0, 0, 0]), [pose([0, 0, 0], [1e-3, 0, 0])], 1.0, 1.0, 0.05, 0.4)
    np.testing.assert_allclose(path.sample(0.025).X_WT[0, 3], 0.5e-3)
    np.testing.assert_allclose(path.sample(0.025).V_WT, [0, 0, 0, 0.02, 0, 0])
    assert path.expires == 0.4


def test_a_pose_path_of_nothing_is_refused() -> None:
    for poses in ([], [np.full((4, 4), math.nan)]):
        with pytest.raises(ValueError, match='poses'):
            PosePath(0.0, np.eye(4), poses, 1.0, 1.0)
