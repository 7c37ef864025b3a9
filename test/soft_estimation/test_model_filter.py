"""The model-based filter: its parts against scipy, its consistency by statistics, its response to faults."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from scipy.stats import chi2

import soft_dynamics as sd
from soft_dynamics.geometry.se3 import pose_from_rpy
from soft_estimation.kalman.kernels import discretise
from soft_estimation.kalman.model_filter import FilterConfig, ModelFilter
from soft_estimation.kalman.process_model import Belief, Process, ProcessNoise

FINGER = {
    'format': 1,
    'name': 'finger',
    'gravity': [0.0, 0.0, -9.81],
    'segments': [
        {
            'name': 'joint',
            'type': 'arc',
            'length': 0.2,
            'mass': 0.4,
            'radius': 0.03,
            'material': {'stiffness': [6.0, 6.0], 'damping': [0.15, 0.15]},
        },
        {'name': 'link', 'type': 'link', 'length': 0.05, 'mass': 0.2, 'inertia': [1e-4, 1e-4, 1e-4]},
    ],
    'actuation': {
        'pressure_max': 1e5,
        'chambers': [
            {'name': 'a', 'segment': 'joint', 'gain': [5e-5, 0.0]},
            {'name': 'b', 'segment': 'joint', 'gain': [0.0, 5e-5]},
        ],
    },
    'mount': {'position': [0.0, 0.0, 0.4], 'rpy': [0.0, 0.5, 0.0]},
    'sensors': [
        {
            'name': 'marker',
            'kind': 'mocap',
            'frame': 'tip',
            'position': [0.02, 0.0, 0.0],
            'rpy': [0.0, 0.0, 1.0],
        },
        {'name': 'ft', 'kind': 'ft', 'frame': 'base', 'position': [0.0, 0.0, -0.03]},
        {'name': 'fiber', 'kind': 'fiber', 'frame': 'base'},
    ],
}
T = np.arange(0.0, 2.0, 0.01)
SIGMA_ROTATION, SIGMA_POSITION = 5e-3, 1e-3
MODEL_RIGHT = FilterConfig(
    process=ProcessNoise(force=0.005, drift=0.0),
    mocap_rotation_noise=SIGMA_ROTATION,
    mocap_position_noise=SIGMA_POSITION,
    place_misfit=0.0,
    twist_misfit=0.0,
    start_spread=0.3,
    start_rate_spread=1.0,
    gate_probability=1.0 - 1e-9,  # the gate would cut off the tail
)


@pytest.fixture(scope='module')
def robot() -> sd.Robot:
    return sd.Robot.from_dict(FINGER)


def pressure(t: float) -> np.ndarray:
    return 4e4 * np.array([1.0 + math.sin(5.0 * t), 1.0 + math.cos(3.0 * t)])


def integrate(robot: sd.Robot, unknown: np.ndarray, p: Any = pressure) -> tuple[np.ndarray, np.ndarray]:
    def rate(t: float, x: np.ndarray) -> np.ndarray:
        tau = robot.actuation(x[:2]) @ p(t) + unknown
        return np.concatenate([x[2:], robot.forward_dynamics(x[:2], x[2:], tau)])

    x = solve_ivp(rate, (0.0, T[-1]), np.zeros(4), 'DOP853', T, rtol=1e-8, atol=1e-9).y.T
    return x[:, :2], x[:, 2:]


@pytest.fixture(scope='module')
def truth(robot: sd.Robot) -> tuple[np.ndarray, np.ndarray]:
    """q and qd at the times T."""
    return integrate(robot, np.zeros(2))


def marker(robot: sd.Robot, q: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """X_WS with noise in the world's axes."""
    mount = pose_from_rpy(FINGER['mount']['position'], FINGER['mount']['rpy'])
    X = mount @ robot.pose(q, 'tip') @ pose_from_rpy([0.02, 0.0, 0.0], [0.0, 0.0, 1.0])
    turn = rng.normal(0.0, SIGMA_ROTATION, 3)
    X[:3, :3] = pose_from_rpy(np.zeros(3), turn)[:3, :3] @ X[:3, :3]
    X[:3, 3] += rng.normal(0.0, SIGMA_POSITION, 3)
    return X


def run(
    robot: sd.Robot, config: FilterConfig | None, q: np.ndarray, feed: Any, seed: int = 1
) -> tuple[ModelFilter, np.ndarray, np.ndarray]:
    """Feed pressures and the samples of `feed(filter, k, t, rng)`; return filter, estimates of (q, qd), variances."""
    model_filter, rng, x, variance = ModelFilter(robot, config), np.random.default_rng(seed), [], []
    for k, t in enumerate(T):
        model_filter.feed_pressure(t, pressure(t + 0.005))
        feed(model_filter, k, t, rng)
        estimate = model_filter.estimate(t)
        x.append(np.concatenate([estimate.q, estimate.qd]))
        variance.append(estimate.variance)
    return model_filter, np.array(x), np.array(variance)


def rms(a: np.ndarray) -> float:
    return float(np.sqrt(np.mean(a**2)))


# ---- pieces ----------------------------------------------------------------------------------------------------------


def test_discretisation_is_van_loans_for_a_stiff_system() -> None:
    rng = np.random.default_rng(3)
    basis = rng.normal(size=(6, 6))
    A = basis @ np.diag([-3e3, -200.0, -40.0, -5.0, 0.0, -1.0]) @ np.linalg.inv(basis)
    root, f, dt = rng.normal(size=(6, 6)), rng.normal(size=6), 5e-3
    Q = root @ root.T
    Phi, step, cov = discretise(A, f, Q, dt)
    block = np.block([[-A, Q], [np.zeros((6, 6)), A.T]])
    big = expm(
        0.02 * dt * block
    )  # Van Loan over a fiftieth of the step; over the whole step its growing half swamps the result
    P, F = np.zeros((6, 6)), big[6:, 6:].T
    for _ in range(50):
        P = F @ P @ F.T + F @ big[:6, 6:]
    assert Phi == pytest.approx(expm(A * dt), abs=1e-8 * np.abs(Phi).max())
    assert cov == pytest.approx(P, abs=1e-7 * np.abs(P).max())
    affine = expm(dt * np.block([[A, f[:, None]], [np.zeros((1, 7))]]))
    assert step == pytest.approx(affine[:6, 6], abs=1e-8)


def test_prediction_follows_the_robot(robot: sd.Robot) -> None:
    q, qd = integrate(robot, np.zeros(2), lambda t: pressure(0.0))
    start = Belief(0.0, np.zeros(4), np.zeros((4, 4)))
    end = Process(robot, MODEL_RIGHT.process).predict(start, T[50], pressure(0.0))
    assert end.x == pytest.approx([*q[50], *qd[50]], abs=2e-3 * np.abs(qd).max())


# ---- honesty ---------------------------------------------------------------------------------------------------------


class Sum:
    """Sum of normalised squares, and their number."""

    def __init__(self) -> None:
        self.value, self.dof = 0.0, 0

    def add(self, value: float, dof: int) -> None:
        self.value, self.dof = self.value + value, self.dof + dof

    @property
    def is_in_band(self) -> bool:
        """Check the 95 % band of chi^2."""
        low, high = chi2.ppf([0.025, 0.975], self.dof)
        return bool(low < self.value < high)


def normalised(robot: sd.Robot, seed: int, runs: int) -> tuple[Sum, Sum]:
    """Return (errors, innovations) of some runs of a robot that equals the model."""
    rng, errors, innovations = np.random.default_rng(seed), Sum(), Sum()
    for _ in range(runs):
        f = ModelFilter(robot, MODEL_RIGHT)
        x = rng.normal(0.0, np.sqrt(np.diagonal(f.process.start(0.0, 0.3, 1.0).P)))
        for t in T[:60]:
            if t > 0.0:
                before = Belief(t - 0.01, x, np.zeros((4, 4)))
                moved = f.process.predict(before, t, 0.1 * pressure(t - 0.01))
                x = rng.multivariate_normal(moved.x, moved.P)
            f.feed_pose(t, 'marker', marker(robot, x[:2], rng))
            f.feed_pressure(t, 0.1 * pressure(t))
            if round(t * 100) % 15 == 14:
                belief = f.belief()
                errors.add((x - belief.x) @ np.linalg.solve(belief.P, x - belief.x), 4)
        count = f.innovations['marker']
        innovations.add(count.nis, count.dof)
        assert count.rejected == 0
    return errors, innovations


def test_errors_and_innovations_are_as_large_as_the_filter_says(robot: sd.Robot) -> None:
    """The sums over five seeds are in the 95 % band, and so are at least four of the single seeds."""
    seeds = [normalised(robot, seed, 6) for seed in range(5)]
    for of_seed in zip(*seeds, strict=True):
        total = Sum()
        for part in of_seed:
            total.add(part.value, part.dof)
        assert total.is_in_band
        assert sum(part.is_in_band for part in of_seed) >= 4


# ---- sensors in any mix ----------------------------------------------------------------------------------------------


def feeds(robot: sd.Robot, truth: Any) -> dict[str, Any]:
    q, qd = truth
    s = np.linspace(0.0, robot.length, 30)

    def mocap(f: ModelFilter, k: int, t: float, rng: np.random.Generator) -> None:
        f.feed_pose(t, 'marker', marker(robot, q[k], rng))

    def fiber(f: ModelFilter, k: int, t: float, rng: np.random.Generator) -> None:
        points = robot.centerline(q[k], s) + rng.normal(0.0, 1e-3, (30, 3))
        points[7] = math.nan
        f.feed_shape(t, 'fiber', s, points)

    def ft(f: ModelFilter, k: int, t: float, rng: np.random.Generator) -> None:
        qdd = robot.forward_dynamics(q[k], qd[k], robot.actuation(q[k]) @ pressure(t))
        w = robot.base_wrench(q[k], qd[k], qdd)
        w[:3] += np.cross([0.0, 0.0, 0.03], w[3:])
        f.feed_wrench(t, 'ft', w + rng.normal(0.0, [0.05] * 3 + [0.2] * 3))

    return {'mocap': mocap, 'fiber': fiber, 'ft': ft, 'none': lambda *_: None}


@pytest.mark.parametrize(
    ('sensors', 'limit'), [('mocap', 5e-3), ('fiber', 1e-2), ('ft', 2e-2), ('mocap fiber ft', 5e-3)]
)
def test_any_mix_of_sensors_gives_the_state(robot: sd.Robot, truth: Any, sensors: str, limit: float) -> None:
    every = feeds(robot, truth)

    def feed(f: ModelFilter, k: int, t: float, rng: np.random.Generator) -> None:
        for j, name in enumerate(sensors.split()):
            if k % (1 + j) == 0:  # each at its own rate
                every[name](f, k, t, rng)

    config = FilterConfig(
        process=ProcessNoise(force=0.001, drift=0.02),
        mocap_rotation_noise=SIGMA_ROTATION,
        mocap_position_noise=SIGMA_POSITION,
    )
    _, x, _ = run(robot, config, truth[0], feed)
    assert rms(x[100:, :2] - truth[0][100:]) < limit
    assert rms(x[100:, 2:] - truth[1][100:]) < 20.0 * limit


def test_samples_in_any_order_give_the_same_belief(robot: sd.Robot, truth: Any) -> None:
    """For any schedule of the work: on request of the state, or with every sample."""
    mocap, order = feeds(robot, truth)['mocap'], np.arange(60)
    rng = np.random.default_rng(2)
    for first in range(1, 60, 6):
        rng.shuffle(order[first : first + 6])
    ends = []
    for ks, at_once in ((range(60), False), (order, False), (order, True)):
        f = ModelFilter(robot, MODEL_RIGHT)
        for k in ks:
            mocap(f, k, T[k], np.random.default_rng(k))
            if at_once:
                f.catch_up()
        ends.append(f.belief())
        assert f.too_late == 0
        assert ends[0].x == pytest.approx(ends[-1].x, abs=1e-10)
        assert np.max(np.abs(ends[0].P - ends[-1].P)) < 1e-10
    mocap(f, 0, T[0], rng)
    assert f.too_late == 1
    assert np.array_equal(f.belief().x, ends[-1].x)


def test_smoothing_a_recording_is_better_than_any_filter(robot: sd.Robot, truth: Any) -> None:
    """The smoother fills a gap from both sides."""

    def feed(f: ModelFilter, k: int, t: float, rng: np.random.Generator) -> None:
        if not 60 <= k < 90:
            f.feed_pose(t, 'marker', marker(robot, truth[0][k], rng))

    f, x, variance = run(robot, FilterConfig(history=math.inf), truth[0], feed)
    beliefs = {belief.t: belief for belief in f.smoothed()}
    error = np.array([beliefs[t].x[:4] for t in T]) - np.concatenate(truth, 1)
    smoothed = np.array([np.diagonal(beliefs[t].P)[:4] for t in T])
    for where in (slice(10, 60), slice(100, 190)):
        filtered = (x - np.concatenate(truth, 1))[where]
        assert rms(error[where, :2]) < 0.9 * rms(filtered[:, :2])
        assert rms(error[where, 2:]) < 0.7 * rms(filtered[:, 2:])
    assert np.all(smoothed[:-1] < variance[:-1] * (1.0 + 1e-9))
    assert np.all(smoothed[88, :2] < 0.5 * variance[88, :2])  # just before the gap ends
    assert np.all(np.abs(error[10:]) < 5.0 * np.sqrt(smoothed[10:]))


# ---- trouble ---------------------------------------------------------------------------------------------------------


def test_outliers_have_no_visible_effect(robot: sd.Robot, truth: Any) -> None:
    def error(share: float) -> tuple[float, int]:
        def feed(f: ModelFilter, k: int, t: float, rng: np.random.Generator) -> None:
            X = marker(robot, truth[0][k], np.random.default_rng(k))
            if rng.uniform() < share and k > 5:
                X[:3, 3] += 0.5 * rng.permutation([1.0, 0.0, 0.0])
            f.feed_pose(t, 'marker', X)

        f, x, _ = run(robot, None, truth[0], feed)
        return rms(x[20:, :2] - truth[0][20:]), f.innovations['marker'].rejected

    (clean, none), (spoiled, some) = error(0.0), error(0.05)
    assert none == 0
    assert some >= 5
    assert spoiled < 1.1 * clean


def test_a_blackout_of_a_second_is_survived_with_honest_covariance(robot: sd.Robot, truth: Any) -> None:
    def feed(f: ModelFilter, k: int, t: float, rng: np.random.Generator) -> None:
        if not 60 <= k < 160:
            f.feed_pose(t, 'marker', marker(robot, truth[0][k], rng))

    _, x, variance = run(robot, None, truth[0], feed)
    error = np.abs(x[:, :2] - truth[0])
    assert variance[159, 0] > 10.0 * variance[59, 0]
    assert np.all(error[60:160] < 4.0 * np.sqrt(variance[60:160, :2]))
    assert np.max(error[60:160]) < 0.1
    assert np.max(error[170:]) < 0.015


def test_a_state_that_is_lost_is_found_again(robot: sd.Robot, truth: Any) -> None:
    """For half a second the marker was off the robot."""

    def feed(f: ModelFilter, k: int, t: float, rng: np.random.Generator) -> None:
        f.feed_pose(t, 'marker', marker(robot, np.array([-1.5, 1.2]) if k < 50 else truth[0][k], rng))

    f, x, _ = run(robot, None, truth[0], feed)
    assert f.resets >= 1
    assert np.max(np.abs(x[75:, :2] - truth[0][75:])) < 0.02


def test_a_force_the_model_does_not_know_is_found(robot: sd.Robot) -> None:
    unknown = np.array([0.6, -0.4])  # [N m] of 5 at full pressure
    q, qd = integrate(robot, unknown)
    f, x, _ = run(robot, None, q, feeds(robot, (q, qd))['mocap'])
    assert f.estimate(T[-1]).force == pytest.approx(unknown, abs=0.15)
    assert rms(x[50:, :2] - q[50:]) < 5e-3


def test_misuse_is_refused(robot: sd.Robot) -> None:
    f = ModelFilter(robot)
    with pytest.raises(ValueError, match='no sample yet'):
        f.estimate(0.0)
    with pytest.raises(ValueError, match='finite'):
        f.feed_pose(0.0, 'marker', np.full((4, 4), math.nan))
    with pytest.raises(ValueError, match='marker'):
        f.feed_pose(0.0, 'tip', np.eye(4))
    with pytest.raises(ValueError, match=r'pressure: expected shape \(2,\)'):
        f.feed_pressure(0.0, [1.0])
    with pytest.raises(ValueError, match='kind ft'):
        f.feed_wrench(0.0, 'marker', np.zeros(6))
    with pytest.raises(ValueError, match='finite time'):
        f.feed_pressure(math.nan, [0.0, 0.0])
    with pytest.raises(ValueError, match='force_noise'):
        FilterConfig(force_noise=0.0)
    assert not f.started
    with pytest.raises(ValueError, match='discs'):
        ModelFilter(sd.load('fabric_arm'))
