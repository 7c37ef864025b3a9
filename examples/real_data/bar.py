"""Baseline for a model: static gains of all inputs and an offset, behind one first-order lag."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from soft_dynamics.array import Array
from soft_estimation.identification.problem import follow_evenly
from soft_estimation.recordings.recording import Recording

LAGS = np.geomspace(0.05, 4.0, 60)  # [s]


def bar_error(seen: Recording, test: Recording, columns: Iterable[int]) -> Array:
    """Fit gains and one lag per coordinate to `seen` by least squares; return the rms errors on `test`."""

    def features(recording: Recording, lag: float) -> Array:
        followed = follow_evenly(recording.pressure / np.abs(seen.pressure).max(), recording.dt, lag)
        return np.column_stack([followed, np.ones(recording.t.size)])

    errors = []
    for k in columns:
        found = []
        for lag in LAGS:
            gains = np.linalg.lstsq(features(seen, lag), seen.q[:, k], rcond=None)[0]
            found.append(
                [np.sqrt(np.mean((features(r, lag) @ gains - r.q[:, k]) ** 2)) for r in (seen, test)]
            )
        errors.append(min(found)[1])
    return np.array(errors)
