"""From a robot file and recordings to a new robot file: the table of methods and what they share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from soft_dynamics.array import Array
from soft_dynamics.description.robot_description import Description
from soft_dynamics.errors import SoftRobotError

from ..recordings.recording import Recording
from .budget import Checkpoint, Options, Report
from .methods import godage, jensen, least_squares, mehl, wang
from .problem import Problem
from .uncertainty import Uncertainty, assess
from .unknowns import Parameter, apply, default_keys, select

Search = Callable[[Problem, Options, Report, Checkpoint], Array]


class Method(NamedTuple):
    """A method: its search and its default keys."""

    search: Search
    keys: Callable[[Description], list[str]]
    summary: str
    aside: Callable[[Problem], dict[int, float]] = (
        lambda problem: {}
    )  # standard deviations that do not come from the motion


METHODS = {
    'least_squares': Method(least_squares.search, default_keys, 'multi-start least squares, exact slopes'),
    'jensen': Method(jensen.search, default_keys, 'Optuna on free-run error'),
    'mehl': Method(mehl.search, mehl.keys, 'mass from f_z, regressor in a particle swarm', mehl.mass_std),
    'wang': Method(wang.search, wang.keys, 'free swing, then slow inflation'),
    'godage': Method(godage.search, default_keys, 'differential evolution on step responses'),
}


@dataclass(frozen=True)
class Identification:
    """Result: x (p,) of the unknowns, their uncertainty, and the robot with them.

    error is the RMS deviation of the free runs (nq,) [rad or m]; before is that with the values of the file.
    """

    method: str
    parameters: tuple[Parameter, ...]
    x: Array
    uncertainty: Uncertainty
    before: Array
    error: Array
    description: Description

    @property
    def values(self) -> Array:
        """Values (p,) in the units of the file."""
        return np.array([p.value(x) for p, x in zip(self.parameters, self.x, strict=True)])


def unknowns(robot: Description, method: str, keys: Sequence[str] = ()) -> tuple[Parameter, ...]:
    """Return the unknowns of a method. Raises ValueError for an unknown method or key."""
    if method not in METHODS:
        raise ValueError(f'method must be one of {", ".join(METHODS)}, got {method!r}')
    if method == 'mehl' and keys:
        raise ValueError('fit: method mehl always finds the parameters of its table, got keys')
    return select(robot, list(keys) or METHODS[method].keys(robot))


def problem_of(
    robot: Description,
    recordings: Sequence[Recording],
    method: str,
    keys: Sequence[str] = (),
    **settings: float,
) -> Problem:
    """Return the problem that a method solves; `settings`: see `Problem`.

    Raises ValueError for an unknown method or key, and for recordings of another robot.
    """
    return Problem(robot, unknowns(robot, method, keys), tuple(recordings), **settings)


def identify(
    problem: Problem,
    method: str = 'least_squares',
    options: Options | None = None,
    report: Report = lambda part, note: None,
    checkpoint: Path | None = None,
) -> Identification:
    """Find the unknowns. Resume from the `checkpoint` file of an interrupted search.

    The file remains; the caller removes it once the result is saved.

    Raises ValueError if the recordings do not suit the method.
    """
    store = Checkpoint(checkpoint, f'{method} {problem.fingerprint}')
    x = METHODS[method].search(problem, options or Options(), report, store)
    try:
        uncertainty = assess(problem, x, METHODS[method].aside(problem))
    except SoftRobotError as error:
        unknown = np.full(x.size, math.nan)
        uncertainty = Uncertainty(unknown, (f'no uncertainty: {error}',))
    return Identification(
        method,
        problem.parameters,
        x,
        uncertainty,
        free_run_rms(problem, problem.start),
        free_run_rms(problem, x),
        apply(problem.description, problem.parameters, x),
    )


def free_run_rms(problem: Problem, x: Array) -> Array:
    """Return the RMS deviation (nq,) of free runs from their measured starts; nan if the model cannot run."""
    if not math.isfinite(problem.error(x)):
        return np.full(problem.recordings[0].q.shape[1], math.nan)
    deviations = np.concatenate(list(problem.deviations(x)))
    return np.sqrt(np.mean(deviations**2, axis=0))
