"""Springs and dampers from a free swing, then the gains of the chambers from a slow inflation.     [Wang, sec. IV-A.3]

    K q + D qd = -M qdd - C qd - G              swing: vented, and q, qd, qdd are damped sinusoids
    A p = K q + D qd + M qdd + C qd + G         inflation, with the K and D found

Both are linear. The columns are differences of the robot's inverse dynamics, so any robot works, and keys may share
unknowns between coordinates. A recording without pressure is a swing.

Unlike in the paper, least squares on all swings, from their first sample on, refines K and D between the two steps. The
half second after the release, which a few sinusoids cannot fit, is when light outer segments show their dampers.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import optimize

from soft_dynamics.array import Array
from soft_dynamics.description.robot_description import Description
from soft_dynamics.robot import Robot

from ...recordings.recording import Recording
from ..budget import Checkpoint, Options, Report
from ..damped_sinusoids import fit_swing
from ..multiple_shooting import Shooting
from ..problem import Problem
from ..sensitivity import States, force_slopes, unbalanced
from ..unknowns import Parameter, default_keys
from .least_squares import minimise

NO_PRESSURE = 0.01  # relative to pressure_max
LINEAR = ('stiffness', 'cubic_stiffness', 'damping', 'gain', 'mass')
LEAST_FACTOR = 1e-3
MODES = 8
SETTLE = 0.5  # [s] after the release; by then all but the slow modes are below the noise
SETTLING = (0.1, 0.9)  # fractions of the search, between which K and D are refined
SHORT = 0.5  # [s] shortest usable swing after that


def keys(robot: Description) -> list[str]:
    """Return keys: stiffness and damping per coordinate, and one gain per coordinate of segments with chambers."""
    found = []
    for key in default_keys(robot):
        name, field = key.split('.')
        (segment,) = (s for s in robot.segments if s.name == name)
        count = len(getattr(getattr(segment, 'material', segment), field))
        found += [f'{key}[{k}]' for k in range(count)]
    by_segment = {c.segment: c for c in robot.actuation.chambers if c.work == 'gain'}
    for where, chamber in by_segment.items():
        names = [c.name for c in robot.actuation.chambers if c.segment == where]
        shared = _common_pattern(names, [c.name for c in robot.actuation.chambers])
        found += [f'{shared}.gain[{k}]' for k, gain in enumerate(chamber.gain) if gain]
    return found


def search(problem: Problem, options: Options, report: Report, checkpoint: Checkpoint) -> Array:
    """Return x by linear equations and a local search; unknowns without effect keep their values in the file.

    Raises ValueError for unknowns in which the forces are not linear, and without a swing of a second.
    """
    for parameter in problem.parameters:
        if parameter.targets[0].field not in LINEAR:
            raise ValueError(
                f'method wang: forces are not linear in {parameter.key}; it finds {", ".join(LINEAR)}'
            )
    quiet = NO_PRESSURE * problem.description.actuation.pressure_max
    free = [not r.pressure.size or np.abs(r.pressure).max() <= quiet for r in problem.recordings]
    swings = [r for r, is_free in zip(problem.recordings, free, strict=True) if is_free]
    others = [r for r, is_free in zip(problem.recordings, free, strict=True) if not is_free]
    passive = [k for k, p in enumerate(problem.parameters) if p.targets[0].owner == 'segments']
    active = [k for k in range(len(problem.parameters)) if k not in passive]
    if passive and not swings:
        raise ValueError('method wang: expected a recording of a free swing without pressure, got none')
    x = problem.start.copy()
    if passive:
        states = [_smooth(problem, recording) for recording in swings]
        x = _solve(problem, x, passive, states)
        report(SETTLING[0], 'fitted sinusoids to the swings')
        x = _settled(problem, x, passive, swings, report, checkpoint)
    if active and others:
        x = _solve(problem, x, active, [_as_measured(problem, recording) for recording in others])
    report(1.0, 'done')
    return x


def _settled(
    problem: Problem,
    x: Array,
    places: list[int],
    swings: list[Recording],
    report: Report,
    checkpoint: Checkpoint,
) -> Array:
    """Refine some unknowns by least squares on the swings, starting from x."""
    parameters = tuple(problem.parameters[k] for k in places)
    released = tuple(replace(swing, pressure=np.zeros_like(swing.pressure)) for swing in swings)
    shooting = Shooting(replace(problem, parameters=parameters, recordings=released))
    first, last = SETTLING
    best = minimise(
        shooting,
        np.array(checkpoint.load().get('z', shooting.begin(x[places]))),
        lambda part, note: report(first + (last - first) * part, note),
        lambda z: checkpoint.save({'z': z.tolist()}),
    )
    found = x.copy()
    found[places] = best['x']
    return found


def _solve(problem: Problem, x: Array, places: list[int], states: list[States]) -> Array:
    """Solve least squares for the factors of some unknowns, with the others as in x.

    Rows are divided by the spread of their coordinate, so that a strong joint does not dominate a weak one.
    """
    columns = np.concatenate([force_slopes(problem, x, part)[:, problem.moving] for part in states])[
        ..., places
    ]
    now = np.concatenate([unbalanced(problem.robot(x), part)[:, problem.moving] for part in states])
    constant = now - columns.sum(-1)  # forces with all these unknowns zero; all factors are 1 at x
    weight = 1.0 / np.maximum(np.sqrt(np.mean(columns**2, axis=(0, 2))), 1e-12)
    left = (columns * weight[None, :, None]).reshape(-1, len(places))
    signed = np.array([problem.parameters[k].kind != 'factor' for k in places])
    least = np.where(signed, -np.inf, LEAST_FACTOR)
    factor = optimize.lsq_linear(left, -(constant * weight).ravel(), (least, np.inf)).x
    found = x.copy()
    for k, f in zip(places, factor, strict=True):
        found[k] = _moved(problem.parameters[k], x[k], f)
    return found


def _moved(parameter: Parameter, x: float, factor: float) -> float:
    """Return the x of a value that is `factor` times the one at x; a shift has a unit column, and x is its size."""
    if parameter.kind == 'factor':
        return x + float(np.log(factor))
    return x + factor - 1.0


def _smooth(problem: Problem, recording: Recording) -> States:
    """Fit a swing by damped sinusoids, in the coordinates that move."""
    if recording.duration < SETTLE + SHORT:
        least = f'a free swing of at least {SETTLE + SHORT:g} s'
        raise ValueError(f'method wang: expected {least}, got one of {recording.duration:.3g} s')
    moving, rows = problem.moving, recording.t >= SETTLE
    q, pressure = recording.q[rows], np.zeros_like(recording.pressure[rows])
    swing = fit_swing(recording.t[rows], q[:, moving], MODES)
    qd, qdd = np.zeros_like(q), np.zeros_like(q)
    q[:, moving], qd[:, moving], qdd[:, moving] = swing.q, swing.qd, swing.qdd
    return _states(problem, q, qd, qdd, pressure)


def _as_measured(problem: Problem, recording: Recording) -> States:
    return _states(problem, recording.q, recording.qd, recording.qdd, recording.pressure)


def _states(problem: Problem, q: Array, qd: Array, qdd: Array, u: Array) -> States:
    return States(q, qd, qdd, u, {}, Robot(problem.description).actuation(q))


def _common_pattern(names: list[str], every: list[str]) -> str:
    """Return the shortest `head*` that matches only these names."""
    for size in range(len(names[0]) + 1):
        head = names[0][:size]
        if [name for name in every if name.startswith(head)] == names:
            return f'{head}*'
    return names[0]
