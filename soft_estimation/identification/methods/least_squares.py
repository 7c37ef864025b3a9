"""Default method: nonlinear least squares on free runs with exact gradients, from several starts."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import optimize, stats

from soft_dynamics.array import Array

from ..budget import Checkpoint, Options, Report
from ..multiple_shooting import FAR, Shooting
from ..problem import Problem

EVALUATIONS = 40  # evaluations of one start
AGREE = 1e-3  # relative difference of errors below which two starts found the same minimum
NARROW = 0.5  # fraction of the search range for random starts


def search(problem: Problem, options: Options, report: Report, checkpoint: Checkpoint) -> Array:
    """Return the x of the best start; stop early if a second start reaches the best error."""
    saved = checkpoint.load()
    done: list[dict[str, Any]] = saved.get('starts', [])
    shooting = Shooting(problem)

    def keep(z: Array) -> None:
        checkpoint.save({'starts': done, 'z': z.tolist()})

    for k, x0 in enumerate(_starts(problem, options)):
        if k >= len(done):
            z0 = np.array(saved['z']) if k == len(done) and saved.get('z') else shooting.begin(x0)
            saved = {}
            done.append(minimise(shooting, z0, partial(_part, report, k, options.starts), keep))
            checkpoint.save({'starts': done})
        errors = sorted(found['error'] for found in done)
        if len(errors) > 1 and errors[1] <= errors[0] * (1.0 + AGREE):
            break
    best = min(done, key=lambda found: float(found['error']))
    report(1.0, f'error {best["error"]:.4g}')
    return np.array(best['x'])


def _starts(problem: Problem, options: Options) -> list[Array]:
    """Return the values of the file, then a Latin hypercube in the middle of the search range."""
    middle, half = 0.5 * (problem.low + problem.high), 0.5 * NARROW * (problem.high - problem.low)
    cube = stats.qmc.LatinHypercube(problem.start.size, seed=options.seed).random(max(1, options.starts - 1))
    return [problem.start, *(middle + half * (2.0 * cube - 1.0))][: options.starts]


def _part(report: Report, k: int, count: int, part: float, note: str) -> None:
    report((k + part) / count, note)


def minimise(shooting: Shooting, z0: Array, report: Report, keep: Callable[[Array], None]) -> dict[str, Any]:
    """Minimise from one start; call `keep` with every improved z."""
    problem, count, least = shooting.problem, 0, math.inf
    low, high = np.full(z0.size, -np.inf), np.full(z0.size, np.inf)
    low[: shooting.p], high[: shooting.p] = problem.low, problem.high

    def residuals(z: Array) -> Array:
        nonlocal count, least
        found = shooting.residuals(z)
        count += 1
        error = _rms(found)
        report(min(1.0, count / EVALUATIONS), f'error {error:.4g}')
        if error < least:
            least = error
            keep(z)
        return found

    fit = optimize.least_squares(
        residuals,
        np.clip(z0, low + 1e-9, high - 1e-9),
        shooting.jacobian,
        (low, high),
        x_scale='jac',
        ftol=1e-9,
        xtol=1e-9,
        gtol=1e-10,
        max_nfev=EVALUATIONS,
    )
    error = _rms(fit.fun)
    return {'x': fit.x[: shooting.p].tolist(), 'error': error if error < FAR else 1e300}


def _rms(residuals: Array) -> float:
    return math.sqrt(float(np.mean(residuals**2)))
