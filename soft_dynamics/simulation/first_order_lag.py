"""First-order lag of pressures: a chamber behind its valve or behind its pressure sensor."""

from __future__ import annotations

from typing import Any

import numpy as np


def follow(t: Any, command: Any, fill: Any, vent: Any, start: Any) -> Any:
    """Pressures p (..., n, m) with dp/dt = (command - p)/lag from `start` (..., m); exact for piecewise linear input.

    The lag is `fill` [s] for rising and `vent` [s] for falling pressures, and may be zero. Complex numbers give
    derivatives: a step along the imaginary axis has no cancellation.
    """
    command = np.asarray(command)
    p = np.empty(command.shape, np.result_type(command, fill, vent, start))
    p[..., 0, :] = start
    for k, h in enumerate(np.diff(t), 1):
        last, now = command[..., k - 1, :], command[..., k, :]
        lag = np.where(now.real > p[..., k - 1, :].real, fill, vent)
        at_once = lag.real <= 0.0
        lag = np.where(at_once, h, lag)
        behind = lag * (now - last) / h  # lead of a ramp over the pressure that follows it
        followed = now - behind + np.exp(-h / lag) * (p[..., k - 1, :] - last + behind)
        p[..., k, :] = np.where(at_once, now, followed)
    return p
