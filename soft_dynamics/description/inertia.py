"""Which six numbers are the inertia of a body."""

from __future__ import annotations

import numpy as np

ROUNDING = 1e-3  # of the largest moment: a thin plate's inertia, xx + yy = zz, given to three figures


def check_inertia(inertia: tuple[float, ...]) -> None:
    """Refuse an inertia (xx, yy, zz[, xy, xz, yz]) that no body has, by a ValueError that starts with the key.

    Its principal moments are >= 0, and none is larger than the two others together.
    """
    xx, yy, zz, xy, xz, yz = (*inertia, 0.0, 0.0, 0.0)[:6]
    moments = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if moments[0] < -1e-12 * moments[2] or moments[0] + moments[1] < (1.0 - ROUNDING) * moments[2]:
        found = ', '.join(f'{moment:g}' for moment in moments)
        raise ValueError(
            'inertia: expected principal moments >= 0 [kg m^2], none larger than the two others together, '
            f'found {found}'
        )
