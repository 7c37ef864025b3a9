"""State of a real arm from plates and from wires over time, and a close-up of one gap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib import pyplot as plt

from examples.real_data.figure import STYLE

if TYPE_CHECKING:
    from examples.real_data.asu_estimate import Found

NEAR = 0.5  # [s] before and after the largest step of the causal estimate


def draw(file: str, names: Sequence[str], found: Found) -> None:
    """Plot all coordinates, and below a close-up of the first one where the causal estimate steps most."""
    step = found.times[np.abs(np.diff(found.causal[:, 0])).argmax() + 1]
    with plt.style.context(STYLE):
        figure, axes = plt.subplots(len(names) + 1, 1, figsize=(7.0, 9.0), layout='constrained')
        for k, (ax, name) in enumerate(zip(axes, [*names, names[0]], strict=True)):
            column = k % len(names)
            ax.plot(found.t, 1e3 * found.samples[:, column], '.', color='0.6', ms=3, label='plates, samples')
            ax.plot(found.times, 1e3 * found.plates[:, column], label='plates, smoothed')
            ax.plot(found.times, 1e3 * found.wires[:, column], label='wires alone')
            ax.set(ylabel=name)
        near = np.abs(found.times - step) < NEAR
        level = 1e3 * found.causal[near, 0]
        ax.plot(found.times[near], level, ':', label='plates, causal')
        ax.set(xlabel='t [s]', xlim=(step - NEAR, step + NEAR), ylim=(level.min() - 30.0, level.max() + 30.0))
        figure.legend(*ax.get_legend_handles_labels(), loc='outside upper center', ncols=4)
        figure.savefig(file)
