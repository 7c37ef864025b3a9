"""Panels of an optional figure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

STYLE = Path(__file__).resolve().parents[2] / 'docs' / 'figures' / 'style.mplstyle'


@contextmanager
def panels(file: str | None, shape: tuple[int, int], size: tuple[float, float]) -> Iterator[list[Any]]:
    """Yield the axes of a figure, written to `file` at the end; without a file, yield None for each panel."""
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
