"""Pressures for forces: against the papers' formulas and scipy's bounded least squares."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from soft_control.allocation.box_qp import minimise_in_box
from soft_control.allocation.pressure_allocation import BALANCE, EASE, Allocation, first_actuated
from soft_dynamics.robot import Robot, load

RANDOM = np.random.default_rng(6)
ROBOTS = ['honeycomb_arm', 'pneumatic_arm', 'floating_actuator', 'bending_actuator', 'fabric_arm']
robot_of = lru_cache(load)


def pose(robot: Robot) -> np.ndarray:
    return robot.rest + RANDOM.uniform(-0.02, 0.02, robot.nq)


def scale(robot: Robot) -> float:
    A = robot.actuation(robot.rest)[first_actuated(robot) :]
    return robot.description.actuation.pressure_max * np.abs(A).max()


@pytest.mark.parametrize('name', ROBOTS)
@pytest.mark.parametrize(
    'size', [0.3, 1.0, 5.0]
)  # relative to what the chambers can produce: easy, at the edge, far beyond
def test_forces_are_the_best_that_the_limits_allow(name: str, size: float) -> None:
    robot = robot_of(name)
    allocate, first = Allocation(robot, level=0.2), first_actuated(robot)
    for _ in range(20):
        A, tau = robot.actuation(pose(robot)), RANDOM.normal(size=robot.nq) * size * scale(robot)
        p = allocate(A, tau)
        assert np.all(p >= allocate.low)
        assert np.all(p <= allocate.high)
        unit = allocate.high[0]
        best = lsq_linear(A[first:] * unit, tau[first:], (allocate.low / unit, allocate.high / unit))
        error = np.sum((A[first:] @ p - tau[first:]) ** 2)
        assert error <= 2.0 * best.cost + 1e-5 * (scale(robot) ** 2 + best.cost)


@pytest.mark.parametrize('name', ['honeycomb_arm', 'pneumatic_arm'])
def test_all_three_wishes_together_agree_with_scipy(name: str) -> None:
    robot = robot_of(name)
    allocate = Allocation(robot, level=0.4)
    unit, w, n = allocate.high[0], allocate._weights, allocate.high.size
    for size in (0.2, 0.7, 2.0):
        A, tau = robot.actuation(robot.rest), RANDOM.normal(size=robot.nq) * size * scale(robot)
        stacked = np.vstack(
            [w[:, None] * A * unit, np.sqrt(BALANCE) * allocate._idle, np.sqrt(EASE) * np.eye(n)]
        )
        wish = np.concatenate([w * tau, np.zeros(n), np.full(n, np.sqrt(EASE) * 0.4)])
        best = lsq_linear(stacked, wish, (0.0, 1.0), method='bvls', tol=1e-15)
        np.testing.assert_allclose(allocate(A, tau) / unit, best.x, atol=1e-6)


def test_the_box_kernel_agrees_with_scipy_and_with_itself_uncompiled() -> None:
    for n in (1, 3, 8, 16):
        for _ in range(10):
            R, wish = RANDOM.normal(size=(n + 2, n)), 3.0 * RANDOM.normal(size=n + 2)
            low, high = -RANDOM.uniform(0.1, 1.0, n), RANDOM.uniform(0.1, 1.0, n)
            best = lsq_linear(R, wish, (low, high), method='bvls', tol=1e-14).x
            for kernel in (minimise_in_box, minimise_in_box.py_func):
                x = np.empty(n)
                assert kernel(R.T @ R, R.T @ wish, low, high, x) < 8 * n
                np.testing.assert_allclose(x, best, atol=1e-8)


def test_four_chambers_of_wang() -> None:
    """p1 = px + py, p2 = px, p3 = py, p4 = 0, and the complementary chambers for the other signs [Wang, eq. 22]."""
    robot = robot_of('honeycomb_arm')
    A, allocate = robot.actuation(robot.rest), Allocation(robot)
    px, py = 60e3, 20e3
    wished = np.tile([px + py, px, py, 0.0], 4)
    np.testing.assert_allclose(allocate(A, A @ wished), wished, atol=20.0)
    mirrored = wished.reshape(4, 4)[:, ::-1].ravel()
    np.testing.assert_allclose(allocate(A, A @ mirrored), mirrored, atol=20.0)
    p = allocate(A, RANDOM.normal(size=8) * 0.3 * scale(robot)).reshape(4, 4)
    np.testing.assert_allclose(p[:, 0] + p[:, 3], p[:, 1] + p[:, 2], atol=20.0)


def test_four_chambers_of_jensen() -> None:
    """tau = d A (p0 - p1, p2 - p3) [Jensen, eq. 24], around the co-contraction pressure."""
    robot = robot_of('pneumatic_arm')
    A, allocate = robot.actuation(robot.rest), Allocation(robot, level=0.5)
    dA = 0.05 * 2.827433388e-3
    p = allocate(A, np.tile([1.2, -2.0], 3)).reshape(3, 4)
    np.testing.assert_allclose((p[:, 0] - p[:, 1]) * dA, 1.2, rtol=1e-5)
    np.testing.assert_allclose((p[:, 2] - p[:, 3]) * dA, -2.0, rtol=1e-5)
    np.testing.assert_allclose(p.mean(1), 75e3, rtol=1e-5)


def test_three_chambers_of_mehl_in_a_bent_pose() -> None:
    robot = robot_of('floating_actuator')
    q = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.02, -0.01, 0.005])
    A = robot.actuation(q)
    wished = np.array([50e3, 20e3, 10e3])
    np.testing.assert_allclose(Allocation(robot)(A, A @ wished), wished, rtol=1e-4)


def test_co_contraction_changes_pressures_and_not_forces() -> None:
    robot = robot_of('honeycomb_arm')
    A = robot.actuation(robot.rest)
    tau = 0.2 * scale(robot) * RANDOM.normal(size=8)
    soft, stiff = (Allocation(robot, level)(A, tau) for level in (0.0, 0.5))
    np.testing.assert_allclose(A @ soft, A @ stiff, atol=1e-4 * scale(robot))
    assert stiff.mean() > soft.mean() + 30e3


def test_bounds_of_the_moment_are_kept() -> None:
    robot = robot_of('honeycomb_arm')
    allocate, A = Allocation(robot), robot.actuation(robot.rest)
    low, high = np.full(16, 50e3), np.full(16, 60e3)
    p = allocate(A, np.full(8, 3.0), low, high)
    assert np.all((low <= p) & (p <= high))


def test_refusals() -> None:
    robot = robot_of('honeycomb_arm')
    with pytest.raises(ValueError, match='level: expected 0 to 1, got 2'):
        Allocation(robot, level=2.0)
    with pytest.raises(ValueError, match='weights: expected 8 numbers'):
        Allocation(robot, weights=np.ones(3))
    with pytest.raises(ValueError, match='no chamber acts'):
        Allocation(robot, weights=np.zeros(8))
