"""Curvature of a multi-core fiber from the strains of its cores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from soft_hw_bridge.fiber.adapter import Array


@dataclass(frozen=True)
class CoreLayout:
    """Positions of the cores in the cross-section at the base; the cores may be helical."""

    radius: tuple[float, ...]  # [m] distance from the centre line
    angle: tuple[float, ...]  # [rad] from x towards y
    pretwist: float = 0.0  # [rad/m] of the cores in the straight fiber

    def __post_init__(self) -> None:
        if len(self.radius) != len(self.angle):
            raise ValueError(f'angle must have {len(self.radius)} numbers, like radius, got {self.angle}')
        if not all(r >= 0 for r in self.radius):
            raise ValueError(f'radius must be >= 0, got {self.radius}')
        if np.linalg.matrix_rank(self.matrix(np.zeros(1))[0], tol=1e-9) < 3:
            raise ValueError('cores must be three or more and not collinear, to measure bending')

    @property
    def sees_twist(self) -> bool:
        """Whether twist and stretch are distinguishable: helical cores at different distances from the centre."""
        return self.pretwist != 0.0 and len(self.radius) >= 4 and np.ptp(self.radius) > 0

    def matrix(self, s: Array) -> Array:
        """Return A(s) in strain_i = A_i (kappa_x, kappa_y, strain[, twist]), shape (n, cores, 3 or 4).

        A core at (x, y) = r (cos, sin)(angle + pretwist s) is a line whose length per length of the fiber is

            sqrt((1 + strain + kappa_x y - kappa_y x)^2 + r^2 (twist + pretwist)^2)

        which, divided by its value in the straight fiber, gives to first order

            strain_i = (strain + kappa_x y - kappa_y x + r^2 pretwist twist) / (1 + r^2 pretwist^2)

        Twist of straight cores appears only in second order, without a sign, and is taken as zero.
        """
        radius = np.asarray(self.radius)
        phase = np.asarray(self.angle) + self.pretwist * s[:, None]
        columns = [radius * np.sin(phase), -radius * np.cos(phase), np.ones_like(phase)]
        if self.sees_twist:
            columns.append(np.broadcast_to(radius**2 * self.pretwist, phase.shape))
        return np.stack(columns, axis=-1) / (1 + (radius * self.pretwist) ** 2)[:, None]


class StrainSolver:
    """Least-squares curvature and stretch; reuses the factorisation while the places stay the same."""

    def __init__(self, layout: CoreLayout) -> None:
        self._layout = layout
        self._s: Array = np.empty(0)
        self._inverse: Array = np.empty((0, 0, 0))

    def solve(self, s: Array, strain: Array) -> tuple[Array, Array]:
        """Return curvature_C (n, 3) with the twist last, and the stretch (n,), from strain (cores, n)."""
        shape = (len(self._layout.radius), len(s))
        if strain.shape != shape:
            raise ValueError(f'strain must have shape {shape}, got {strain.shape}')
        if not np.array_equal(s, self._s):
            self._s, self._inverse = s, np.asarray(np.linalg.pinv(self._layout.matrix(s)), np.float64)
        solution = np.einsum('nkc,cn->nk', self._inverse, strain)
        twist = solution[:, 3] if self._layout.sees_twist else np.zeros(len(s))
        return np.column_stack([solution[:, :2], twist]), solution[:, 2]


def bridge_gaps(s: Array, values: Array, max_gap: float) -> Array:
    """Return values (n, k) with lost rows (those with NaN) interpolated linearly between their neighbours.

    Rows at the ends, and rows whose neighbours are more than max_gap [m] apart, stay unchanged.
    """
    lost = np.isnan(values).any(axis=1)
    if not lost.any() or lost.all():
        return values
    known = np.flatnonzero(~lost)
    right = np.searchsorted(known, np.arange(len(s)))
    inner = (right > 0) & (right < len(known)) & lost
    before, after = known[right[inner] - 1], known[right[inner]]
    weight = ((s[inner] - s[before]) / (s[after] - s[before]))[:, None]
    filled = (1 - weight) * values[before] + weight * values[after]
    filled[s[after] - s[before] > max_gap] = np.nan
    values = values.copy()
    values[inner] = filled
    return values
