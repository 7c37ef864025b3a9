"""The path of the tip through way-points of the coordinates."""

from __future__ import annotations

import numpy as np
import pytest

from soft_dynamics.geometry.tip_path import tip_path
from soft_dynamics.geometry.tube import frame_poses
from soft_dynamics.robot import Robot, load


@pytest.fixture(scope='module')
def robot() -> Robot:
    return load('honeycomb_arm')


def tip(robot: Robot, q: np.ndarray) -> np.ndarray:
    return frame_poses(robot, q)[-1, :3, 3]


def test_it_begins_at_the_pose_and_goes_through_the_way_points(robot: Robot) -> None:
    q0 = np.full(robot.nq, 0.05)
    first, second = q0.copy(), q0.copy()
    first[2], second[2] = 0.3, -0.2
    path = tip_path(robot, q0, [robot.coordinate_names[2]], [1.0, 3.0], np.array([[0.3], [-0.2]]))
    assert path[0] == pytest.approx(tip(robot, q0), abs=1e-9)
    assert path[-1] == pytest.approx(tip(robot, second), abs=1e-9)
    assert np.min(np.linalg.norm(path - tip(robot, first), axis=1)) < 5e-3
    assert np.max(np.linalg.norm(np.diff(path, axis=0), axis=1)) < 0.02


@pytest.mark.parametrize(
    ('names', 'times', 'points', 'problem'),
    [
        (['elbow'], [1.0], [[0.1]], 'names'),
        ([], [1.0], [[]], 'names'),
        (None, [], np.zeros((0, 1)), 'times'),
        (None, [2.0, 1.0], [[0.1], [0.2]], 'times'),
        (None, [1.0, 2.0], [[0.1]], 'points'),
        (None, [1.0], [[np.nan]], 'points'),
    ],
)
def test_what_is_no_motion_is_refused(robot: Robot, names, times, points, problem) -> None:
    names = [robot.coordinate_names[0]] if names is None else names
    with pytest.raises(ValueError, match=problem):
        tip_path(robot, robot.rest, names, times, points)
