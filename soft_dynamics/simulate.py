"""Simulation of a robot under given inputs: a compiled implicit method, a compiled RK4, and scipy's solvers.

A robot of discs is integrated in quaternions and body rates, which no pose makes singular; there the dampers act on
the body rates (b w, a Rayleigh function of regular rates) and not on the angles, whose rates are unbounded near
beta = 0. In plane motion the two are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from . import steppers
from .actuation import actuators
from .announce import Announced
from .arguments import Array, as_array, as_states
from .assembly import SPRING, assemble
from .chain import Elements
from .coordinates import SameCoordinates
from .description import Disc
from .errors import NotConverged
from .forward import OK

if TYPE_CHECKING:
    from .robot import Robot

METHODS = ('implicit', 'rk4', 'BDF', 'Radau', 'LSODA', 'DOP853')
DEFAULT_STEP = {'implicit': 5e-3, 'rk4': 5e-4}  # [s]
CHUNK = 2000  # steps between two calls of the progress callback

_sdirk4 = Announced(steppers.sdirk4)
_rk4 = Announced(steppers.rk4)
_accelerations = Announced(steppers.accelerations)


@dataclass(frozen=True)
class Trajectory:
    """A simulated motion: t (count,), q and qd (count, nq), and the inputs (count, m) that acted."""

    t: Array
    q: Array
    qd: Array
    inputs: Array
    method: str


@dataclass
class _Model:
    """What the steppers integrate: a chain in joint coordinates or, for discs, its regular form."""

    chain: Elements
    columns: Array
    wrenches: Array
    x: Array
    v: Array
    springs: Any = field(default_factory=lambda: np.zeros(0, SPRING))
    first: Any = field(default_factory=lambda: np.zeros(0, np.int64))


def simulate(
    robot: Robot,
    q0: Any,
    qd0: Any,
    inputs: Any,
    t_eval: Any,
    method: str = 'implicit',
    *,
    kind: str = 'pressure',
    valve: bool = False,
    step: float | None = None,
    tolerance: float = 1e-12,
    rtol: float = 1e-8,
    atol: float = 1e-10,
    progress: Callable[[float], None] | None = None,
) -> Trajectory:
    """Integrate from (q0, qd0) at t_eval[0] and return the motion at t_eval.

    inputs: None (nothing acts), an array (len(t_eval), m) joined by straight lines, or a function of t giving (m,).
    kind: 'pressure' (m chambers [Pa]) or 'force' (m = nq generalised forces).
    valve: the inputs are commands, and each pressure follows its command through the robot's first-order valve lag.
    method: 'implicit' (SDIRK4, fixed step), 'rk4' (fixed step), or scipy's 'BDF', 'Radau', 'LSODA', 'DOP853'.
    step [s]: longest step of the fixed-step methods; tolerance: of the implicit method's equations [rad or m].
    progress: called with the part done, 0 to 1.

    Raises ValueError for wrong arguments, NotConverged (with time and state) if the motion cannot go on.
    """
    t = as_array('t_eval', t_eval)
    if t.ndim != 1 or t.size < 1 or np.any(np.diff(t) <= 0.0):
        raise ValueError(f't_eval: expected rising times, got shape {t.shape}')
    if method not in METHODS:
        raise ValueError(f'method: expected one of {", ".join(METHODS)}, got {method!r}')
    state, _ = as_states(robot.nq, q0=q0, qd0=qd0)
    if len(state['q0']) != 1:
        raise ValueError(f'q0, qd0: expected one state, got {len(state["q0"])}')
    of_discs = any(isinstance(segment, Disc) for segment in robot.description.segments)
    if of_discs and method == 'implicit':
        method = 'rk4'
    model = (_disc_model if of_discs else _joint_model)(robot, state['q0'], state['qd0'], kind)
    source = _input_function(robot, inputs, t, kind, model.columns.shape[1])
    if valve:
        source = _through_valve(source, t, robot.description.actuation.valve_lag)
    if method in DEFAULT_STEP:
        xs, vs = _fixed_step(model, source, t, method, step or DEFAULT_STEP[method], tolerance, progress)
    else:
        xs, vs = _adaptive(model, source, t, method, rtol, atol, progress)
    q, qd = _public(robot, of_discs, state['q0'][0], xs, vs)
    return Trajectory(t, q, qd, source(t), method)


# ---- what is integrated ------------------------------------------------------------------------------------------


def _joint_model(robot: Robot, q0: Array, qd0: Array, kind: str) -> _Model:
    model = robot._model
    columns, wrenches = model.actuators.columns, model.actuators.wrenches
    if kind == 'force':
        columns = np.ascontiguousarray(model.change.force(np.eye(robot.nq)).T)
    if kind == 'force' or not model.actuators.follows:
        wrenches = np.zeros((columns.shape[1], 0, 6))
    x, v = model.change.position(q0[0]), model.change.rate(qd0[0])
    return _Model(model.chain, columns, wrenches, x.copy(), v.copy())


def _disc_model(robot: Robot, q0: Array, qd0: Array, kind: str) -> _Model:
    from . import discs  # takes scipy's rotations along, which are slow to import

    if kind == 'force':
        raise ValueError("kind: a robot of discs is simulated under 'pressure' only")
    build = assemble(robot.description, regular=True)
    drive = actuators(robot.description, build, SameCoordinates())
    change = robot._model.change
    x, v = change.position(q0), change.rate(qd0)
    parts = _blocks(robot, 5)
    quaternions = [discs.to_quaternions(x[:, part]) for part in parts]
    rates = [
        discs.rate_matrix(x[:, part], quat)[0] @ v[0, part]
        for part, quat in zip(parts, quaternions, strict=True)
    ]
    springs = np.array(build.springs, SPRING)
    first = np.array([5 * (int(s['iq']) // 8) for s in build.springs], np.int64)
    return _Model(
        build.elements,
        drive.columns,
        drive.wrenches,
        np.concatenate(quaternions, 1)[0],
        np.concatenate(rates),
        springs,
        first,
    )


def _blocks(robot: Robot, size: int) -> list[slice]:
    return [slice(size * k, size * (k + 1)) for k in range(len(robot.description.segments))]


def _public(robot: Robot, of_discs: bool, q0: Array, xs: Array, vs: Array) -> tuple[Array, Array]:
    """Public coordinates and rates of an integrated motion; at a singular pose of the angles the smallest rates."""
    change = robot._model.change
    if of_discs:
        from . import discs

        start = change.position(q0)
        x, v = np.empty((len(xs), robot.nq)), np.empty((len(xs), robot.nq))
        for part, wide in zip(_blocks(robot, 5), _blocks(robot, 8), strict=True):
            x[:, part] = discs.to_angles(xs[:, wide], start[part])
            A = discs.rate_matrix(x[:, part], xs[:, wide])
            v[:, part] = np.einsum('kij,kj->ki', np.linalg.pinv(A, rcond=1e-9), vs[:, part])
        xs, vs = x, v
    return change.public_position(xs), change.public_rate(vs)


# ---- inputs ------------------------------------------------------------------------------------------------------


def _input_function(robot: Robot, inputs: Any, t: Array, kind: str, m: int) -> Callable[[Array], Array]:
    """A function from times (any shape) to inputs (that shape, m)."""
    if kind not in ('pressure', 'force'):
        raise ValueError(f"kind: expected 'pressure' or 'force', got {kind!r}")
    if inputs is None:
        return lambda times: np.zeros((*np.shape(times), m))
    if callable(inputs):
        function = inputs

        def sampled(times: Array) -> Array:
            flat = [as_array('inputs(t)', function(float(now))) for now in np.ravel(times)]
            if any(value.shape != (m,) for value in flat):
                raise ValueError(f'inputs(t): expected shape ({m},), got {flat[0].shape}')
            return np.array(flat).reshape(*np.shape(times), m)

        return sampled
    samples = as_array('inputs', inputs)
    if samples.shape != (t.size, m):
        raise ValueError(f'inputs: expected shape ({t.size}, {m}), got {samples.shape}')
    return lambda times: (
        np.stack([np.interp(times, t, samples[:, k]) for k in range(m)], -1)
        if m
        else np.zeros((*np.shape(times), 0))
    )


def _through_valve(source: Callable[[Array], Array], t: Array, lag: float) -> Callable[[Array], Array]:
    """Pressures that follow the commands with dp/dt = (command - p)/lag from rest, exact for straight pieces."""
    if lag <= 0.0:
        return source
    fine = np.unique(np.concatenate([t, np.arange(t[0], t[-1], lag / 10.0)]))
    command = source(fine)
    p = np.zeros_like(command)
    for k in range(1, fine.size):
        h = fine[k] - fine[k - 1]
        decay, slope = np.exp(-h / lag), (command[k] - command[k - 1]) / h
        p[k] = command[k] - slope * lag + decay * (p[k - 1] - command[k - 1] + slope * lag)
    return lambda times: np.stack([np.interp(times, fine, p[:, j]) for j in range(p.shape[1])], -1)


# ---- methods -----------------------------------------------------------------------------------------------------


def _fixed_step(
    model: _Model,
    source: Callable[[Array], Array],
    t: Array,
    method: str,
    step: float,
    tolerance: float,
    progress: Callable[[float], None] | None,
) -> tuple[Array, Array]:
    if not step > 0.0:
        raise ValueError(f'step: expected > 0 s, got {step:g}')
    counts = np.maximum(1, np.ceil(np.diff(t) / step - 1e-9).astype(np.int64))
    h = np.repeat(np.diff(t) / counts, counts)
    index = np.concatenate([[0], np.cumsum(counts)])
    starts = np.repeat(t[:-1], counts) + h * (np.arange(h.size) - np.repeat(index[:-1], counts))
    keep = np.full(h.size, -1, np.int64)
    keep[index[1:] - 1] = np.arange(1, t.size)
    xs, vs = np.empty((t.size, model.x.size)), np.empty((t.size, model.v.size))
    xs[0], vs[0] = model.x, model.v
    nodes = steppers.SDIRK_C if method == 'implicit' else steppers.RK4_C
    acceleration = np.zeros(model.v.size)
    for begin in range(0, h.size, CHUNK):
        part = slice(begin, begin + CHUNK)
        u = np.ascontiguousarray(source(starts[part, None] + h[part, None] * nodes))
        if method == 'implicit':
            failed = _sdirk4(
                model.chain,
                model.columns,
                model.wrenches,
                model.x,
                model.v,
                acceleration,
                h[part],
                u,
                tolerance,
                keep[part],
                xs,
                vs,
            )
        else:
            failed = _rk4(
                model.chain,
                model.springs,
                model.first,
                model.columns,
                model.wrenches,
                model.x,
                model.v,
                h[part],
                u,
                keep[part],
                xs,
                vs,
            )
        if failed != steppers.DONE:
            raise NotConverged(
                float(starts[begin + failed]),
                (model.x.copy(), model.v.copy()),
                f'the {method} method found no next state with a step of {h[begin + failed]:.3g} s; try a smaller step',
            )
        if progress is not None:
            progress(min(1.0, (begin + CHUNK) / h.size))
    return xs, vs


def _adaptive(
    model: _Model,
    source: Callable[[Array], Array],
    t: Array,
    method: str,
    rtol: float,
    atol: float,
    progress: Callable[[float], None] | None,
) -> tuple[Array, Array]:
    from scipy.integrate import solve_ivp  # half a second that most users need not wait

    nx, n = model.x.size, model.v.size
    work = np.empty((2, n))
    external = np.zeros((model.chain.size if model.wrenches.shape[1] else 0, 6))
    latest = 0.0

    def slope(now: float, y: Array) -> Array:
        nonlocal latest
        x, v, out = np.ascontiguousarray(y[:nx]), np.ascontiguousarray(y[nx:]), np.zeros(nx + n)
        u = np.ascontiguousarray(source(np.asarray(now)))
        steppers.coordinate_rates(model.chain, x, v, out[:nx])
        status = _accelerations(
            model.chain,
            model.springs,
            model.first,
            model.columns,
            model.wrenches,
            x,
            v,
            u,
            work,
            external,
            out[nx:],
        )
        if status != OK:
            raise NotConverged(
                float(now), (x, v), 'a coordinate moves no mass in this pose; the implicit method may pass'
            )
        if progress is not None and now > latest + 0.01 * (t[-1] - t[0]):
            latest = now
            progress(float((now - t[0]) / (t[-1] - t[0])))
        return out

    start = np.concatenate([model.x, model.v])
    if t.size == 1:
        return model.x[None], model.v[None]
    result = solve_ivp(slope, (t[0], t[-1]), start, method=method, t_eval=t, rtol=rtol, atol=atol)
    if not result.success:
        where = result.y[:, -1] if result.y.size else start
        raise NotConverged(float(result.t[-1]) if result.t.size else float(t[0]), where, result.message)
    return np.ascontiguousarray(result.y[:nx].T), np.ascontiguousarray(result.y[nx:].T)
