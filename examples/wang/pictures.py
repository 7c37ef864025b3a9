"""Panels of a figure that is drawn only if somebody wants it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

STYLE = Path(__file__).resolve().parents[2] / 'docs' / 'figures' / 'style.mplstyle'


@contextmanager
def panels(file: str | None, shape: tuple[int, int], size: tuple[float, float]) -> Iterator[list[Any]]:
    """Axes of a figure that is written to `file` at the end; without a file as many times None."""
    if not file:
        yield [None] * (shape[0] * shape[1])
        return
    import matplotlib as mpl

    mpl.use('Agg')
    import matplotlib.pyplot as plt

    with plt.style.context(str(STYLE)):
        figure, axes = plt.subplots(*shape, figsize=size, squeeze=False, layout='constrained')
        yield list(axes.ravel())
        figure.savefig(file, metadata={'Software': None})
        plt.close(figure)
