"""Whole robots: inverse kinematics recovers the coordinates from the robot's own forward kinematics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import soft_dynamics as sd
from soft_dynamics.geometry.se3 import pose_from_rpy
from soft_estimation.inverse_kinematics.pose_tracking import Tracking, configuration_from_poses, frame_index
from soft_estimation.inverse_kinematics.poses import pose

FREE_LINKS = {'segment_defaults': {'lengths': 'free', 'joint_mass_fraction': 0.5}}
TRACKED_LINKS = [{'name': f'body{k}', 'kind': 'mocap', 'frame': f'link{k}'} for k in range(1, 6)]
MOUNTED = [
    {'name': 'base', 'kind': 'mocap', 'frame': 'base', 'position': [0.1, 0.0, -0.02], 'rpy': [0.0, 0.3, 0.0]},
    {'name': 'tip', 'kind': 'vive', 'frame': 'tip', 'position': [0.0, 0.03, 0.01], 'rpy': [0.4, -0.2, 2.0]},
]
ROBOTS = {
    'pneumatic_arm': {},
    'honeycomb_arm': {},
    'honeycomb_arm, free links': FREE_LINKS,
    'floating_actuator': {'sensors': MOUNTED},
    'bending_actuator': {'sensors': TRACKED_LINKS},
    'fabric_arm': {},
}


@pytest.fixture(scope='module', params=ROBOTS)
def robot(request: Any) -> sd.Robot:
    return sd.load(request.param.partition(',')[0], ROBOTS[request.param])


def sensor_poses(robot: sd.Robot, q: np.ndarray, X_moved: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """X_WS of every tracked body."""
    d = robot.description
    X_WM = pose_from_rpy(d.mount.position, d.mount.rpy)
    X_MF = robot.forward_kinematics(q)
    return {
        s.name: (np.eye(4) if X_moved is None else X_moved)
        @ X_WM
        @ X_MF[frame_index(robot, s)]
        @ pose_from_rpy(s.position, s.rpy)
        for s in d.sensors
        if s.kind in ('mocap', 'vive')
    }


def workspace(robot: sd.Robot, count: int) -> np.ndarray:
    """Random coordinates of both signs around rest, including the rest pose."""
    reach = np.array(
        [0.03 if name.rpartition('_')[2] in ('d1', 'd2', 'dl') else 1.2 for name in robot.coordinate_names]
    )
    reach = np.where([name.endswith(('_dx', '_dy')) for name in robot.coordinate_names], 0.07, reach)
    q = robot.rest + reach * np.random.default_rng(1).uniform(-1.0, 1.0, (count, robot.nq))
    q[0] = robot.rest
    return q


def test_round_trip(robot: sd.Robot) -> None:
    tracking = Tracking(robot)
    for q in workspace(robot, 60):
        result = tracking.configuration(sensor_poses(robot, q), near=robot.rest + 0.95 * (q - robot.rest))
        assert np.max(np.abs(result.q - q)) < 1e-9
        assert np.all(result.observed)
        assert all(r.rotation < 1e-9 and r.position < 1e-9 for r in result.residuals.values())


@pytest.mark.parametrize('angles', ['axis_angle', 'zxz'])
@pytest.mark.parametrize('clear', [0.0, 1e-16, 1e-14, 1e-12, 1e-10, 1e-8, 1e-7, 1e-6, 1e-4, 1e-2])
def test_discs_next_to_their_singular_poses_come_back_out_of_the_world(angles: str, clear: float) -> None:
    """Poses for any `near`; angles as far as poses rounded at 6 m (1e-15, some ten times) determine them.

    Within 1e-12 rad alpha and phi stay at `near`; three discs in a row have a few times that error.
    """
    robot, rng = sd.load('fabric_arm', {'segment_defaults': {'angles': angles}}), np.random.default_rng(4)
    tracking = Tracking(robot)
    for _ in range(20):
        q = rng.uniform(-1.2, 1.2, (3, 5))
        q[:, 1] = rng.choice([0.0, np.pi], 3) + clear * rng.choice([-1.0, 1.0], 3)
        q[:, 3] = rng.choice([-0.5, 0.5], 3) * np.pi + clear * rng.choice([-1.0, 1.0], 3)
        poses = sensor_poses(robot, q.ravel())
        X_MF = robot.forward_kinematics(q.ravel())
        for near in (None, rng.uniform(-3.0, 3.0, robot.nq), q.ravel() + rng.uniform(-0.1, 0.1, robot.nq)):
            found = tracking.configuration(poses, near).q
            X_found = robot.forward_kinematics(found)
            assert X_found == pytest.approx(X_MF, abs=1e-14 if clear > 1e-12 else 3e-11)
        if clear > 1e-12:
            assert found == pytest.approx(q.ravel(), abs=1e-14 / clear)  # 1e-9 from 1e-5 rad on


def test_a_motion_comes_back_as_a_whole_and_set_by_set(robot: sd.Robot) -> None:
    tracking = Tracking(robot)
    path = robot.rest + np.linspace(0.95, 1.0, 40)[:, None] * (workspace(robot, 2)[1] - robot.rest)
    sets = [sensor_poses(robot, q) for q in path]
    motion = tracking.configurations({name: [X[name] for X in sets] for name in sets[0]}, near=path[0])
    np.testing.assert_allclose(motion.q, path, atol=1e-9)
    assert np.all(motion.observed)
    near = path[0]
    for k, poses in enumerate(sets):
        one = tracking.configuration(poses, near)
        np.testing.assert_allclose(motion.q[k], one.q, atol=1e-12)
        for name, residual in one.residuals.items():
            assert motion.residuals[name].position[k] == pytest.approx(residual.position, abs=1e-12)
        near = one.q


def test_a_joint_that_turns_on_keeps_its_turns() -> None:
    robot = sd.load('bending_actuator', {'sensors': TRACKED_LINKS})
    path = np.outer(np.linspace(0.0, 1.0, 60), np.linspace(20.0, -20.0, robot.nq))
    sets = [sensor_poses(robot, q) for q in path]
    motion = Tracking(robot).configurations({name: [X[name] for X in sets] for name in sets[0]})
    np.testing.assert_allclose(motion.q, path, atol=1e-9)


def test_quaternions_of_either_sign_give_the_same_state(robot: sd.Robot) -> None:
    q = workspace(robot, 2)[1]
    states = []
    for sign in (1.0, -1.0):
        poses = {
            name: pose(sign * Rotation.from_matrix(X[:3, :3]).as_quat(), X[:3, 3])
            for name, X in sensor_poses(robot, q).items()
        }
        states.append(configuration_from_poses(robot, poses, near=q).q)
    assert np.array_equal(*states)
    assert np.max(np.abs(states[0] - q)) < 1e-9


def test_a_rig_that_was_moved_is_seen_at_its_base_and_does_not_bend_the_robot() -> None:
    robot = sd.load('honeycomb_arm')
    q = workspace(robot, 2)[1]
    moved = pose_from_rpy([0.02, -0.01, 0.0], [0.01, 0.0, 0.03])
    result = configuration_from_poses(robot, sensor_poses(robot, q, moved))
    assert result.q == pytest.approx(q, abs=1e-9)
    assert result.residuals['plate0'].position > 0.02
    assert result.residuals['plate4'].position < 1e-9


def test_a_body_that_is_not_seen_is_bridged_if_the_others_tell_enough() -> None:
    robot = sd.load('honeycomb_arm')
    for q in 0.5 * workspace(robot, 12):
        poses = sensor_poses(robot, q)
        del (
            poses['plate0'],
            poses['plate2'],
        )  # segments 2 and 3 between plates 1 and 3: 4 coordinates, 6 numbers
        result = configuration_from_poses(robot, poses)
        assert result.q == pytest.approx(q, abs=1e-9)
        assert np.all(result.observed)


def test_two_bodies_that_are_not_seen_leave_a_choice_and_it_says_so() -> None:
    """Three segments between two plates: several bends give the same poses."""
    robot = sd.load('honeycomb_arm')
    q = np.array([0.2, -0.1, 0.3, 0.1, -0.2, 0.3, 0.1, -0.3])
    poses = sensor_poses(robot, q)
    del poses['plate2'], poses['plate3']
    far, near = (configuration_from_poses(robot, poses, at) for at in (None, q + 0.02))
    assert near.q == pytest.approx(q, abs=1e-9)
    assert np.abs(far.q - q).max() > 0.1
    for result in (far, near):
        assert result.observed.tolist() == [True] * 2 + [False] * 6
        assert result.residuals['plate4'].position < 1e-9


def test_what_nobody_sees_keeps_its_value_and_says_so() -> None:
    robot = sd.load('honeycomb_arm')
    q, near = workspace(robot, 2)[1], np.linspace(-0.1, 0.1, 8)
    poses = sensor_poses(robot, q)
    result = configuration_from_poses(robot, {'plate1': poses['plate1']}, near)
    assert result.observed.tolist() == [True] * 2 + [False] * 6
    assert result.q[:2] == pytest.approx(q[:2], abs=1e-9)
    assert np.array_equal(result.q[2:], near[2:])

    tip_only = configuration_from_poses(robot, {'plate4': poses['plate4']}, near)
    assert not np.all(tip_only.observed)  # 8 coordinates from 6 numbers
    assert tip_only.residuals['plate4'].position < 1e-6
    assert not np.any(configuration_from_poses(robot, {}, near).observed)


def test_a_wrong_marker_shows_in_the_residuals() -> None:
    robot = sd.load('honeycomb_arm')
    poses = sensor_poses(robot, np.zeros(8))
    poses['plate2'] = poses['plate2'] @ pose_from_rpy([0.0, 0.0, 0.05], [0.0, 0.0, 0.5])
    residuals = configuration_from_poses(robot, poses).residuals
    assert residuals['plate2'].position == pytest.approx(0.05, abs=1e-9)
    assert residuals['plate2'].rotation == pytest.approx(0.5, abs=1e-6)


def test_misuse_is_refused() -> None:
    robot = sd.load('honeycomb_arm')
    with pytest.raises(ValueError, match=r'plate0, plate1.*got .tip.'):
        configuration_from_poses(robot, {'tip': np.eye(4)})
    with pytest.raises(ValueError, match=r"poses\['plate1'\].*finite"):
        configuration_from_poses(robot, {'plate1': np.full((4, 4), np.nan)})
    with pytest.raises(ValueError, match='near'):
        configuration_from_poses(robot, {}, near=np.zeros(3))
