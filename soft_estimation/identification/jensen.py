"""Optuna on the error of free runs.                                                                [Jensen, sec. IV-B]

Optuna's own storage is what makes a search resumable and lets many machines work on it: a sqlite file, or the URL of a
PostgreSQL server that all of them reach.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from soft_dynamics.arguments import Array

from .options import Checkpoint, Options, Report
from .problem import Problem

CANNOT = 1e6  # error of a model that cannot run


def search(problem: Problem, options: Options, report: Report, checkpoint: Checkpoint) -> Array:
    """The best x of a study of `options.trials` trials, counting those that the storage has already."""
    optuna = _optuna()
    names = [parameter.key for parameter in problem.parameters]
    study = optuna.create_study(
        study_name=f'identify {problem.fingerprint}',
        storage=options.storage or None,
        sampler=optuna.samplers.TPESampler(seed=options.seed, multivariate=True),
        load_if_exists=True,
    )
    if not study.trials:
        study.enqueue_trial(dict(zip(names, problem.start.tolist(), strict=True)))

    def finished() -> int:
        return sum(trial.state == optuna.trial.TrialState.COMPLETE for trial in study.trials)

    def objective(trial: Any) -> float:
        x = [trial.suggest_float(p.key, p.low, p.high) for p in problem.parameters]
        error = problem.error(np.array(x), power=1)
        return error if math.isfinite(error) else CANNOT

    def after(study: Any, trial: Any) -> None:
        report(min(1.0, (trial.number + 1) / options.trials), f'error {study.best_value:.4g}')

    study.optimize(objective, n_trials=max(0, options.trials - finished()), callbacks=[after])
    return np.array([study.best_params[name] for name in names])


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise ValueError("method jensen needs Optuna: pip install 'soft-robot-suite[identify]'") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
