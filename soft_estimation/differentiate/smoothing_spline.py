"""Smoothing spline for recordings: a smooth curve and its derivatives, without delay."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.linalg import solveh_banded

from soft_dynamics.array import as_array


def smoothing_spline(t: Any, values: Any, bandwidth: float) -> CubicSpline:
    """Natural cubic spline g near values (n, m) at rising times t (n,) [s], evenly spaced or not.

        sum (values - g)^2 + lam int g''^2 dt -> min,       lam = 1/(dt w^4),  w = 2 pi bandwidth [Hz]

    At an even interval dt it damps a sine of frequency f by 1/(1 + (f/bandwidth)^4): a second-order Butterworth filter
    run forwards and backwards. By Reinsch's equations (R + lam Q^T Q) g'' = Q^T values, g = values - lam Q g''.
    """
    t, y = as_array('t', t), as_array('values', values)
    if t.ndim != 1 or t.size < 3 or np.any(np.diff(t) <= 0.0):
        raise ValueError(f't: expected at least 3 rising times, got shape {t.shape}')
    if not bandwidth > 0.0:
        raise ValueError(f'bandwidth must be > 0 Hz, got {bandwidth}')
    h = np.diff(t)
    lam = 1.0 / (float(np.mean(h)) * (2.0 * math.pi * bandwidth) ** 4)
    a, c = 1.0 / h[:-1], 1.0 / h[1:]  # columns of Q: a, -(a + c), c
    b = -(a + c)
    bands = np.zeros((3, h.size - 1))
    bands[2] = (h[:-1] + h[1:]) / 3.0 + lam * (a * a + b * b + c * c)
    bands[1, 1:] = h[1:-1] / 6.0 + lam * (b[:-1] * a[1:] + c[:-1] * b[1:])
    bands[0, 2:] = lam * c[:-2] * a[2:]
    slopes = np.diff(y, axis=0) / h.reshape(-1, *[1] * (y.ndim - 1))
    bend = np.zeros_like(y)
    bend[1:-1] = solveh_banded(bands, np.diff(slopes, axis=0))
    jumps = np.diff(bend, axis=0) / h.reshape(-1, *[1] * (y.ndim - 1))
    fitted = y - lam * np.diff(jumps, axis=0, prepend=0.0 * y[:1], append=0.0 * y[:1])
    return CubicSpline(t, fitted, bc_type='natural')
