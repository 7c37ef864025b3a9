"""The online prediction that runs beside the robot."""

import numpy as np
import pytest

from soft_dynamics.robot import Robot, load
from soft_dynamics.simulation.live_model import Twin

T = np.arange(60) * 0.02


@pytest.fixture(scope='module')
def robot() -> Robot:
    return load('honeycomb_arm')


def pressures(robot: Robot) -> np.ndarray:
    """Return a wave in every chamber, sampled at T."""
    phase = np.arange(len(robot.chamber_names))
    return 5e4 * (1.0 + np.sin(6.0 * T[:, None] + phase))


def run(twin: Twin, truth: object, p: np.ndarray) -> np.ndarray:
    return np.array([twin.feed(*sample)[0] for sample in zip(T, truth.q, truth.qd, p, strict=True)])


def test_it_follows_a_robot_that_is_the_model(robot: Robot) -> None:
    p, zero = pressures(robot), np.zeros(robot.nq)
    truth = robot.simulate(zero, zero, p, T)
    twin = Twin(robot)
    assert np.allclose(run(twin, truth, p), truth.q, atol=1e-8)
    assert np.ptp(truth.q) > 0.1
    assert twin.restarts == 0


def test_with_resync_it_predicts_from_the_last_start(robot: Robot) -> None:
    """With a robot that differs from the model: every other sample restarts the prediction."""
    p, zero = pressures(robot), np.zeros(robot.nq)
    truth = robot.with_tip_load(1.0).simulate(zero, zero, p, T)
    predicted = run(Twin(robot, resync_period=0.03), truth, p)
    for k in range(2, T.size, 2):
        part = slice(k - 2, k + 1)
        expected = robot.simulate(truth.q[k - 2], truth.qd[k - 2], p[part], T[part]).q
        assert np.allclose(predicted[k - 1 : k + 1], expected[1:], atol=1e-8)
    assert not np.allclose(predicted, truth.q, atol=1e-3)


@pytest.mark.parametrize('t', [1.7, -3.0, 1.0])
def test_a_gap_or_a_step_back_in_time_starts_it_anew(robot: Robot, t: float) -> None:
    twin, zero, p = Twin(robot), np.zeros(robot.nq), np.zeros(len(robot.chamber_names))
    twin.feed(1.0, zero, zero, p)
    q, _ = twin.feed(t, zero + 0.3, zero, p)
    assert np.array_equal(q, zero + 0.3)
    assert twin.restarts == 1


def test_a_state_that_is_no_number_is_refused_and_leaves_no_trace(robot: Robot) -> None:
    p, zero = pressures(robot), np.zeros(robot.nq)
    truth = robot.simulate(zero, zero, p, T)
    twin = Twin(robot)
    for k in range(30):
        twin.feed(T[k], truth.q[k], truth.qd[k], p[k])
    for bad in ({'q': zero * np.nan}, {'qd': zero[:3]}, {'pressure': p[0] * np.inf}):
        sample = {'q': truth.q[30], 'qd': truth.qd[30], 'pressure': p[30]} | bad
        with pytest.raises(ValueError, match=next(iter(bad))):
            twin.feed(T[30], **sample)
    assert np.allclose(twin.feed(T[30], truth.q[30], truth.qd[30], p[30])[0], truth.q[30], atol=1e-8)


def test_a_prescribed_base_is_the_measured_one() -> None:
    robot = load('floating_actuator', {'base': {'type': 'prescribed'}})
    twin, q, zero = Twin(robot), np.zeros(robot.nq), np.zeros(robot.nq)
    p = np.zeros(len(robot.chamber_names))
    for k in range(5):
        q[0] = 0.1 * k
        predicted, _ = twin.feed(0.01 * k, q, zero, p)
        assert predicted[0] == q[0]


def test_a_negative_period_is_refused(robot: Robot) -> None:
    with pytest.raises(ValueError, match='resync_period'):
        Twin(robot, -1.0)
