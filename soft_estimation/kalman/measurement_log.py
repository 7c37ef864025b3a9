"""Log of the filter: events in order of time, each with the belief after it."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from soft_dynamics.array import Array

from .process_model import Belief, Process


@dataclass(slots=True)
class Entry:
    """An event at time t, the pressures after it, and the last belief, which may be slightly older."""

    t: float
    measurement: Any = None  # a Measurement, pressures, or nothing
    belief: Any = None
    pressure: Any = None
    pushed: Any = 0.0  # [Pa s] integral of the pressures since the belief
    pressed_at: float = math.inf  # [s] last measurement of pressures; inf: there are none
    refused_since: dict[str, float] = field(default_factory=dict)  # by sensor
    accepted_at: float = -math.inf  # the last sample of any sensor
    shown_at: float = -math.inf  # the last that shows the shape
    begins_anew: bool = False
    is_counted: bool = False

    def mean_pressure(self, t: float) -> Array:
        """Return the mean pressure from the belief until t."""
        lasting = t - self.belief.t
        return (self.pushed + (t - self.t) * self.pressure) / lasting if lasting > 0.0 else self.pressure


time_of = operator.attrgetter('t')


def smoothed(process: Process, log: Sequence[Entry]) -> list[Belief]:
    """Return the beliefs at all times, each from all samples before and after it.

    RTS smoother: x_k += C (x_next - x_predicted),  C = P_k Phi^T P_predicted^-1. A restart of the state carries no
    information about the time before it.
    """
    later = log[-1]
    beliefs: list[Belief] = [later.belief]
    for entry in reversed(log[:-1]):
        belief = entry.belief
        if belief is later.belief:
            later = entry
            continue
        if not later.begins_anew:
            predicted, Phi = process.transition(belief, later.t, entry.mean_pressure(later.t))
            C = belief.P @ Phi.T @ _inverse(predicted.P)
            x = belief.x + C @ (beliefs[-1].x - predicted.x)
            P = belief.P + C @ (beliefs[-1].P - predicted.P) @ C.T
            belief = Belief(belief.t, x, 0.5 * (P + P.T))
        beliefs.append(belief)
        later = entry
    return beliefs[::-1]


def _inverse(P: Array) -> Array:
    """Return the pseudo-inverse of a covariance; zero rows are known exactly and need no correction."""
    sigma = np.sqrt(np.diagonal(P))
    scale = np.where(sigma > 0.0, sigma, 1.0)
    return np.asarray(
        np.linalg.pinv(P / np.outer(scale, scale), rcond=1e-12, hermitian=True) / np.outer(scale, scale)
    )
