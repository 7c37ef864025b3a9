"""The URDF of a robot, read by Pinocchio, against the robot itself; urdf/ against robots/."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
import xacro

import soft_dynamics as sd
from soft_dynamics.geometry import urdf
from soft_dynamics.geometry.tube import frame_poses
from tools.urdf import stale

FOLDER = Path(__file__).resolve().parents[3] / 'urdf'
ROBOTS = ('bending_actuator', 'fabric_arm', 'floating_actuator', 'honeycomb_arm', 'pneumatic_arm')
ROUNDING = 1e-9  # [m]
TOLERANCE = {'pneumatic_arm': 1e-3}  # [m] arcs become straight slices; all other types are exact


def poses(robot: sd.Robot, count: int = 5) -> np.ndarray:
    """The rest pose, poses close to it and bends of up to 150 degrees a segment."""
    rng = np.random.default_rng(3)
    scale = np.array(
        [0.05 if n.endswith(('_dx', '_dy', '_dl')) else 2.6 / np.sqrt(2.0) for n in robot.coordinate_names]
    )
    share = np.concatenate([[0.0, 1e-12, 1e-6], rng.uniform(0.2, 1.0, count)])
    return robot.rest + share[:, None] * rng.uniform(-1, 1, (share.size, robot.nq)) * scale


def poses_by_pinocchio(text: str, values: dict[str, float]) -> dict[str, np.ndarray]:
    """Return the link poses of an independent reader."""
    model = pin.buildModelFromXML(text, mimic=True)
    q = pin.neutral(model)
    for name, value in values.items():
        q[model.joints[model.getJointId(name)].idx_q] = value
    data = model.createData()
    pin.framesForwardKinematics(model, data, q)
    return {frame.name: pose.homogeneous for frame, pose in zip(model.frames, data.oMf, strict=True)}


@pytest.mark.parametrize('name', ROBOTS)
def test_joint_states_and_urdf_put_every_frame_where_the_robot_has_it(name: str) -> None:
    robot = sd.load(name)
    made = urdf.model(robot)
    for q in poses(robot):
        seen = poses_by_pinocchio(urdf.to_xml(made), made.joint_positions(q))
        for frame, X_RF in zip(('base_link', *robot.frame_names[1:]), frame_poses(robot, q), strict=True):
            assert np.abs(seen[frame][:3, 3] - X_RF[:3, 3]).max() < TOLERANCE.get(name, ROUNDING)
            np.testing.assert_allclose(seen[frame][:3, :3], X_RF[:3, :3], atol=1e-9)
        np.testing.assert_array_equal(seen['tip'], seen[robot.frame_names[-1]])


def test_free_links_slide_exactly() -> None:
    robot = sd.load('honeycomb_arm', {'segment_defaults': {'lengths': 'free'}})
    made = urdf.model(robot)
    q = robot.rest + np.random.default_rng(1).uniform(-0.03, 0.03, robot.nq)
    seen = poses_by_pinocchio(urdf.to_xml(made), made.joint_positions(q))
    np.testing.assert_allclose(seen['tip'], frame_poses(robot, q)[-1], atol=ROUNDING)


@pytest.mark.parametrize('slices', [4, 8, 32])
def test_straight_slices_err_by_no_more_than_their_formula(slices: int) -> None:
    robot = sd.load('pneumatic_arm')
    made = urdf.model(robot, slices)
    q = np.array([0.0, 2.0, 0.0, -2.0, 2.0, 0.0])
    tip = poses_by_pinocchio(urdf.to_xml(made), made.joint_positions(q))['tip'][:3, 3]
    error = np.linalg.norm(tip - frame_poses(robot, q)[-1, :3, 3])
    assert 0.0 < error <= 3 * 0.2 * 2.0**2 / (24 * slices**2)


@pytest.mark.parametrize('name', ROBOTS)
def test_own_transforms_agree_with_the_urdf(name: str) -> None:
    robot = sd.load(name)
    made = urdf.model(robot)
    q = poses(robot)[-1]
    seen = poses_by_pinocchio(urdf.to_xml(made), made.joint_positions(q))
    X = np.eye(4)
    for joint, X_PC in zip(made.joints, made.transforms(q), strict=True):
        X = X @ X_PC
        np.testing.assert_allclose(seen[joint.child], X, atol=1e-12)


def test_shipped_files_are_up_to_date() -> None:
    outdated = sorted(path.name for path in stale(FOLDER, list(ROBOTS)))
    assert outdated == [], 'make them: python -m tools.urdf --all'


@pytest.mark.parametrize('name', ROBOTS)
def test_xacro_mounts_the_arm_on_another_link(name: str) -> None:
    mappings = {'robot': name, 'xyz': '0.1 0.2 0.3', 'rpy': '0 0 1.5'}
    text = xacro.process_file(str(FOLDER / 'on_table.urdf.xacro'), mappings=mappings).toxml()
    robot = sd.load(name)
    made = urdf.model(robot)
    q = poses(robot)[-1]
    seen = poses_by_pinocchio(text, {f'arm_{k}': v for k, v in made.joint_positions(q).items()})
    X_RT = np.eye(4)
    X_RT[:3, :3], X_RT[:3, 3] = pin.rpy.rpyToMatrix(0.0, 0.0, 1.5), (0.1, 0.2, 0.3)
    relative = np.linalg.multi_dot(list(made.transforms(q)[1:]))
    np.testing.assert_allclose(seen['arm_tip'], X_RT @ relative, atol=1e-9)


@pytest.mark.skipif(shutil.which('check_urdf') is None, reason='check_urdf is not installed')
@pytest.mark.parametrize('name', ROBOTS)
def test_check_urdf_finds_nothing_wrong(name: str) -> None:
    done = subprocess.run(
        ['check_urdf', FOLDER / f'{name}.urdf'], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'Successfully Parsed XML' in done.stdout


def test_no_slices_are_refused() -> None:
    with pytest.raises(ValueError, match='slices: expected at least 1, got 0'):
        urdf.model(sd.load('pneumatic_arm'), 0)
