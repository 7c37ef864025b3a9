"""Integrate curvature along a fiber to a curve, on SE(3)."""

from __future__ import annotations

import numpy as np
from numba import njit

from ..array import Array
from ..kernels import vec3
from . import se3


def integrate_curve(s: Array, curvature_C: Array, strain: Array | None = None) -> tuple[Array, Array]:
    """Return the points p_FC_F and the orientations R_FC of a fiber clamped at s[0].

        d/ds (R, p) = (R [kappa]x, R (1 + strain) e_z)

    with kappa and strain linear between the samples. Each interval is one exponential of the fourth-order
    Magnus expansion, so constant curvature and twist (circle, helix) are exact for any spacing.

    Shapes: s (n,) ascending, curvature_C (n, 3) with the twist last, strain (n,); results (n, 3), (n, 3, 3).
    """
    n = len(s)
    if curvature_C.shape != (n, 3):
        raise ValueError(f'curvature_C must have shape ({n}, 3), got {curvature_C.shape}')
    stretch = np.ones(n) if strain is None else 1.0 + strain
    if stretch.shape != (n,):
        raise ValueError(f'strain must have shape ({n},), got {stretch.shape}')
    p_FC_F, R_FC = np.empty((n, 3)), np.empty((n, 3, 3))
    _integrate(s, curvature_C, stretch, p_FC_F, R_FC)
    return p_FC_F, R_FC


@njit(cache=True)
def _integrate(s: Array, curvature_C: Array, stretch: Array, p_FC_F: Array, R_FC: Array) -> None:
    """Write the pose of every sample.

    Omega = h/2 (xi_0 + xi_1) + h^2/12 [xi_0, xi_1],  X_1 = X_0 exp(Omega),  xi = (kappa, (1 + strain) e_z)
    """
    R = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
    p = vec3.ZERO
    for i in range(len(s)):
        if i > 0:
            h = s[i] - s[i - 1]
            k_0 = (curvature_C[i - 1, 0], curvature_C[i - 1, 1], curvature_C[i - 1, 2])
            k_1 = (curvature_C[i, 0], curvature_C[i, 1], curvature_C[i, 2])
            v_0, v_1 = (0.0, 0.0, stretch[i - 1]), (0.0, 0.0, stretch[i])
            c = h * h / 12.0
            phi = vec3.add_scaled(vec3.scale(0.5 * h, vec3.add(k_0, k_1)), c, vec3.cross(k_0, k_1))
            bracket = vec3.sub(vec3.cross(k_0, v_1), vec3.cross(k_1, v_0))
            rho = vec3.add_scaled(vec3.scale(0.5 * h, vec3.add(v_0, v_1)), c, bracket)
            dR, dp = se3.exp_kernel(phi, rho)
            p = vec3.add(p, vec3.rotate(R, dp))
            R = vec3.matmul(R, dR)
        for j in range(3):
            p_FC_F[i, j] = p[j]
        for j in range(9):
            R_FC[i, j // 3, j % 3] = R[j]
