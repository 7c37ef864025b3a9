"""The smooth curve through the pieces of the plant, as seen by a fiber along the body."""

from __future__ import annotations

import numpy as np

from soft_dynamics.array import Array
from soft_dynamics.geometry import so3
from soft_hw_bridge.rig.plant import Plant


class Centerline:
    """Cubic Hermite arcs between the sites of the plant, sampled at arc lengths s [m] of the body at rest."""

    def __init__(self, plant: Plant, s: Array) -> None:
        spans = plant.plan.spans
        if s.size == 0 or np.any(np.diff(s) < 0.0) or s[0] < 0.0 or s[-1] > spans[-1].s_end * (1.0 + 1e-9):
            raise ValueError(f's: expected rising arc lengths from 0 to {spans[-1].s_end:g} m')
        self._data = plant.data
        self._start = np.array([plant.model.site(span.start).id for span in spans])
        self._end = np.array([plant.model.site(span.end).id for span in spans])
        ends = np.array([span.s_end for span in spans])
        starts = np.array([span.s_start for span in spans])
        self._span = np.minimum(np.searchsorted(ends, s + 1e-12), len(spans) - 1)
        x = ((s - starts[self._span]) / (ends - starts)[self._span])[:, None]
        self._weights = ((1 + 2 * x) * (1 - x) ** 2, x * (1 - x) ** 2, x**2 * (3 - 2 * x), x**2 * (x - 1))

    def frame(self) -> Array:
        """Return the axes R_WL of the body at the first sample; z along the body."""
        return np.asarray(self._data.site_xmat[self._start[self._span[0]]].reshape(3, 3))

    def points(self) -> Array:
        """Return p_WC (n, 3) [m]."""
        p0, p1 = self._data.site_xpos[self._start], self._data.site_xpos[self._end]
        chord = self._chord()[:, None]
        t0, t1 = (chord * self._data.site_xmat[ends, 2::3] for ends in (self._start, self._end))
        w0, w1, w2, w3 = self._weights
        k = self._span
        return np.asarray(w0 * p0[k] + w1 * t0[k] + w2 * p1[k] + w3 * t1[k])

    def curvature(self) -> Array:
        """Return the angular strain (n, 3) [1/m] in the cross-section's axes, z along the body.

        Constant between two sites: the rotation vector from one to the other over the length of an arc.
        """
        R0, R1 = (self._data.site_xmat[ends].reshape(-1, 3, 3) for ends in (self._start, self._end))
        turn = so3.log(np.matmul(R0.transpose(0, 2, 1), R1))
        length = self._chord() / np.sinc(0.5 * np.linalg.norm(turn, axis=1) / np.pi)
        return np.asarray((turn / length[:, None])[self._span])

    def _chord(self) -> Array:
        return np.linalg.norm(self._data.site_xpos[self._end] - self._data.site_xpos[self._start], axis=1)
