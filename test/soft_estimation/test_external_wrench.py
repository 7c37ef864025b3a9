"""The tip wrench of simulated robots under load and of the virtual rig."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import soft_dynamics as sd
from benchmarks.estimation_rig import model
from benchmarks.external_wrench import errors
from soft_estimation.loads.external_wrench import WrenchObserver

PUSH = np.array([0.05, -0.1, 0.03, 2.0, -1.5, 1.0])  # [N m], [N] world axes
T = np.arange(0.0, 1.5, 0.01)


@pytest.fixture(scope='module')
def arm() -> sd.Robot:
    return sd.load('honeycomb_arm')


@pytest.fixture(scope='module')
def pushed(arm: sd.Robot) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, qd and base wrench of an arm under pressure and PUSH."""
    pressure, n = np.linspace(0.0, 6e4, 16), arm.nq

    def rate(_t: float, x: np.ndarray) -> np.ndarray:
        q, qd = x[:n], x[n:]
        qdd = arm.forward_dynamics(q, qd, arm.actuation(q) @ pressure, external={'tip': PUSH})
        return np.concatenate([qd, qdd])

    x = solve_ivp(rate, (0.0, T[-1]), np.zeros(2 * n), 'LSODA', T, rtol=1e-8, atol=1e-9).y.T
    q, qd = x[:, :n], x[:, n:]
    qdd = np.array([rate(0.0, row)[n:] for row in x])
    return q, qd, arm.base_wrench(q, qd, qdd, external={'tip': np.tile(PUSH, (len(T), 1))})


@pytest.mark.parametrize('with_sensor', [True, False])
def test_a_known_wrench_is_found_while_the_arm_moves(
    arm: sd.Robot, pushed: tuple[np.ndarray, np.ndarray, np.ndarray], with_sensor: bool
) -> None:
    observer = WrenchObserver(arm)
    for t, q, qd, wrench in zip(T, *pushed, strict=True):
        found = observer.feed(t, q, qd, np.linspace(0.0, 6e4, 16), wrench if with_sensor else None)
    sigma = np.sqrt(np.diagonal(found.covariance))
    assert np.all(np.abs(found.wrench - PUSH) < 3.0 * sigma)
    if with_sensor:
        assert found.wrench[3:] == pytest.approx(PUSH[3:], abs=0.05)
        assert found.wrench[:3] == pytest.approx(PUSH[:3], abs=0.02)
        assert np.all(sigma < [0.3, 0.3, 0.3, 0.4, 0.4, 0.4])


def test_a_push_on_the_virtual_rig_is_found() -> None:
    """Error for 5 N during motion, with a plant that differs from the model. The limit is twice the measured error."""
    _, force = errors(model(), 300)
    assert force < 0.5


def test_the_axes_of_a_frame(arm: sd.Robot) -> None:
    found = WrenchObserver(arm).feed(0.0, np.zeros(8), np.zeros(8), np.zeros(16))
    R = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    turned = found._replace(wrench=PUSH).in_axes(R)
    assert turned.wrench == pytest.approx([-0.1, -0.05, 0.03, -1.5, -2.0, 1.0])
    assert np.trace(turned.covariance) == pytest.approx(np.trace(found.covariance))


def test_misuse_is_refused(arm: sd.Robot) -> None:
    with pytest.raises(ValueError, match='elbow'):
        WrenchObserver(arm, 'elbow')
    with pytest.raises(ValueError, match='noise must be > 0'):
        WrenchObserver(arm, force_noise=0.0)
