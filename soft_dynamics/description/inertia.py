"""Physical limits of an inertia."""

from __future__ import annotations

import numpy as np

ROUNDING = 1e-3  # of the largest moment, for a thin plate (xx + yy = zz) given to three digits


def check_inertia(inertia: tuple[float, ...]) -> None:
    """Raise ValueError for a physically impossible inertia (xx, yy, zz[, xy, xz, yz]).

    Principal moments are >= 0, and each is at most the sum of the other two.
    """
    xx, yy, zz, xy, xz, yz = (*inertia, 0.0, 0.0, 0.0)[:6]
    moments = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if moments[0] < -1e-12 * moments[2] or moments[0] + moments[1] < (1.0 - ROUNDING) * moments[2]:
        found = ', '.join(f'{moment:g}' for moment in moments)
        raise ValueError(
            'inertia: expected principal moments >= 0 [kg m^2], each at most the sum of the other two, '
            f'found {found}'
        )
