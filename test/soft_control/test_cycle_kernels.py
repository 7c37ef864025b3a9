"""The kernels of a cycle agree with plain NumPy, compiled or not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.polynomial import Polynomial

from soft_control.allocation.valve_model import _look, reachable
from soft_control.laws.pid_feedback import add_feedback
from soft_control.references import _evaluate
from soft_control.safety.kernels import (
    JUMPS,
    NOT_FINITE,
    NOTHING,
    OTHER_SIZE,
    TOO_FAR,
    TOO_FAST,
    all_finite,
    approach,
    first_wrong,
)

RANDOM = np.random.default_rng(0)
N, NONE = 5, np.empty(0)
Kernel = Callable[..., Any]


def both(kernel: Any) -> Any:
    return pytest.mark.parametrize('kernel', [kernel, kernel.py_func], ids=['compiled', 'plain'])


@both(all_finite)
def test_all_finite(kernel: Kernel) -> None:
    for bad in (math.nan, math.inf, -math.inf):
        for k in range(N):
            assert not kernel(np.where(np.arange(N) == k, bad, 1.0))
    assert kernel(RANDOM.normal(size=N))
    assert kernel(NONE)


def wrong_in_numpy(limits: Any, q: Any, qd: Any, before: Any, dt: float) -> tuple[int, int]:
    centre, most, fastest = limits
    if not np.isfinite([*q, *qd]).all():
        return NOT_FINITE, 0
    rules = {TOO_FAR: abs(q - centre) > most, TOO_FAST: abs(qd) > fastest}
    rules[JUMPS] = abs(q - before) > fastest * dt
    return next(((rule, int(np.argmax(beyond))) for rule, beyond in rules.items() if beyond.any()), (0, 0))


@both(first_wrong)
def test_first_wrong(kernel: Kernel) -> None:
    limits = RANDOM.normal(size=N), np.full(N, 2.2), np.full(N, 2.5)
    found = set()
    for _ in range(500):
        q, qd, before = limits[0] + RANDOM.normal(size=N), RANDOM.normal(size=N), RANDOM.normal(size=N)
        q[RANDOM.integers(N)] *= RANDOM.choice([1.0, 1.0, 1.0, math.nan])
        case = limits, q, qd, before, RANDOM.choice([0.1, 2.0])
        assert kernel(*case) == wrong_in_numpy(*case)
        found.add(kernel(*case)[0])
    assert found == {NOTHING, NOT_FINITE, TOO_FAR, TOO_FAST, JUMPS}
    assert kernel(limits, limits[0], NONE, NONE, 0.1) == (NOTHING, 0)


@both(first_wrong)
def test_motions_of_another_robot_are_wrong(kernel: Kernel) -> None:
    limits, own, other = (np.zeros(N), np.ones(N), np.ones(N)), np.zeros(N), np.zeros(N - 1)
    for motion in ((other, NONE, NONE), (own, other, NONE), (own, own, other), (NONE, NONE, NONE)):
        assert kernel(limits, *motion, 0.1) == (OTHER_SIZE, 0)


@both(approach)
def test_approach(kernel: Kernel) -> None:
    start, target, p = RANDOM.normal(size=N), 9.0 * RANDOM.normal(size=N), np.empty(N)
    kernel(start, target, 0.5, -0.8, 0.9, p)
    np.testing.assert_array_equal(p, np.clip(np.clip(target, start - 0.5, start + 0.5), -0.8, 0.9))


@both(add_feedback)
def test_feedback(kernel: Kernel) -> None:
    gains, dt = RANDOM.uniform(size=(3, N)), 0.01
    q, qd, q_r, qd_r, integral, tau = RANDOM.normal(size=(6, N))
    then, total = integral + dt * gains[2] * (q_r - q), tau.copy()
    kernel(gains, dt, (q, qd), (q_r, qd_r), integral, tau)
    np.testing.assert_allclose(integral, then)
    np.testing.assert_allclose(tau, total + gains[0] * (q_r - q) + gains[1] * (qd_r - qd) + then)


@both(reachable)
def test_commands_of_reachable_pressures_keep_limits_and_slew(kernel: Kernel) -> None:
    last, p, k, bounds = RANDOM.uniform(0.0, 1.0, N), RANDOM.uniform(0.0, 1.0, N), 3.0, np.empty((2, N))
    kernel((0.0, 1.0), last, 0.3, p, k, bounds)
    commands = p + k * (bounds - p)
    np.testing.assert_allclose(commands, np.clip([last - 0.3, last + 0.3], 0.0, 1.0), atol=1e-12)


@both(_look)
@pytest.mark.parametrize(
    ('measured', 'seen'),
    [
        ([2.9, 0.0, 0.0], (True, True)),
        ([3.1, 0.0, 0.0], (True, False)),
        ([0.0, -3.1, 9.0], (True, False)),
        ([0.0, 0.0, 9.0], (True, True)),
        ([math.nan, math.inf, 0.0], (True, True)),
        ([math.nan, math.inf, math.nan], (False, True)),
    ],
)
def test_chambers_with_less_than_a_third_are_empty(
    kernel: Kernel, measured: list[float], seen: tuple[bool, bool]
) -> None:
    assert kernel(np.array([10.0, -10.0, 0.5]), np.array(measured), 1.0) == seen


@both(_evaluate)
def test_pieces_are_polynomials(kernel: Kernel) -> None:
    knots, coefficients = np.array([0.0, 1.0, 3.0]), RANDOM.normal(size=(6, 2, N))
    for piece, s in enumerate((0.7, 2.5)):
        sample = np.empty((3, N))
        kernel(knots, coefficients, s, *sample)
        for k in range(N):
            whole = Polynomial(coefficients[::-1, piece, k])
            wanted = [whole.deriv(order)(s - knots[piece]) for order in range(3)]
            np.testing.assert_allclose(sample[:, k], wanted, rtol=1e-12)
