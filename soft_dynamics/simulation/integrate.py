"""Integrate motions over given times: compiled fixed-step methods on many motions in parallel, and scipy's methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..array import Array
from ..errors import NotConverged
from ..kernels import steppers
from ..kernels.forward_dynamics import OK
from ..kernels.steppers import Plant, Steps
from .halved_steps import Halving, no_next_state

METHODS = ('implicit', 'rk4', 'BDF', 'Radau', 'LSODA', 'DOP853')
DEFAULT_STEP = {'implicit': 5e-3, 'rk4': 5e-4}  # [s]
CHUNK = 2000  # steps between two calls of the progress callback
LEAST_CHUNK = 50  # motions per block if each has its own inputs, to limit memory

Indices = npt.NDArray[np.int64]
Source = Callable[
    [Array], Array
]  # times (any shape) to inputs (motions or 1 if all are alike, that shape, m)


@dataclass(frozen=True)
class Options:
    """Method and accuracy: implicit (SDIRK4) and rk4 have fixed steps; the other methods are scipy's."""

    method: str = 'implicit'
    step: float | None = None  # [s] longest step of the fixed-step methods; None: DEFAULT_STEP
    tolerance: float = 1e-12  # [rad or m] Newton tolerance of the implicit method
    rtol: float = 1e-8  # of scipy's methods
    atol: float = 1e-10
    progress: Callable[[float], None] | None = None  # called with the completed fraction, 0 to 1

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f'method: expected one of {", ".join(METHODS)}, got {self.method!r}')
        for name in ('step', 'tolerance', 'rtol', 'atol'):
            value = getattr(self, name)
            if name == 'step' and value is None:
                continue
            if not isinstance(value, Real) or not 0.0 < float(value) < np.inf:
                raise ValueError(f'{name}: expected a finite number > 0, got {value!r}')
        if self.progress is not None and not callable(self.progress):
            raise ValueError(
                f'progress: expected a function of the completed fraction, got {self.progress!r}'
            )


class Motions(NamedTuple):
    """Joint coordinates (motions, nx) and rates (motions, nv), or (motions, times, nx or nv) over time."""

    x: Array
    v: Array


def integrate(plant: Plant, start: Motions, source: Source, t: Array, options: Options) -> Motions:
    """Return the motions from `start` at t[0], at all times t.

    Raises NotConverged (with time and state) if the integration of a motion fails.
    """
    if options.method in DEFAULT_STEP:
        return _fixed_step(plant, start, source, t, options)
    return _adaptive(plant, start, source, t, options)


# ---- compiled ----------------------------------------------------------------------------------------------------


def _fixed_step(plant: Plant, start: Motions, source: Source, t: Array, options: Options) -> Motions:
    h, starts, keep = _grid(t, options.step or DEFAULT_STEP[options.method])
    now = Motions(start.x.copy(), start.v.copy())
    out = Motions(*(np.empty((len(part), t.size, part.shape[1])) for part in now))
    out.x[:, 0], out.v[:, 0] = now
    run = _Run(plant, now, np.zeros_like(now.v), out, source, options)
    nodes = steppers.SDIRK_C if options.method == 'implicit' else steppers.RK4_C
    chunk = max(LEAST_CHUNK, CHUNK // len(source(t[:1])))
    for begin in range(0, h.size, chunk):
        part = slice(begin, begin + chunk)
        u = np.ascontiguousarray(source(starts[part, None] + h[part, None] * nodes))
        steps = Steps(h[part], u, keep[part])
        failed = run.take(steps)
        for k in np.flatnonzero(failed != steppers.DONE):
            run.go_on(int(k), int(failed[k]), steps, starts[part])
        if options.progress is not None:
            options.progress(min(1.0, (begin + chunk) / h.size))
    return out


def _grid(t: Array, step: float) -> tuple[Array, Array, Indices]:
    """Step lengths, start times, and for each step the row that stores its end, or -1."""
    counts = np.maximum(1, np.ceil(np.diff(t) / step - 1e-9).astype(np.int64))
    h = np.repeat(np.diff(t) / counts, counts)
    index = np.concatenate([[0], np.cumsum(counts)])
    starts = np.repeat(t[:-1], counts) + h * (np.arange(h.size) - np.repeat(index[:-1], counts))
    keep = np.full(h.size, -1, np.int64)
    keep[index[1:] - 1] = np.arange(1, t.size)
    return h, starts, keep


@dataclass(frozen=True)
class _Run:
    """Motions in progress: current state, last accelerations vd, and stored rows."""

    plant: Plant
    now: Motions
    vd: Array
    out: Motions
    source: Source
    options: Options

    def take(self, steps: Steps) -> Indices:
        """Advance all motions by the given steps; return DONE or the failed step of each."""
        plant, now, out = self.plant, self.now, self.out
        implicit, failed = self.options.method == 'implicit', np.full(len(now.x), steppers.DONE, np.int64)
        if len(now.x) != 1:
            if implicit:
                steppers.sdirk4_many(plant, *now, self.vd, steps, self.options.tolerance, *out, failed)
            else:
                steppers.rk4_many(plant, *now, steps, *out, failed)
            return failed
        own = steps._replace(u=steps.u[0])
        one, kept = (now.x[0], now.v[0]), (out.x[0], out.v[0])
        if implicit:
            failed[0] = steppers.sdirk4(plant, *one, self.vd[0], own, self.options.tolerance, *kept)
        else:
            failed[0] = steppers.rk4(plant, *one, own, *kept)
        return failed

    def go_on(self, k: int, failed: int, steps: Steps, starts: Array) -> None:
        """Continue motion k at the failed step, which begins at starts[failed]."""

        def own(inputs: Array) -> Array:
            return np.asarray(inputs[min(k, len(inputs) - 1)])

        state, kept = (self.now.x[k], self.now.v[k], self.vd[k]), (self.out.x[k], self.out.v[k])
        which = f' in motion {k}' if len(self.now.x) > 1 else ''
        if self.options.method == 'implicit':
            halving = Halving(
                self.plant, state, kept, lambda times: own(self.source(times)), self.options.tolerance, which
            )
            halving.take(steps._replace(u=own(steps.u)), starts, failed)
            return
        raise no_next_state(float(starts[failed]), state, self.options.method, which, steps.h[failed])


# ---- scipy -------------------------------------------------------------------------------------------------------


def _adaptive(plant: Plant, start: Motions, source: Source, t: Array, options: Options) -> Motions:
    found = []
    for k, (x, v) in enumerate(zip(*start, strict=True)):
        progress = _Share(options.progress, k, len(start.x), t)
        found.append(_solve_one(plant, np.concatenate([x, v]), source, k, t, options, progress))
    ys, nx = np.array(found), start.x.shape[1]
    return Motions(np.ascontiguousarray(ys[:, :, :nx]), np.ascontiguousarray(ys[:, :, nx:]))


class _Share:
    """Report the progress of motion k of several, at every hundredth of its time."""

    def __init__(self, tell: Callable[[float], None] | None, k: int, motions: int, t: Array) -> None:
        self.tell, self.k, self.motions, self.t = tell, k, motions, t
        self.latest = t[0]

    def __call__(self, now: float) -> None:
        span = self.t[-1] - self.t[0]
        if self.tell is not None and now > self.latest + 0.01 * span:
            self.latest = now
            self.tell(float((self.k + (now - self.t[0]) / span) / self.motions))


def _solve_one(
    plant: Plant, y0: Array, source: Source, k: int, t: Array, options: Options, progress: _Share
) -> Array:
    """Coordinates and rates (times, nx + nv) of motion k."""
    from scipy.integrate import solve_ivp  # takes half a second to import, and few users need it

    n = plant.columns.shape[0]
    nx = y0.size - n
    work, external = np.empty((2, n)), np.zeros((plant.wrenches.shape[1], 6))

    def slope(now: float, y: Array) -> Array:
        x, v, out = np.ascontiguousarray(y[:nx]), np.ascontiguousarray(y[nx:]), np.zeros(nx + n)
        u = source(np.asarray(now))
        steppers.coordinate_rates(plant.chain, x, v, out[:nx])
        if steppers.accelerations(plant, x, v, u[min(k, len(u) - 1)], work, external, out[nx:]) != OK:
            reason = 'a coordinate moves no mass in this pose; the implicit method may pass'
            raise NotConverged(float(now), (x, v), reason)
        progress(now)
        return out

    if t.size == 1:
        return y0[None]
    result = solve_ivp(
        slope, (t[0], t[-1]), y0, method=options.method, t_eval=t, rtol=options.rtol, atol=options.atol
    )
    if not result.success:
        where = result.y[:, -1] if result.y.size else y0
        raise NotConverged(float(result.t[-1]) if result.t.size else float(t[0]), where, result.message)
    return np.asarray(result.y.T)
