"""Simulate a robot under given inputs, with a compiled implicit method, compiled RK4 or scipy's solvers.

Robots of discs are integrated in quaternions and body rates, which have no singular pose; no implicit method supports
them. Their dampers act on the body rates here (b w, a Rayleigh function of regular rates), even if `damping_on` selects
the angles for inverse and forward dynamics: the rates of the angles are unbounded near beta = 0. In planar motion both
laws are the same.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from ..array import Array, as_array, as_states
from ..kernels.chain import SPRING
from ..kernels.steppers import Plant
from ..model.actuation import actuators
from ..model.assembly import assemble
from ..model.coordinates import SameCoordinates
from .first_order_lag import follow
from .integrate import METHODS, Motions, Options, Source, integrate

if TYPE_CHECKING:
    from ..robot import Robot


@dataclass(frozen=True)
class Trajectory:
    """A simulated motion: t (count,), q and qd (count, nq), and the applied inputs (count, m).

    For a batch, q and qd are (motions, count, nq), and so are the inputs if each motion has its own.
    """

    t: Array
    q: Array
    qd: Array
    inputs: Array
    method: str


def simulate(
    robot: Robot,
    q0: Any,
    qd0: Any,
    inputs: Any,
    t_eval: Any,
    method: str = 'default',
    *,
    kind: str = 'pressure',
    valve: bool = False,
    **options: Any,
) -> Trajectory:
    """Integrate from (q0, qd0) at t_eval[0]; return the motion at t_eval.

    q0, qd0: one state (nq,), or a batch (motions, nq), which the compiled methods run in parallel.
    inputs: None (zero), an array (len(t_eval), m) interpolated linearly, or a function of t that returns (m,);
    for a batch also (motions, len(t_eval), m) or a function that returns (motions, m).
    kind: 'pressure' (m chambers [Pa]) or 'force' (m = nq generalised forces). Pressures are those at the sensors; the
    chambers follow them with the robot's fill_lag and vent_lag, starting in equilibrium.
    valve: the inputs are commands; each pressure follows its command with the first-order valve lag of the robot.
    method: 'implicit' (SDIRK4, fixed step), 'rk4' (fixed step), or scipy's 'BDF', 'Radau', 'LSODA', 'DOP853'. The
    default is 'implicit', or 'rk4' for discs, which have no implicit method.
    options: fields of `integrate.Options`.

    Raises ValueError for invalid arguments, TypeError for an unknown option, NotConverged (with time and state) if the
    integration fails.
    """
    t = as_array('t_eval', t_eval)
    if t.ndim != 1 or t.size < 1 or np.any(np.diff(t) <= 0.0):
        raise ValueError(f't_eval: expected rising times, got shape {t.shape}')
    if kind not in ('pressure', 'force'):
        raise ValueError(f"kind: expected 'pressure' or 'force', got {kind!r}")
    known = [field.name for field in fields(Options) if field.name != 'method']
    for name in options:
        if name not in known:
            raise TypeError(f'simulate() has no option {name!r}, expected one of {", ".join(known)}')
    state, single = as_states(robot.nq, q0=q0, qd0=qd0)
    of_discs = any(segment.singular for segment in robot.description.segments)
    chosen = Options(_method(method, of_discs), **options)
    plant, start = (_regular_model if of_discs else _joint_model)(robot, state['q0'], state['qd0'], kind)
    source = _input_source(inputs, t, len(start.x), plant.columns.shape[1])
    drive = robot.description.actuation
    if valve:
        source = _through_lag(source, t, drive.valve_lag, drive.valve_lag, from_rest=True)
    if kind == 'pressure':
        source = _through_lag(source, t, drive.fill_lag, drive.vent_lag, from_rest=False)
    motions = integrate(plant, start, source, t, chosen)
    if of_discs:
        motions = _public_motions(robot, t, state['q0'], motions)
    change = robot._model.change
    q, qd = change.public_position(motions.x), change.public_rate(motions.v)
    acted = source(t)
    acted = acted[0] if len(acted) == 1 else acted
    return Trajectory(t, q[0] if single else q, qd[0] if single else qd, acted, chosen.method)


def _method(wanted: str, of_discs: bool) -> str:
    has = tuple(name for name in METHODS if name != 'implicit') if of_discs else METHODS
    if wanted not in ('default', *has):
        robot = ' for a robot of discs' if of_discs else ''
        raise ValueError(f'method: expected one of {", ".join(has)}{robot}, got {wanted!r}')
    return has[0] if wanted == 'default' else wanted


# ---- what is integrated ------------------------------------------------------------------------------------------


def _joint_model(robot: Robot, q0: Array, qd0: Array, kind: str) -> tuple[Plant, Motions]:
    model = robot._model
    columns, wrenches = model.actuators.columns, model.actuators.wrenches
    if kind == 'force':
        columns = np.ascontiguousarray(model.change.force(np.eye(robot.nq)).T)
    if kind == 'force' or not model.actuators.follows:
        wrenches = np.zeros((columns.shape[1], 0, 6))
    no_springs = np.zeros(0, SPRING), np.zeros(0, np.int64)
    plant = Plant(model.chain, *no_springs, columns, wrenches)
    return plant, Motions(model.change.position(q0), model.change.rate(qd0))


def _regular_model(robot: Robot, q0: Array, qd0: Array, kind: str) -> tuple[Plant, Motions]:
    if kind == 'force':
        raise ValueError("kind: expected 'pressure' for a robot of discs, got 'force'")
    build = assemble(robot.description, regular=True)
    drive = actuators(robot.description, build, SameCoordinates())
    change, base = robot._model.change, _base(robot)
    angles, rates = change.position(q0), change.rate(qd0)
    x, v = [angles[:, base]], [rates[:, base]]
    for segment in robot.description.segments:
        own = robot._model.build.rates_of[segment.name]
        for parts, part in zip((x, v), segment.to_regular(angles[:, own], rates[:, own]), strict=True):
            parts.append(part)
    springs, first = np.array(build.springs, SPRING), np.array(build.spring_rates, np.int64)
    plant = Plant(build.elements, springs, first, drive.columns, drive.wrenches)
    return plant, Motions(np.concatenate(x, 1), np.concatenate(v, 1))


def _base(robot: Robot) -> slice:
    """The coordinates of the base."""
    return slice(0, len(robot.description.base.own_coordinates()))


def _public_motions(robot: Robot, t: Array, q0: Array, motions: Motions) -> Motions:
    """Joint coordinates and their rates of motions that were integrated in the regular form."""
    (xs, vs), start, base = motions, robot._model.change.position(q0), _base(robot)
    regular = assemble(robot.description, regular=True)
    x, v = np.empty((2, *xs.shape[:2], robot.nq))
    x[:, :, base], v[:, :, base] = xs[:, :, base], vs[:, :, base]
    for segment in robot.description.segments:
        own = robot._model.build.rates_of[segment.name]
        wide, fast = regular.positions_of[segment.name], regular.rates_of[segment.name]
        for k in range(len(xs)):
            x[k, :, own], v[k, :, own] = segment.from_regular(
                t, xs[k][:, wide], vs[k][:, fast], start[k, own]
            )
    return Motions(x, v)


# ---- inputs ------------------------------------------------------------------------------------------------------


def _input_source(inputs: Any, t: Array, motions: int, m: int) -> Source:
    """Return a function from times (any shape) to inputs (motions or 1, that shape, m)."""
    if inputs is None:
        return lambda times: np.zeros((1, *np.shape(times), m))
    if callable(inputs):
        function, wanted = inputs, f'({m},)' if motions == 1 else f'({m},) or ({motions}, {m})'

        def sampled(times: Array) -> Array:
            values = [as_array('inputs(t)', function(float(now))) for now in np.ravel(times)]
            values = [a[None] if a.ndim == 0 and m == 1 else a for a in values]  # one chamber, one number
            bad = next((a for a in values if a.shape not in ((m,), (motions, m))), None)
            if bad is not None:
                raise ValueError(f'inputs(t): expected shape {wanted}, got {bad.shape}')
            same = values[0].ndim == 1
            if any((a.ndim == 1) != same for a in values):
                raise ValueError(f'inputs(t): expected the same shape at all times, {wanted}')
            stacked = np.stack([np.atleast_2d(a) for a in values], 1)
            return stacked.reshape(len(stacked), *np.shape(times), m)

        return sampled
    samples = as_array('inputs', inputs)
    if samples.shape not in ((t.size, m), (motions, t.size, m)):
        wanted = f'({t.size}, {m})' + (f' or ({motions}, {t.size}, {m})' if motions > 1 else '')
        raise ValueError(f'inputs: expected shape {wanted}, got {samples.shape}')
    return _straight_lines(t, samples.reshape(-1, t.size, m))


def _straight_lines(t: Array, samples: Array) -> Source:
    """Interpolate samples (motions or 1, len(t), m) linearly; hold the last one."""
    gaps = np.diff(t, append=np.inf)
    rises = np.diff(samples, axis=1, append=samples[:, -1:])

    def between(times: Array) -> Array:
        k = np.maximum(np.searchsorted(t, times, side='right') - 1, 0)
        return np.asarray(samples[:, k] + ((times - t[k]) / gaps[k])[..., None] * rises[:, k])

    return between


def _through_lag(source: Source, t: Array, fill: float, vent: float, from_rest: bool) -> Source:
    """Pressures that follow the source with first-order lags [s], starting from rest or in equilibrium with it."""
    if max(fill, vent) <= 0.0:
        return source
    shortest = min(lag for lag in (fill, vent) if lag > 0.0)
    fine = np.unique(np.concatenate([t, np.arange(t[0], t[-1], shortest / 10.0)]))
    command = source(fine)
    return _straight_lines(fine, follow(fine, command, fill, vent, (not from_rest) * command[:, 0]))
