"""External forces and tip loads of simulated robots."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import soft_dynamics as sd
from soft_estimation.loads.momentum_observer import MomentumObserver
from soft_estimation.loads.tip_load import TipLoad

T = np.arange(0.0, 2.0, 0.01)
PRESSURE = np.array([3e4, 0.0, 1e4, 0.0])
JOINT = {
    'format': 1,
    'name': 'joint',
    'gravity': [0.0, 0.0, 9.81],
    'segments': [
        {
            'name': 'joint',
            'type': 'arc',
            'length': 0.2,
            'mass': 0.4,
            'radius': 0.03,
            'placement': 'distributed',
            'quadrature_points': 3,
            'material': {'stiffness': [4.0, 4.0], 'damping': [0.15, 0.15]},
        }
    ],
    'actuation': {
        'pressure_max': 1e5,
        'chambers': [
            {'name': f'p{k}', 'segment': 'joint', 'gain': gain}
            for k, gain in enumerate([[5e-5, 0.0], [-5e-5, 0.0], [0.0, 5e-5], [0.0, -5e-5]])
        ],
    },
}


@pytest.fixture(scope='module')
def robot() -> sd.Robot:
    return sd.Robot.from_dict(JOINT)


def motion(robot: sd.Robot, external: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, qd and qdd at the times T of a robot that starts straight, under the pressures and an external force."""

    def rate(_t: float, x: np.ndarray) -> np.ndarray:
        tau = robot.actuation(x[:2]) @ PRESSURE + external
        return np.concatenate([x[2:], robot.forward_dynamics(x[:2], x[2:], tau)])

    x = solve_ivp(rate, (0.0, T[-1]), np.zeros(4), 'DOP853', T, rtol=1e-9, atol=1e-10).y.T
    return x[:, :2], x[:, 2:], np.array([rate(0.0, row)[2:] for row in x])


def test_the_momentum_observer_finds_a_force_while_the_robot_moves(robot: sd.Robot) -> None:
    external = np.array([0.3, -0.2])
    q, qd, _ = motion(robot, external)
    observer = MomentumObserver(robot, time_constant=0.05)
    found = np.array(
        [observer.feed(t, *x, robot.actuation(x[0]) @ PRESSURE) for t, *x in zip(T, q, qd, strict=True)]
    )
    settled = external * (1.0 - np.exp(-T / 0.05))[:, None]
    assert found[5:] == pytest.approx(settled[5:], abs=0.03)
    assert found[-1] == pytest.approx(external, abs=1e-3)


@pytest.mark.parametrize('load', [0.1, 0.5])
@pytest.mark.parametrize('with_sensor', [False, True])
def test_a_tip_load_is_found_within_a_tenth_in_two_seconds(
    robot: sd.Robot, load: float, with_sensor: bool
) -> None:
    loaded, rng = robot.with_tip_load(load), np.random.default_rng(1)
    q, qd, qdd = motion(loaded, np.zeros(2))
    estimate = TipLoad(robot)
    for k, t in enumerate(T):
        wrench = loaded.base_wrench(q[k], qd[k], qdd[k]) + rng.normal(0.0, [0.05] * 3 + [0.2] * 3)
        noisy = (
            q[k] + rng.normal(0.0, 2e-3, 2),
            qd[k] + rng.normal(0.0, 0.05, 2),
            qdd[k] + rng.normal(0.0, 1.0, 2),
        )
        estimate.feed(t, *noisy, PRESSURE, wrench if with_sensor else None)
    assert estimate.mass == pytest.approx(load, rel=0.1)
    assert abs(estimate.mass - load) < 4.0 * estimate.standard_deviation


def test_nothing_known_is_said_so_and_misuse_is_refused(robot: sd.Robot) -> None:
    estimate = TipLoad(robot)
    assert math.isnan(estimate.mass)
    assert math.isinf(estimate.standard_deviation)
    estimate.feed(1.0, [0.1, 0.1], [0.0, 0.0], [0.0, 0.0], PRESSURE)
    with pytest.raises(ValueError, match='at least 1'):
        estimate.feed(0.5, [0.1, 0.1], [0.0, 0.0], [0.0, 0.0], PRESSURE)
    with pytest.raises(ValueError, match='time_constant'):
        MomentumObserver(robot, 0.0)
