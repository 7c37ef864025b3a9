"""The model-based filter on a whole arm: sets of poses, exact wrench, and a displaced robot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import soft_dynamics as sd
from soft_dynamics.geometry.se3 import pose_from_rpy
from soft_estimation.kalman.model_filter import FilterConfig, ModelFilter
from soft_estimation.kalman.process_model import CONSTANT_WORK, Process, ProcessNoise, slopes

PLATES = [f'plate{k}' for k in range(5)]
BENT = np.array([0.5, -0.3, 0.4, 0.2, -0.5, 0.3, 0.4, -0.6])


@pytest.fixture(scope='module')
def arm() -> sd.Robot:
    return sd.load('honeycomb_arm')


def plates(
    arm: sd.Robot, q: np.ndarray, rng: np.random.Generator, moved: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """X_WS of all plates with noise; `moved` is the displacement of the whole rig."""
    mount = pose_from_rpy(arm.description.mount.position, arm.description.mount.rpy)
    out = {}
    for name, X_MF in zip(PLATES, arm.forward_kinematics(q), strict=True):
        noise = pose_from_rpy(rng.normal(0.0, 1e-4, 3), rng.normal(0.0, 1e-3, 3))
        out[name] = (np.eye(4) if moved is None else moved) @ mount @ X_MF @ noise
    return out


def feed(arm: sd.Robot, f: ModelFilter, times: Any, q: np.ndarray, **where: Any) -> None:
    rng = np.random.default_rng(7)
    for t in times:
        f.feed_pressure(t, np.zeros(16))
        f.feed_poses(t, plates(arm, q, rng, **where))


def test_a_set_of_poses_is_worth_as_much_as_its_poses(arm: sd.Robot) -> None:
    """Also at the start, far from the prior, and with one wrong pose."""
    one, many = ModelFilter(arm), ModelFilter(arm)
    rng = np.random.default_rng(1)
    for k, t in enumerate(np.arange(0.0, 0.1, 0.01)):
        poses = plates(arm, 0.2 * BENT, rng)
        if k == 5:
            poses['plate2'][:3, 3] += 0.5
        many.feed_poses(t, poses)
        for name, X_WS in poses.items():
            one.feed_pose(t, name, X_WS)
    assert many.innovations['plate2'].rejected == one.innovations['plate2'].rejected == 1
    assert sum(many.innovations[name].rejected for name in PLATES) == 1
    for f in (one, many):
        belief = f.belief()
        sigma = np.sqrt(np.diagonal(belief.P))[:8]
        assert sigma.max() < 0.02
        assert np.all(np.abs(belief.x[:8] - 0.2 * BENT) < 4.0 * sigma)


@pytest.mark.parametrize('name', ['honeycomb_arm', 'pneumatic_arm', 'bending_actuator', 'floating_actuator'])
def test_the_base_wrench_has_exact_derivatives(name: str) -> None:
    robot = sd.load(name)
    process, rng = Process(robot, ProcessNoise()), np.random.default_rng(2)
    x, p = rng.normal(0.0, 0.02, process.size), rng.uniform(0.0, 1e4, len(robot.chamber_names))
    n = robot.nq

    def wrench(x: np.ndarray) -> np.ndarray:
        return robot.base_wrench(x[..., :n], x[..., n : 2 * n], process.acceleration(x, p))

    W, H = process.base_wrench(x, p)
    expected = slopes(wrench, x)
    assert pytest.approx(wrench(x), abs=1e-9 * np.abs(W).max()) == W
    assert pytest.approx(expected, abs=1e-6 * np.abs(expected).max()) == H


@pytest.mark.parametrize('name', sd.robot_names())
def test_forces_that_count_as_constant_are(name: str) -> None:
    robot, rng = sd.load(name), np.random.default_rng(3)
    if all(chamber.work in CONSTANT_WORK for chamber in robot.description.actuation.chambers):
        q = robot.rest + rng.normal(0.0, 0.05, (20, robot.nq))
        assert np.ptp(robot.actuation(q), axis=0).max() == 0.0


def test_a_robot_that_is_suddenly_elsewhere_is_found_and_followed(arm: sd.Robot) -> None:
    """The robot is held at a pose that the model without pressure would leave at once."""
    f = ModelFilter(arm)
    feed(arm, f, np.arange(0.0, 0.3, 0.01), 0.1 * BENT)
    assert f.resets == 0
    feed(arm, f, np.arange(0.3, 0.6, 0.01), BENT)
    assert f.resets == 1
    assert f.belief().x[:8] == pytest.approx(BENT, abs=5e-3)
    assert f.innovations['plate4'].rejected < 14  # of the 30 since
    assert np.abs(f.belief().x[8:16]).max() < 0.5


@pytest.mark.parametrize('seed', range(6))
def test_poses_without_order_do_not_move_the_state(arm: sd.Robot, seed: int) -> None:
    """For half a second every pose is elsewhere, each time at a place that the robot could reach."""
    f, rng = ModelFilter(arm), np.random.default_rng(seed)
    feed(arm, f, np.arange(0.0, 0.3, 0.01), np.zeros(8))
    for t in np.arange(0.3, 0.8, 0.01):
        f.feed_poses(t, plates(arm, rng.uniform(-2.0, 2.0, 8), rng))
        assert np.abs(f.belief().x[:8]).max() < 0.01
    assert f.resets == 0
    feed(arm, f, np.arange(0.8, 0.85, 0.01), np.zeros(8))
    assert np.abs(f.belief().x[:8]).max() < 5e-3
    assert f.innovations['plate4'].rejected == 52  # and the first two right ones


def test_poses_of_a_robot_that_is_too_fast_are_not_followed(arm: sd.Robot) -> None:
    """The poses lie on one line, at 30 rad/s; the filter accepts up to 15."""
    for spread, is_believed in ((5.0, False), (15.0, True)):
        config = FilterConfig(recovery_time=0.05, start_rate_spread=spread)
        f, rng = ModelFilter(arm, config), np.random.default_rng(5)
        feed(arm, f, np.arange(0.0, 0.3, 0.01), np.zeros(8))
        for t in np.arange(0.3, 0.4, 0.01):
            f.feed_poses(t, plates(arm, np.full(8, -1.5 + 30.0 * (t - 0.3)), rng))
        assert (f.resets > 0) == is_believed


def test_a_rig_that_was_moved_as_a_whole_does_not_bend_the_robot(arm: sd.Robot) -> None:
    moved = pose_from_rpy([0.3, -0.2, 0.1], [0.1, 0.2, -0.4])
    f = ModelFilter(arm)
    feed(arm, f, np.arange(0.0, 0.2, 0.01), 0.1 * BENT, moved=moved)  # from the start
    assert f.innovations['plate4'].rejected == 0
    assert f.belief().x[:8] == pytest.approx(0.1 * BENT, abs=5e-3)
    feed(arm, f, np.arange(0.2, 0.5, 0.01), 0.1 * BENT)  # and back, while the filter runs
    assert f.belief().x[:8] == pytest.approx(0.1 * BENT, abs=5e-3)


def test_it_begins_with_the_first_poses_that_belong_to_the_robot(arm: sd.Robot) -> None:
    f = ModelFilter(arm)
    f.feed_pressure(0.0, np.zeros(16))
    assert f.started
    assert not f.located
    f.feed_poses(0.01, {name: np.eye(4) for name in PLATES})
    assert not f.located
    feed(arm, f, (0.02, 0.03), BENT)
    assert f.located
    assert f.belief().x[:8] == pytest.approx(BENT, abs=5e-3)
    assert FilterConfig().recovery_time > 0.03
