"""The result of a benchmark as a line of text, of Markdown and of JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from soft_dynamics.array import Array

HEADER = ('what', 'ours', 'peer', 'ours / peer', 'target', 'result')
SCALES = {'s': ((1e-3, 1e6, 'µs'), (1.0, 1e3, 'ms'), (np.inf, 1.0, 's')), '1/s': ((np.inf, 1e-3, 'k/s'),)}


@dataclass(frozen=True)
class Figure:
    """A median and half the interquartile range relative to it."""

    value: float
    unit: str
    spread: float = 0.0

    @classmethod
    def of(cls, samples: Array, unit: str) -> Figure:
        low, middle, high = np.quantile(samples, (0.25, 0.5, 0.75))
        return cls(float(middle), unit, float((high - low) / (2.0 * middle)))

    def __str__(self) -> str:
        spread = f' ±{100.0 * self.spread:.0f} %' if self.spread else ''
        return f'{quantity(self.value, self.unit)}{spread}'


@dataclass(frozen=True)
class Target:
    """A limit: of the ratio if the unit is x, else of our own figure."""

    limit: float
    unit: str = 'x'
    at_least: bool = False

    def __str__(self) -> str:
        return f'{"≥" if self.at_least else "≤"} {quantity(self.limit, self.unit)}'

    def excess(self, value: float) -> float:
        """Return how many times the limit is exceeded; <= 1 meets the target."""
        return self.limit / value if self.at_least else value / self.limit


@dataclass(frozen=True)
class Row:
    """One comparison."""

    name: str
    what: str
    ours: Figure
    peer: Figure | None = None
    peer_name: str = ''
    ratio: Figure | None = None
    target: Target | None = None

    @classmethod
    def against(
        cls, name: str, what: str, ours: Array, peer: Array, peer_name: str, target: Target | None = None
    ) -> Row:
        """Compare interleaved samples [s]; the ratio is the median of the ratios of the turns."""
        ratio = Figure.of(ours / peer, 'x')
        return cls(name, what, Figure.of(ours, 's'), Figure.of(peer, 's'), peer_name, ratio, target)

    @property
    def excess(self) -> float:
        if self.target is None:
            return 0.0
        judged = self.ratio if self.target.unit == 'x' and self.ratio else self.ours
        return self.target.excess(judged.value)

    @property
    def cells(self) -> tuple[str, ...]:
        result = (
            '' if not self.target else 'met' if self.excess <= 1.0 else f'missed, {self.excess:.2f} x limit'
        )
        peer = f'{self.peer} {self.peer_name}' if self.peer else ''
        ratio, target = (str(part) if part else '' for part in (self.ratio, self.target))
        return self.what, str(self.ours), peer, ratio, target, result

    @property
    def record(self) -> dict[str, Any]:
        """Return the row for JSON; the target is met if the excess is <= 1."""
        return asdict(self) | {'excess': self.excess if self.target else None}


def quantity(value: float, unit: str) -> str:
    """Return three digits with a suitable unit."""
    for limit, scale, name in SCALES.get(unit, ()):
        if value < limit:
            return f'{_digits(value * scale)} {name}'
    return f'{_digits(value)} {unit}'


def _digits(value: float) -> str:
    return f'{value:.3g}' if not 100.0 <= abs(value) < 1e6 else f'{value:.0f}'


def text(rows: Sequence[Row]) -> str:
    """Return the table for a terminal."""
    lines = [HEADER, *(row.cells for row in rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(HEADER))]
    padded = [
        '  '.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines
    ]
    rule = '  '.join('-' * width for width in widths)
    return '\n'.join(line.rstrip() for line in (padded[0], rule, *padded[1:]))


def markdown(rows: Sequence[Row]) -> str:
    """Return the table for the documentation."""
    lines = [HEADER, ('---',) * len(HEADER), *(row.cells for row in rows)]
    return '\n'.join(f'| {" | ".join(line)} |' for line in lines)
