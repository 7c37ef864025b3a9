"""Optuna on the error of free runs.                                                                [Jensen, sec. IV-B]

Optuna's storage makes a search resumable and shareable between machines: a sqlite file, or the URL of a PostgreSQL
server that all of them can reach. Unlike in the paper, a local search continues from the best trial, because Optuna
gets near a flat minimum but not to it. The simplex restarts a few times, because in the narrow valleys of an arm with
many unknowns it shrinks too early.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import optimize

from soft_dynamics.array import Array

from ..budget import Checkpoint, Options, Report
from ..problem import Problem

CANNOT = 1e6  # cost of a model that cannot run
LOCAL = 40  # runs per unknown in a round of the local search
ROUNDS = 4  # rounds of the local search
STEP = 0.03  # edges of the first simplex relative to the search range, halved from round to round
GAIN = 1e-3  # stop after a round with a smaller relative gain
DRIVER = "pip install 'psycopg[binary]'"


def search(problem: Problem, options: Options, report: Report, checkpoint: Checkpoint) -> Array:
    """Return the best x of a study of `options.trials` trials, including those in the storage.

    Raises ValueError if the storage cannot be used.
    """
    optuna = _optuna()
    names = [parameter.key for parameter in problem.parameters]
    study = _study(optuna, options, f'identify {problem.fingerprint}')
    study.enqueue_trial(dict(zip(names, problem.start.tolist(), strict=True)), skip_if_exists=True)
    complete = (optuna.trial.TrialState.COMPLETE,)

    def finished() -> int:
        return len(study.get_trials(deepcopy=False, states=complete))

    def cost(x: Array) -> float:
        error = problem.error(x, power=1)
        return error if math.isfinite(error) else CANNOT

    def objective(trial: Any) -> float:
        return cost(np.array([trial.suggest_float(p.key, p.low, p.high) for p in problem.parameters]))

    def after(study: Any, trial: Any) -> None:
        done = finished()
        report(min(1.0, done / options.trials), f'error {study.best_value:.4g}')
        if done >= options.trials:  # by any process
            study.stop()

    left = options.trials - finished()
    if left > 0:
        study.optimize(objective, n_trials=left, callbacks=[after])
    best = np.array([study.best_params[name] for name in names])
    return _refined(problem, cost, best)


def _refined(problem: Problem, cost: Callable[[Array], float], best: Array) -> Array:
    """Run the downhill simplex from the best trial, with its corners towards the middle of the range."""
    bounds = list(zip(problem.low, problem.high, strict=True))
    way = np.where(best > 0.5 * (problem.low + problem.high), -1.0, 1.0)
    x, least = best, math.inf
    for k in range(ROUNDS):
        edges = np.diag(STEP * 0.5**k * way * (problem.high - problem.low))
        options = {
            'xatol': 1e-4,
            'fatol': 0.0,
            'maxfev': LOCAL * x.size,
            'adaptive': True,
            'initial_simplex': np.vstack([x, x + edges]),
        }
        found = optimize.minimize(cost, x, method='Nelder-Mead', bounds=bounds, options=options)
        x = np.asarray(found.x)
        if found.fun > (1.0 - GAIN) * least:
            break
        least = float(found.fun)
    return x


def _study(optuna: Any, options: Options, name: str) -> Any:
    """Return the study in the storage, new or existing.

    A resumed search must not repeat its random numbers, nor those of processes that share its storage. So the seed
    counts the existing trials and, on a server, the process too.
    """
    is_shared = bool(options.storage) and not options.storage.startswith('sqlite')
    try:
        study = optuna.create_study(study_name=name, storage=options.storage or None, load_if_exists=True)
    except ImportError as error:
        raise ValueError(f'storage: no driver for {_server(options.storage)} ({error}): {DRIVER}') from None
    except Exception as error:  # from Optuna, SQLAlchemy or the database driver
        reason = str(error).strip().splitlines()[0]
        raise ValueError(f'storage: cannot use {_server(options.storage)}: {reason}') from None
    words = [options.seed, len(study.trials), *([os.getpid()] if is_shared else [])]
    seed = int(np.random.SeedSequence(words).generate_state(1)[0])
    study.sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=is_shared)
    return study


def _server(storage: str) -> str:
    """Return a storage's URL without its password."""
    scheme, mark, rest = storage.partition('://')
    return f'{scheme}{mark}{rest.rpartition("@")[2]}'


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise ValueError("method jensen needs Optuna: pip install 'soft-robot-suite[identify]'") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
