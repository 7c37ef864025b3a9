"""The filter's compiled matrix operations against NumPy, SciPy and differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import soft_dynamics as sd
from soft_dynamics.geometry.se3 import are_rigid, pose_from_rpy
from soft_estimation.inverse_kinematics.kernels import carry_poses
from soft_estimation.inverse_kinematics.pose_tracking import Tracking
from soft_estimation.kalman import kernels
from soft_estimation.kalman.process_model import Belief, Process, ProcessNoise
from soft_estimation.kalman.sensors.bodies import PoseNoise, PoseSet, TrackedBodies

ALL = tuple(f'plate{k}' for k in range(5))


@pytest.mark.parametrize('compiled', [True, False])
def test_an_update_is_the_textbooks(compiled: bool) -> None:
    correct = kernels.correct if compiled else kernels.correct.py_func
    surprise = kernels.surprise if compiled else kernels.surprise.py_func
    rng = np.random.default_rng(1)
    root, H, x = rng.normal(size=(5, 5)), rng.normal(size=(3, 5)), rng.normal(size=5)
    P, r, variance, misfit = root @ root.T, rng.normal(size=3), np.array([0.1, 0.2, 0.3]), 2.0
    S = H @ P @ H.T + np.diag(variance)
    K = P @ H.T @ np.linalg.inv(S)
    x_after, P_after, nis = correct(x, P, r, H, variance)
    assert x_after == pytest.approx(x + K @ r)
    assert P_after == pytest.approx(P - K @ S @ K.T)
    assert nis == pytest.approx(r @ np.linalg.solve(S, r))
    assert correct(x, -P, r, H, variance)[2] == math.inf
    wider = S + misfit**2 * np.diag(variance)
    assert surprise(P, r, H, np.diag(variance), misfit) == pytest.approx(r @ np.linalg.solve(wider, r))


def test_what_is_no_pose_is_found_out() -> None:
    X = np.tile(np.eye(4), (3, 1, 1))
    assert are_rigid(X, 1e-6)
    for row, column, value in ((0, 0, 1.1), (0, 3, math.nan), (0, 0, math.nan), (3, 0, 0.1), (2, 2, -1.0)):
        wrong = X.copy()
        wrong[1, row, column] = value
        assert not are_rigid(wrong, 1e-6)


def test_a_glance_is_the_prediction_without_its_covariances() -> None:
    arm = sd.load('honeycomb_arm')
    process, rng = Process(arm, ProcessNoise()), np.random.default_rng(4)
    root, p = rng.normal(0.0, 1e-3, (24, 24)), rng.uniform(0.0, 1e5, 16)
    belief = Belief(0.0, rng.normal(0.0, 0.2, 24), root @ root.T)
    for t in (0.0, 1e-4, 2e-3, 1e-2):
        x, variance = process.glance(belief, t, p)
        after = process.predict(belief, t, p)
        assert x == pytest.approx(after.x, rel=1e-9, abs=1e-12)
        assert variance == pytest.approx(np.diagonal(after.P)[:16], rel=0.1)


def plates(arm: sd.Robot, bodies: tuple[str, ...], q: np.ndarray) -> dict[str, np.ndarray]:
    mount = pose_from_rpy(arm.description.mount.position, arm.description.mount.rpy)
    return {name: mount @ arm.forward_kinematics(q)[int(name[-1])] for name in bodies}


def mounted(arm: sd.Robot, misfit: float) -> TrackedBodies:
    return TrackedBodies(Tracking(arm), PoseNoise({'mocap': (2e-3, 5e-4)}, (misfit, misfit)))


def posed(mounting: TrackedBodies, poses: dict[str, np.ndarray]) -> PoseSet:
    return mounting.poses(0.0, tuple(poses), np.array(list(poses.values())))


@pytest.mark.parametrize('bodies', [('plate1', 'plate2', 'plate4'), ('plate4', 'plate0'), ('plate3',)])
def test_poses_have_exact_derivatives(bodies: tuple[str, ...]) -> None:
    """Each body refers to the previous one; at the pose of the model the innovation is zero, and moves against H."""
    arm = sd.load('honeycomb_arm')
    process, x, zero = (
        Process(arm, ProcessNoise()),
        np.random.default_rng(3).normal(0.0, 0.3, 24),
        np.zeros(16),
    )
    sample = posed(mounted(arm, 0.05), plates(arm, bodies, x[:8]))
    assert sample.sensors == tuple(sorted(bodies))
    innovation, H, *_ = sample.read(process, x, zero)
    assert innovation == pytest.approx(np.zeros(6 * len(bodies)), abs=1e-8)
    for k in range(24):
        step = np.zeros(24)
        step[k] = 1e-6
        up, down = sample.read(process, x + step, zero), sample.read(process, x - step, zero)
        assert (up.innovation - down.innovation) / 2e-6 == pytest.approx(-H[:, k], abs=1e-5 * np.abs(H).max())


def test_innovations_of_poses_that_refer_to_each_other_are_white() -> None:
    """At the true coordinates, with the given noise: each pose contributes only its own."""
    arm, rng, zero = sd.load('honeycomb_arm'), np.random.default_rng(5), np.zeros(16)
    bodies = ('plate1', 'plate2', 'plate4')
    process, mounting, x = Process(arm, ProcessNoise()), mounted(arm, 0.0), rng.normal(0.0, 0.3, 24)
    true, found = plates(arm, bodies, x[:8]), []
    for _ in range(1000):
        noisy = {}
        for name, X in true.items():
            noisy[name] = X.copy()
            noisy[name][:3, :3] = Rotation.from_rotvec(rng.normal(0.0, 2e-3, 3)).as_matrix() @ X[:3, :3]
            noisy[name][:3, 3] += rng.normal(0.0, 5e-4, 3)
        found.append(posed(mounting, noisy).read(process, x, zero).innovation)
    assert np.cov(np.array(found).T) == pytest.approx(np.eye(18), abs=0.2)


@pytest.mark.parametrize('wrong', [None, 'plate3'])
def test_poses_correct_in_one_go_as_when_read_first(wrong: str | None) -> None:
    arm, rng, zero = sd.load('honeycomb_arm'), np.random.default_rng(6), np.zeros(16)
    process, x, root = Process(arm, ProcessNoise()), rng.normal(0.0, 0.1, 24), rng.normal(0.0, 1e-3, (24, 24))
    poses, belief = plates(arm, ALL, x[:8] + 1e-3), Belief(0.0, x, root @ root.T)
    if wrong:
        poses[wrong][:3, 3] += 0.5
    sample, rule = posed(mounted(arm, 0.05), poses), np.array([50.0, 1.0, 8, 0.05])
    found = sample.correct(process, belief, zero, rule)
    read = sample.read(process, x, zero).correct(belief, rule)
    assert found.let_in == read.let_in == (3 if wrong else 5)
    for one, other in ((found.x, read.x), (found.P, read.P), (found.nis[: len(read.nis)], read.nis)):
        assert one == pytest.approx(other, rel=1e-12)


@pytest.mark.parametrize('compiled', [True, False])
def test_poses_are_carried_from_world_to_world(compiled: bool) -> None:
    carry = carry_poses if compiled else carry_poses.py_func
    rng = np.random.default_rng(7)
    X_MW, *others = (pose_from_rpy(*rng.normal(size=(2, 3))) for _ in range(7))
    X_WS, X_SF, X_MF = np.array(others[:3]), np.array(others[3:]), np.empty((3, 4, 4))
    carry(X_MW, X_WS, X_SF, X_MF)
    np.testing.assert_allclose(X_MF, X_MW @ X_WS @ X_SF, atol=1e-12)


def test_what_a_bent_segment_may_miss_is_not_taken_for_a_bend() -> None:
    """An error of 5 % of the displacement and a twist of 5 % of the squared bend are about one standard deviation."""
    arm, zero, x = sd.load('honeycomb_arm'), np.zeros(16), np.zeros(24)
    process, x[:2] = Process(arm, ProcessNoise()), (0.4, 0.3)
    poses = plates(arm, ('plate1',), x[:8])
    poses['plate1'] = poses['plate1'] @ pose_from_rpy([0.05 * 0.185 * 0.5, 0.0, 0.0], [0.0, 0.0, 0.05 * 0.25])
    strict, fair = (posed(mounted(arm, misfit), poses).read(process, x, zero) for misfit in (0.0, 0.05))
    assert np.sum(fair.innovation**2) < 6.0  # as many as there are numbers
    assert np.sum(strict.innovation**2) > 10.0 * np.sum(fair.innovation**2)


def test_who_refers_to_a_refused_body_refers_to_the_last_right_one() -> None:
    arm, zero, x = sd.load('honeycomb_arm'), np.zeros(16), np.zeros(24)
    process, mounting, poses = Process(arm, ProcessNoise()), mounted(arm, 0.0), plates(arm, ALL, x[:8])
    poses['plate2'][:3, 3] += 0.5
    poses['plate3'][:3, 3] -= 0.5
    last = posed(mounting, poses).without(2).without(2).behind(2)
    assert last.sensors == ('plate4',)
    assert last.place.frames[0, 2] == 1
    assert last.read(process, x, zero).innovation == pytest.approx(np.zeros(6), abs=1e-8)
