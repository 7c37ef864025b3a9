"""The predictive law: its quadratic program against a general solver, its load estimate, both kinds of reference."""

from __future__ import annotations

import numpy as np
import pytest
from closed_loop import Rig, perturbed, robot_of
from scipy.optimize import minimize

from soft_control.control_loop import ControlLoop
from soft_control.laws.constrained_riccati import Horizon, best_commands
from soft_control.laws.load_observer import LoadGains
from soft_control.laws.predictive import PredictiveGains, PredictiveLaw
from soft_control.references import JointPath, PosePath
from soft_control.safety.state_machine import Mode

HONEYCOMB = robot_of('honeycomb_arm')
TARGET = np.random.default_rng(5).uniform(-0.25, 0.25, 8)  # [rad]


def problem(limit: float) -> Horizon:
    """4 steps, 6 states of which the last 2 are forces, 3 commands within +-limit."""
    random = np.random.default_rng(3)
    N, m, n, size = 4, 6, 2, 3
    roots = random.normal(size=(N, m, m))
    box = np.full((N, size), limit)
    return Horizon(
        F=0.4 * random.normal(size=(N, m, m)),
        G=random.normal(size=(N, m, size)),
        Q=roots @ roots.transpose(0, 2, 1),
        q=random.normal(size=(N, m)),
        A=random.normal(size=(n, size)),
        R=random.uniform(0.5, 2.0, n),
        v=random.normal(size=(N, n)),
        away=random.normal(size=(N, size)),
        ease=0.1,
        low=-box,
        high=box,
    )


def cost(p: Horizon, c: np.ndarray) -> float:
    """The sum in the head of constrained_riccati.py, term by term."""
    x, total, n = np.zeros(p.F.shape[1]), 0.0, p.R.size
    for k, ck in enumerate(c.reshape(p.away.shape)):
        effort = p.v[k] + p.A @ ck - x[-n:]
        x = p.F[k] @ x + p.G[k] @ ck
        total += 0.5 * x @ p.Q[k] @ x + p.q[k] @ x + 0.5 * effort @ (p.R * effort)
        total += 0.5 * p.ease * np.sum((ck + p.away[k]) ** 2)
    return float(total)


def recentred(p: Horizon, c: np.ndarray) -> Horizon:
    """The same problem around the motion under the commands c."""
    x, q, v, n = np.zeros(p.F.shape[1]), p.q.copy(), p.v.copy(), p.R.size
    for k, ck in enumerate(c):
        v[k] += p.A @ ck - x[-n:]
        x = p.F[k] @ x + p.G[k] @ ck
        q[k] += p.Q[k] @ x
    return p._replace(q=q, v=v, away=p.away + c, low=p.low - c, high=p.high - c)


@pytest.mark.parametrize(('limit', 'cycles'), [(100.0, 1), (0.05, 30)])
def test_commands_are_the_best_within_their_limits(limit: float, cycles: int) -> None:
    """In one cycle without active limits; in a few with them, since the law iterates from cycle to cycle."""
    p = problem(limit)
    c = np.zeros(p.away.shape)
    for _ in range(cycles):
        change = np.zeros(p.away.shape)
        best_commands(recentred(p, c), change)
        c += change
        assert np.all(np.abs(c) <= limit + 1e-12)
    bounds = [(-limit, limit)] * c.size
    best = minimize(
        lambda c: cost(p, c), np.zeros(c.size), bounds=bounds, options={'ftol': 1e-15, 'gtol': 1e-9}
    )
    assert cost(p, c) <= best.fun + 1e-6 * abs(best.fun)
    assert (np.max(np.abs(c)) == pytest.approx(limit)) == (limit < 1.0)


def test_the_compiled_recursion_agrees_with_itself_uncompiled() -> None:
    p = problem(0.05)
    compiled, plain = np.zeros(p.away.shape), np.zeros(p.away.shape)
    best_commands(p, compiled)
    best_commands.py_func(p, plain)
    np.testing.assert_allclose(compiled, plain, atol=1e-10)


def test_it_reaches_a_pose_with_an_unknown_load_and_weighs_it() -> None:
    law, X_WR = PredictiveLaw(HONEYCOMB, PredictiveGains()), HONEYCOMB.pose(TARGET, 'tip')
    rig = Rig(perturbed(HONEYCOMB.name, 0.5, spread=0.02), ControlLoop(HONEYCOMB, law), 20.0)
    rig.loop.follow(0.0, PosePath(0.0, rig.loop.present(0.0).X_WT, [X_WR], 0.1, 0.5))
    assert set(rig.run(6.0, lambda rig, memory: memory.mode)) == {Mode.FOLLOWING}
    reached = rig.plant.pose(rig.q, 'tip')
    assert np.linalg.norm(reached[:3, 3] - X_WR[:3, 3]) <= 5e-3
    assert np.linalg.norm(reached[:3, 2] - X_WR[:3, 2]) <= np.radians(2.0)
    assert law.observer.mass == pytest.approx(0.5, abs=0.15)


def test_without_a_load_it_weighs_none() -> None:
    law = PredictiveLaw(HONEYCOMB, PredictiveGains(), joints=True)
    rig = Rig(perturbed(HONEYCOMB.name, 0.0, spread=0.02), ControlLoop(HONEYCOMB, law), 20.0)
    rig.loop.follow(0.0, JointPath(0.0, rig.loop.present(0.0), [2.0], [TARGET]))
    rig.run(4.0, lambda rig, memory: None)
    np.testing.assert_allclose(rig.q, TARGET, atol=0.01)
    assert law.observer.mass <= 0.1


def test_beyond_reach_it_stays_within_limits_and_goes_on() -> None:
    """A pose that no pressure can hold: commands stop at the limit, and the law does not fail."""
    law = PredictiveLaw(HONEYCOMB, PredictiveGains(), joints=True)
    rig = Rig(perturbed(HONEYCOMB.name, 0.0, spread=0.02), ControlLoop(HONEYCOMB, law), 20.0)
    rig.loop.follow(0.0, JointPath(0.0, rig.loop.present(0.0), [2.0], [np.tile([1.2, 0.0], 4)]))
    seen = rig.run(4.0, lambda rig, memory: (memory.mode, memory.pressure.min(), memory.pressure.max()))
    assert {mode for mode, _, _ in seen} == {Mode.FOLLOWING}
    limits = rig.loop.limits
    assert min(low for _, low, _ in seen) >= limits.pressure_min
    assert max(high for _, _, high in seen) == pytest.approx(limits.pressure_max, rel=1e-3)


def test_refusals() -> None:
    with pytest.raises(ValueError, match='steps must be 1 to 100'):
        PredictiveGains(steps=0)
    with pytest.raises(ValueError, match='drift must be > 0'):
        LoadGains(drift=0.0)
    with pytest.raises(ValueError, match='robot fabric_arm: expected no discs'):
        PredictiveLaw(robot_of('fabric_arm'), PredictiveGains())
    with pytest.raises(ValueError, match='expected a fixed base'):
        PredictiveLaw(robot_of('floating_actuator'), PredictiveGains())
