"""The even entire functions that make a bent piece free of singularities.

    f_j(x) = sum_k (-x)^k / (2k + j)!          x = phi^2
    f_1 = sin(phi)/phi   f_2 = (1 - cos(phi))/phi^2   f_3 = (phi - sin(phi))/phi^3   ...
    f_j = 1/j! - x f_{j+2}          d f_j/dx = -(f_{j+1} - j f_{j+2})/2

Rotation, tip and Jacobian of a constant-curvature arc, and all their derivatives, are polynomials in the
bend and these functions, so nothing special happens at the straight pose.
"""

from __future__ import annotations

import math

from .vec3 import inline

Entire = tuple[float, float, float, float, float, float, float, float, float]

# Up to here the series of f_8 and f_9 is summed and the others follow downwards without cancellation;
# beyond, they follow upwards from sine and cosine. The loss at the seam is below 1e-13 for f_9.
SERIES_LIMIT = 4.0
# Ten terms: what is left out is below 1e-18 of the sum.
SERIES_8 = tuple((-1.0) ** k / math.factorial(2 * k + 8) for k in range(10))
SERIES_9 = tuple((-1.0) ** k / math.factorial(2 * k + 9) for k in range(10))


@inline
def _series(x: float, c: tuple[float, ...]) -> float:
    """The polynomial with coefficients c by Horner's rule in x^2, whose two halves do not wait for each other."""
    y = x * x
    even = c[0] + y * (c[2] + y * (c[4] + y * (c[6] + y * c[8])))
    return even + x * (c[1] + y * (c[3] + y * (c[5] + y * (c[7] + y * c[9]))))


@inline
def entire(x: float) -> Entire:
    """(f_1, ..., f_9) at x >= 0."""
    if x <= SERIES_LIMIT:
        f9, f8 = _series(x, SERIES_9), _series(x, SERIES_8)
        f7 = 1.0 / 5040.0 - x * f9
        f6 = 1.0 / 720.0 - x * f8
        f5 = 1.0 / 120.0 - x * f7
        f4 = 1.0 / 24.0 - x * f6
        f3 = 1.0 / 6.0 - x * f5
        f2 = 0.5 - x * f4
        f1 = 1.0 - x * f3
        return f1, f2, f3, f4, f5, f6, f7, f8, f9
    phi = math.sqrt(x)
    over_x = 1.0 / x
    f1 = math.sin(phi) / phi
    f2 = (1.0 - math.cos(phi)) * over_x
    f3 = (1.0 - f1) * over_x
    f4 = (0.5 - f2) * over_x
    f5 = (1.0 / 6.0 - f3) * over_x
    f6 = (1.0 / 24.0 - f4) * over_x
    f7 = (1.0 / 120.0 - f5) * over_x
    f8 = (1.0 / 720.0 - f6) * over_x
    f9 = (1.0 / 5040.0 - f7) * over_x
    return f1, f2, f3, f4, f5, f6, f7, f8, f9


@inline
def first_derivatives(f: Entire) -> tuple[float, float, float]:
    """(f_1', f_2', f_3') with respect to x."""
    return -0.5 * (f[1] - f[2]), -0.5 * (f[2] - 2.0 * f[3]), -0.5 * (f[3] - 3.0 * f[4])


@inline
def second_derivatives(f: Entire) -> tuple[float, float, float]:
    """(f_1'', f_2'', f_3'') with respect to x."""
    return (
        0.25 * (f[2] - 3.0 * f[3] + 3.0 * f[4]),
        0.25 * (f[3] - 5.0 * f[4] + 8.0 * f[5]),
        0.25 * (f[4] - 7.0 * f[5] + 15.0 * f[6]),
    )


@inline
def third_derivatives(f: Entire) -> tuple[float, float, float]:
    """(f_1''', f_2''', f_3''') with respect to x."""
    return (
        -0.125 * (f[3] - 6.0 * f[4] + 15.0 * f[5] - 15.0 * f[6]),
        -0.125 * (f[4] - 9.0 * f[5] + 33.0 * f[6] - 48.0 * f[7]),
        -0.125 * (f[5] - 12.0 * f[6] + 57.0 * f[7] - 105.0 * f[8]),
    )
