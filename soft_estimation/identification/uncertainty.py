"""Uncertainty of the unknowns, for any method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize

from soft_dynamics.array import Array

from .multiple_shooting import Shooting
from .problem import Problem
from .unknowns import Parameter

WIDE = 0.2  # relative standard deviation from which to warn
ALIKE = 0.02  # unknowns cannot be separated if a joint change shows this much less than single ones
PART = 0.2  # share of such a change from which an unknown is part of it
NOTHING = 1e-8  # gradient, relative to the largest, below which an unknown has no effect
EDGE = 1e-3  # fraction of the range within which an unknown is at its bound
START_STEPS = 8  # evaluations for finding the starts of the windows


@dataclass(frozen=True)
class Uncertainty:
    """Standard deviations (p,) in the units of the file (inf: not determined; nan: not known), and warnings."""

    std: Array
    warnings: tuple[str, ...]


def assess(problem: Problem, x: Array, known: Mapping[int, float] | None = None) -> Uncertainty:
    """Return standard deviations of x, with the starts of the windows unknown too.

    known: standard deviations of unknowns that come from something else than the motion, by index; they do not vary
    here.

    Covariance H^-1 S H^-1 with H = J^T J and S that of J^T r summed over lags, because model errors are correlated and
    do not average out like noise.                                                 [Newey and West, Econometrica 1987]
    """
    shooting = Shooting(problem)
    z = _settle(shooting, x)
    residuals, blocks = shooting.residuals(z), shooting.blocks(z)
    projected = []
    for by_x, by_start in blocks:
        basis = _range(by_start)
        projected.append(by_x - basis @ (basis.T @ by_x))
    J = np.concatenate(projected)
    size = np.linalg.norm(J, axis=0)
    seen = np.flatnonzero(size > NOTHING * max(float(size.max()), np.finfo(float).tiny))
    aside = dict(known or {})
    seen = seen[~np.isin(seen, list(aside))]
    unit = J[:, seen] / size[seen]
    _, s, Vt = np.linalg.svd(unit, full_matrices=False)
    inverse = (Vt.T / np.maximum(s, NOTHING) ** 2) @ Vt
    ends = np.cumsum([len(block) for block in projected])[:-1]
    pulls = [
        (part * r[:, None]).reshape(-1, problem.moving.size, seen.size).sum(1)
        for part, r in zip(np.split(unit, ends), np.split(residuals, ends), strict=True)
    ]
    covariance = inverse @ summed(pulls) @ inverse
    std = np.full(x.size, np.inf)
    std[seen] = np.sqrt(np.diag(covariance)) / size[seen]
    std *= np.abs([p.slope(now) for p, now in zip(problem.parameters, x, strict=True)])
    std[list(aside)] = list(aside.values())
    together = [seen[np.abs(row) > PART] for row, value in zip(Vt, s, strict=True) if value < ALIKE]
    return Uncertainty(std, _warnings(problem.parameters, x, std, together))


def _settle(shooting: Shooting, x: Array) -> Array:
    """Return z with the best starts of the windows for this x."""
    head = shooting.p
    fit = optimize.least_squares(
        lambda tail: shooting.residuals(np.concatenate([x, tail])),
        shooting.begin(x)[head:],
        lambda tail: shooting.jacobian(np.concatenate([x, tail]))[:, head:],
        x_scale='jac',
        max_nfev=START_STEPS,
    )
    return np.concatenate([x, fit.x])


def _range(A: Array) -> Array:
    """Return an orthonormal basis of the column space of A."""
    U, s, _ = np.linalg.svd(A, full_matrices=False)
    return U[:, s > 1e-10 * s[0]] if s.size and s[0] > 0.0 else U[:, :0]


def summed(pulls: Sequence[Array]) -> Array:
    """Return the covariance of the sum of pulls (n, p) of all windows, Bartlett weights over lags up to n^(1/2)."""
    total = np.zeros((pulls[0].shape[1],) * 2)
    for pull in pulls:
        total += pull.T @ pull
        longest = int(np.sqrt(len(pull)))
        for lag in range(1, longest + 1):
            across = pull[lag:].T @ pull[:-lag]
            total += (1.0 - lag / (longest + 1)) * (across + across.T)
    return total


def _warnings(
    parameters: tuple[Parameter, ...], x: Array, std: Array, together: list[Any]
) -> tuple[str, ...]:
    lines = []
    for k, parameter in enumerate(parameters):
        value = parameter.value(x[k])
        typical = abs(value) if parameter.kind != 'shift' else max(abs(value), parameter.unit)
        if np.isinf(std[k]):
            lines.append(f'{parameter.key} has no effect on these recordings')
        elif std[k] > WIDE * typical:
            lines.append(f'{parameter.key} is poorly determined: {value:.4g} +- {std[k]:.2g}')
        if min(x[k] - parameter.low, parameter.high - x[k]) < EDGE * (parameter.high - parameter.low):
            lines.append(f'{parameter.key} is at a bound of its range: {value:.4g}')
    for places in together:
        names = ', '.join(parameters[k].key for k in places)
        lines.append(f'cannot separate these, because a joint change has little effect: {names}')
    return tuple(lines)
