"""Sine and cosine together, inline: a third of the cost of two calls into libm, which the recursions would notice.

Reduction by multiples of pi/2 in three parts, then the minimax polynomials of fdlibm on [-pi/4, pi/4]; the error is
below 2 units in the last place. Angles beyond FAR go to libm.
"""

from __future__ import annotations

import math

from .vec3 import inline

FAR = 1.0e5  # [rad]
HALF_PI_1, HALF_PI_2, HALF_PI_3 = (
    1.57079632673412561417,
    6.07710050630396597660e-11,
    2.02226624879595063154e-21,
)


@inline
def sincos(x: float) -> tuple[float, float]:
    """(sin x, cos x)"""
    if not abs(x) < FAR:
        return math.sin(x), math.cos(x)
    turns = math.floor(x * 0.6366197723675814 + 0.5)
    r = ((x - turns * HALF_PI_1) - turns * HALF_PI_2) - turns * HALF_PI_3
    z = r * r
    s = 2.75573137070700676789e-06 + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)
    s = 8.33333333332248946124e-03 + z * (-1.98412698298579493134e-04 + z * s)
    s = r + r * z * (-1.66666666666666324348e-01 + z * s)
    c = -2.75573143513906633035e-07 + z * (2.08757232129817482790e-09 - z * 1.13596475577881948265e-11)
    c = -1.38888888888741095749e-03 + z * (2.48015872894767294178e-05 + z * c)
    c = 1.0 - (0.5 * z - z * z * (4.16666666666666019037e-02 + z * c))
    quarter = int(turns) & 3
    if quarter == 0:
        return s, c
    if quarter == 1:
        return c, -s
    if quarter == 2:
        return -s, -c
    return -c, s
