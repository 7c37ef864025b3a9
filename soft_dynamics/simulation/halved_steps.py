"""Split steps of the implicit method in which Newton's method does not converge.

This happens after a release far from rest, when the accelerations change abruptly within a step. Each half uses the
inputs of its own times; the next step is a whole one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..array import Array
from ..errors import NotConverged
from ..kernels import steppers
from ..kernels.steppers import DONE, SDIRK_C, Plant, Steps

HALVINGS = 6  # smallest part: 1/64 of the step

_NOT_KEPT = np.full(1, -1, np.int64)


@dataclass(frozen=True)
class Halving:
    """One motion: its state x, v with the last accelerations vd, its stored rows, and its inputs over time."""

    plant: Plant
    state: tuple[Array, Array, Array]  # x, v, vd, changed in place
    kept: tuple[Array, Array]  # xs, vs
    source: Callable[[Array], Array]  # times (...) to inputs (..., m)
    tolerance: float
    which: str = ''  # index among several motions, for messages

    def take(self, steps: Steps, starts: Array, failed: int) -> None:
        """Split the failed step, then take the remaining steps, which begin at `starts` [s].

        Raises NotConverged (with time and state) if 1/64 of a step is still too long.
        """
        while failed != DONE:
            self._halves(float(starts[failed]), float(steps.h[failed]), HALVINGS)
            row = steps.keep[failed]
            if row >= 0:
                self.kept[0][row], self.kept[1][row] = self.state[:2]
            first = failed + 1
            more = self._step(Steps(steps.h[first:], steps.u[first:], steps.keep[first:]))
            failed = more if more == DONE else first + more

    def _step(self, steps: Steps) -> int:
        return int(steppers.sdirk4(self.plant, *self.state, steps, self.tolerance, *self.kept))

    def _halves(self, start: float, length: float, halvings: int) -> None:
        """Take one step as two halves; split each again if needed."""
        h = 0.5 * length
        for now in (start, start + h):
            u = np.ascontiguousarray(self.source(now + h * SDIRK_C)[None])
            if self._step(Steps(np.array([h]), u, _NOT_KEPT)) == DONE:
                continue
            if halvings == 1:
                raise no_next_state(now, self.state, 'implicit', self.which, h)
            self._halves(now, h, halvings - 1)


def no_next_state(
    time: float, state: tuple[Array, Array, Array], method: str, which: str, step: float
) -> NotConverged:
    reason = f'the {method} method found no next state{which} with a step of {step:.3g} s; try a smaller one'
    return NotConverged(time, (state[0].copy(), state[1].copy()), reason)
