"""Fixed-interval smoother for recordings: the model of the differentiator, forwards and backwards."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from soft_dynamics.array import Array, as_array

from .differentiator import ORDER, START, DifferentiatorConfig, Motion, white_jerk


class Belief(NamedTuple):
    """Mean (nq, 3) and covariance (nq, 3, 3) of coordinates, rates/w and accelerations/w^2."""

    x: Array
    P: Array


class Step(NamedTuple):
    """A step of the filter: transition, prediction, and the belief with the new sample."""

    F: Array
    predicted: Belief
    updated: Belief


def smoothed(
    t: Any, q: Any, times: Any, config: DifferentiatorConfig | None = None, observed: Any = None
) -> list[Motion]:
    """Return the motion at rising times (k,), each from all samples q (n, nq) at rising t (n,) [s].

    Fixed-interval smoother (Rauch, Tung, Striebel) with the differentiator's model: white jerk of density
    S = noise^2 dt w^6, with dt the median interval. At even intervals it damps a sine of frequency f by
    1/(1 + (f/bandwidth)^6), without delay. Intervals may be uneven; a gap is bridged by the curve of least jerk, with
    the variance inside the gap. `observed` (n, nq) marks the measured samples. Samples beyond the gate are dropped
    unless none was accepted for the timeout. Raises ValueError for times outside those of the samples.
    """
    config = config or DifferentiatorConfig()
    t, q, times = as_array('t', t), as_array('q', q), as_array('times', times)
    seen = np.ones(q.shape, bool) if observed is None else np.asarray(observed, bool)
    if t.ndim != 1 or t.size < 2 or np.any(np.diff(t) <= 0.0):
        raise ValueError(f't: expected at least 2 rising times, got shape {t.shape}')
    if q.ndim != 2 or len(q) != t.size or seen.shape != q.shape:
        raise ValueError(f'q, observed: expected shape ({t.size}, nq), got {q.shape}, {seen.shape}')
    if times.ndim != 1 or np.any(np.diff(times) <= 0.0) or np.any((times < t[0]) | (times > t[-1])):
        raise ValueError(
            f'times: expected rising times from {t[0]:.6f} to {t[-1]:.6f} s, got shape {times.shape}'
        )
    w, grid = 2.0 * math.pi * config.bandwidth, np.union1d(t, times)
    beliefs = _backwards(_forwards(w, config, grid, t, q, seen))
    out = []
    for now, k in zip(times.tolist(), np.searchsorted(grid, times), strict=True):
        x, P = beliefs[k]
        variance = np.concatenate([P[:, 0, 0], w * w * P[:, 1, 1]])
        out.append(Motion(now, x[:, 0], w * x[:, 1], w * w * x[:, 2], variance))
    return out


def _forwards(
    w: float, config: DifferentiatorConfig, grid: Array, t: Array, q: Array, seen: npt.NDArray[np.bool_]
) -> list[Step]:
    """Run the Kalman filter over the grid, which includes the sample times; start at the first observed sample."""
    noise2, row = config.noise**2, {now: k for k, now in enumerate(t.tolist())}
    density = noise2 * w * float(np.median(np.diff(t)))
    x: Array = np.zeros((q.shape[1], ORDER))
    x[:, 0] = q[seen.argmax(0), np.arange(q.shape[1])]
    P: Array = np.tile(START**2 * noise2 * np.eye(ORDER), (len(x), 1, 1))
    last, steps = np.full(len(x), -math.inf), []
    for dt, now in zip(np.diff(grid, prepend=grid[0]).tolist(), grid.tolist(), strict=True):
        F, Q = white_jerk(w * dt)
        x, P = x @ F.T, F @ P @ F.T + density * Q
        predicted = Belief(x, P)
        if now in row:
            innovation, S = q[row[now]] - x[:, 0], P[:, 0, 0] + noise2
            near = (innovation**2 <= config.gate**2 * S) | (now - last > config.timeout)
            taken = seen[row[now]] & near
            last[taken] = now
            gain = np.where(taken, 1.0, 0.0)[:, None] * P[:, :, 0] / S[:, None]
            x = x + gain * innovation[:, None]
            P = P - gain[:, :, None] * P[:, None, 0, :]
        steps.append(Step(F, predicted, Belief(x, P)))
    return steps


def _backwards(steps: list[Step]) -> list[Belief]:
    """x += C (x_next - x_predicted),  P += C (P_next - P_predicted) C^T,  C = P F^T P_predicted^-1."""
    beliefs = [steps[-1].updated]
    for (F, predicted, _), (_, _, (x, P)) in zip(steps[:0:-1], steps[-2::-1], strict=True):
        later = beliefs[-1]
        C = np.swapaxes(np.linalg.solve(predicted.P, F @ P), 1, 2)
        x = x + (C @ (later.x - predicted.x)[:, :, None])[:, :, 0]
        P = P + C @ (later.P - predicted.P) @ np.swapaxes(C, 1, 2)
        beliefs.append(Belief(x, 0.5 * (P + np.swapaxes(P, 1, 2))))
    return beliefs[::-1]
