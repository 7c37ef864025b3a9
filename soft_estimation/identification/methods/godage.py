"""Global search on step responses: RMS error of free runs, refined by a local search.         [Godage, sec. III-D]

The paper uses Matlab's global search around fmincon; here scipy's differential evolution ends in L-BFGS-B.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import optimize, stats

from soft_dynamics.array import Array

from ..budget import Checkpoint, Options, Report
from ..problem import Problem

PER_UNKNOWN = 8  # members of the population
LEAST = 5  # least population of the method
CANNOT = 1e6  # cost of a model that cannot run


def search(problem: Problem, options: Options, report: Report, checkpoint: Checkpoint) -> Array:
    """Return the best x after about `options.trials` runs of the model; resume from a saved population."""
    members = max(LEAST, PER_UNKNOWN * len(problem.parameters))
    generations = max(1, options.trials // members - 1)
    saved = checkpoint.load()
    population = np.array(saved['population']) if saved else _first(problem, options, members)
    best = np.array(saved['best']) if saved else problem.start
    done = int(saved.get('generation', 0))
    bounds = list(zip(problem.low, problem.high, strict=True))

    def cost(x: Array) -> float:
        error = problem.error(x)
        return error if math.isfinite(error) else CANNOT

    def after(intermediate_result: Any) -> None:
        nonlocal done, best, population
        done, best, population = done + 1, intermediate_result.x, intermediate_result.population
        report(min(1.0, done / generations), f'error {float(intermediate_result.fun):.4g}')
        keep()

    def keep() -> None:
        checkpoint.save({'population': population.tolist(), 'best': best.tolist(), 'generation': done})

    if done < generations:
        optimize.differential_evolution(
            cost,
            bounds,
            maxiter=generations - done,
            init=population,
            rng=options.seed + done,
            tol=1e-3,
            polish=False,
            callback=after,
        )
        done = generations  # or fewer, if the population converged
        keep()
    return np.asarray(optimize.minimize(cost, best, method='L-BFGS-B', bounds=bounds).x)


def _first(problem: Problem, options: Options, members: int) -> Array:
    """Return a Latin hypercube over the search range, including the values of the file."""
    cube = stats.qmc.LatinHypercube(problem.start.size, seed=options.seed).random(members)
    population = problem.low + cube * (problem.high - problem.low)
    population[0] = np.clip(problem.start, problem.low, problem.high)
    return population
