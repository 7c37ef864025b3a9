"""A free swing as a sum of damped sinusoids, which can be differentiated without amplifying noise.

    y_i(t) = o_i + sum_j e^(-b_j t) (a_ij cos(w_j t) + c_ij sin(w_j t)/w_j)          [Wang, sec. IV-A.3, one term each]

All coordinates share decays and frequencies, which belong to the robot; a pair of real poles (w^2 < 0) is an overdamped
mode. Poles come from the matrix pencil method, then nonlinear least squares with eliminated amplitudes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import optimize

from soft_dynamics.array import Array

GAIN = 0.8  # another mode must reduce the error to below this fraction, or it fits noise
PENCIL_SAMPLES = 300


class Swing(NamedTuple):
    """Smooth motion at the samples, the modes (b, b^2 + w^2) (count, 2), and the RMS error of the fit."""

    q: Array
    qd: Array
    qdd: Array
    modes: Array
    error: float


def fit_swing(t: Array, y: Array, most: int) -> Swing:
    """Fit (n, m) samples with as many modes as improve the fit, at most `most`."""
    best: Swing | None = None
    for count in range(1, most + 1):
        start = _pencil(t, y, count)
        fit = optimize.least_squares(
            lambda modes: _misfit(t, y, modes),
            start.ravel(),
            x_scale=np.abs(start.ravel()) + 1.0,
            max_nfev=60,
        )
        swing = _swing(t, y, fit.x.reshape(-1, 2))
        if best is not None and not swing.error < GAIN * best.error:
            break
        best = swing
    assert best is not None
    return best


def _basis(t: Array, modes: Array) -> Array:
    """Return (3, n, 1 + 2 count): the functions and their first two derivatives."""
    columns = [np.stack([np.ones_like(t), np.zeros_like(t), np.zeros_like(t)])]
    for b, c in modes:
        root = np.sqrt(complex(c - b * b)) or 1e-9
        decay = np.exp(-b * t)
        cosine, sine = (decay * np.cos(root * t)).real, (decay * np.sin(root * t) / root).real
        # f'' = -2 b f' - c f for both; cos' = -b cos - w^2 sin, sin' = cos - b sin.
        for f, slope in ((cosine, -b * cosine - (c - b * b) * sine), (sine, cosine - b * sine)):
            columns.append(np.stack([f, slope, -2 * b * slope - c * f]))
    return np.stack(columns, -1)


def _misfit(t: Array, y: Array, modes: Array) -> Any:
    with np.errstate(over='ignore', invalid='ignore'):
        basis = _basis(t - t[0], modes.reshape(-1, 2))[0]
    if not np.all(np.isfinite(basis)):
        return np.full(y.size, 1e3)
    return (basis @ np.linalg.lstsq(basis, y, rcond=None)[0] - y).ravel()


def _swing(t: Array, y: Array, modes: Array) -> Swing:
    basis = _basis(t - t[0], modes)
    amplitude = np.linalg.lstsq(basis[0], y, rcond=None)[0]
    q, qd, qdd = basis @ amplitude
    return Swing(q, qd, qdd, modes, float(np.sqrt(np.mean((q - y) ** 2))))


def _pencil(t: Array, y: Array, count: int) -> Array:
    """Return initial (b, c) of the modes, by shift-invariance of the dominant subspace of a Hankel matrix."""
    thin = max(1, y.shape[0] // PENCIL_SAMPLES)
    sample, dt = y[::thin], float(t[1] - t[0]) * thin
    width = sample.shape[0] // 2
    hankel = np.concatenate(
        [np.lib.stride_tricks.sliding_window_view(column - column[-1], width).T for column in sample.T], 1
    )
    U = np.linalg.svd(hankel, full_matrices=False)[0][:, : 2 * count + 1]
    poles = np.log(np.linalg.eigvals(np.linalg.pinv(U[:-1]) @ U[1:]).astype(complex)) / dt
    slowest = np.argmin(np.abs(poles))  # the offset
    poles = np.delete(poles, slowest)
    pairs = poles[poles.imag > 1e-9]
    real = np.sort(poles[np.abs(poles.imag) <= 1e-9].real)
    modes = [(-p.real, abs(p) ** 2) for p in pairs]
    modes += [(-(a + b) / 2, a * b) for a, b in zip(real[::2], real[1::2], strict=False)]
    while len(modes) < count:
        modes.append((5.0, 100.0))
    return np.array(modes[:count])
