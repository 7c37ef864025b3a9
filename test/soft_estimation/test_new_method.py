"""An identification method from outside the package: one entry in the table; `identify` and its command offer it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from identification_truth import bending_recording, deviations, wrong
from scipy import optimize

from soft_dynamics.array import Array
from soft_dynamics.description.robot_description import load_description
from soft_estimation.commands.identify import parser
from soft_estimation.identification import METHODS, Options, identify, problem_of
from soft_estimation.identification.budget import Checkpoint, Report
from soft_estimation.identification.identify import Method
from soft_estimation.identification.problem import Problem
from soft_estimation.identification.unknowns import default_keys

KEYS = ('*.stiffness', '*.damping')


def search(problem: Problem, options: Options, report: Report, _checkpoint: Checkpoint) -> Array:
    """Nelder-Mead on the error of the free runs."""

    def cost(x: Array) -> float:
        error = problem.error(x)
        return error if math.isfinite(error) else 1e6

    def after(_x: Array) -> None:
        report(0.5, 'simplex')

    start = np.array(problem.start)
    simplex = start + 0.2 * np.vstack([np.zeros(start.size), np.eye(start.size)])
    settings = {'initial_simplex': simplex, 'maxfev': options.trials}
    return np.asarray(
        optimize.minimize(cost, start, method='Nelder-Mead', callback=after, options=settings).x
    )


def test_a_new_method_is_chosen_by_name_and_finds_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = load_description('bending_actuator')
    guess, recording = wrong(truth, stiffness=1.8, damping=0.5), bending_recording(truth)
    with pytest.raises(ValueError, match=r"method must be one of .*, got 'simplex'"):
        problem_of(guess, [recording], 'simplex', KEYS)
    monkeypatch.setitem(METHODS, 'simplex', Method(search, default_keys, 'a simplex of three robots'))
    told = list[str]()
    problem = problem_of(guess, [recording], 'simplex', KEYS)
    found = identify(problem, 'simplex', Options(trials=150), lambda _part, note: told.append(note))
    off = deviations(found, truth)
    assert abs(off['*.stiffness']) < 0.02
    assert abs(off['*.damping']) < 0.02
    assert 'simplex' in told
    assert 'a simplex of three robots' in ' '.join(parser().format_help().split())
