"""Measured and modelled bends over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

from soft_dynamics.array import Array

STYLE = Path(__file__).resolve().parents[2] / 'docs' / 'figures' / 'style.mplstyle'


def draw(file: Path, t: Array, names: Sequence[str], measured: Array, model: Array) -> None:
    """Plot bends (n, k) [rad] over the times t (n,) [s]."""
    with plt.style.context(STYLE):
        figure, axes = plt.subplots(figsize=(7, 3))
        for name, seen, said in zip(names, measured.T, model.T, strict=True):
            (line,) = axes.plot(t, np.degrees(seen), label=f'{name}, measured')
            axes.plot(t, np.degrees(said), '--', color=line.get_color(), label=f'{name}, model')
        axes.set(xlabel='time [s]', ylabel='bend [deg]')
        axes.legend(ncols=4, loc='lower center', bbox_to_anchor=(0.5, 1.0), fontsize='small')
        figure.savefig(file)
