"""Forces to track a reference motion, in one compiled call for controllers."""

from __future__ import annotations

import numpy as np
from numba import njit

from .chain import ELEMENT
from .energy import material
from .inverse_dynamics import inverse_dynamics_in, workspace


@njit(cache=True, error_model='numpy')
def tracking_forces(raw, weighed, bare, q, qd, q_r, qd_r, qdd_r, tau):
    """Write tau = M(q) qdd_r + C(q, qd) qd_r + g(q) + k(q_r) + d(q, qd_r).                              [Wang, eq. 9]

    C(q, v) w = (c(q, v + w) - c(q, v - w))/4, because c is quadratic in the rates. raw: a chain whose springs and
    dampers each act on one joint; weighed: the same without springs and dampers; bare: also without gravity.
    Returns False if the forces are not finite.
    """
    chain, n = raw.view(ELEMENT), tau.size
    work, none = workspace(chain), raw[:0].reshape((0, 6))
    zero, faster, slower = np.zeros(n), np.empty(n), np.empty(n)
    inverse_dynamics_in(weighed.view(ELEMENT), q, zero, qdd_r, none, work, tau)
    inverse_dynamics_in(bare.view(ELEMENT), q, qd + qd_r, zero, none, work, faster)
    inverse_dynamics_in(bare.view(ELEMENT), q, qd - qd_r, zero, none, work, slower)
    for i in range(n):
        tau[i] += 0.25 * (faster[i] - slower[i])
    springs, dampers = faster, slower
    material(chain, q_r, qd_r, springs, dampers)
    for i in range(n):
        tau[i] += springs[i] + dampers[i]
    return np.isfinite(tau.sum())
