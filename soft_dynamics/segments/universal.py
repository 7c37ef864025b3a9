"""Convert a constant-curvature segment to a universal joint between two equal links.               [Wang, lemma 1]

Position and z axis of the tip are the same. The frames differ by a twist about that axis, which affects the following
segments (the paper's "same orientation" holds for the axis only).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ..kernels.arc import entire


class UniversalPose(NamedTuple):
    d: float  # length of each of the two links [m]
    theta1: float  # about y [rad]
    theta2: float  # about x [rad]
    twist: float  # R_arc = R_universal Rz(twist) [rad]


def from_constant_curvature(phi: float, psi: float, length: float) -> UniversalPose:
    """Universal joint of an arc bent by psi [rad] in the direction phi [rad] with a length [m].

    d = l tan(psi/2)/psi; theta1 = atan2(cos phi sin psi, cos psi), also valid for psi beyond pi/2; theta2 as printed.

    Raises ValueError for |psi| >= pi, where the links become infinitely long.
    """
    if not (abs(psi) < math.pi and length > 0.0 and math.isfinite(phi)):
        raise ValueError(
            f'expected |psi| < pi, length > 0 and a finite phi, got psi {psi}, length {length}, phi {phi}'
        )
    half = entire(0.25 * psi * psi)[0] / (2.0 * math.cos(0.5 * psi))  # tan(psi/2)/psi
    theta1 = math.atan2(math.cos(phi) * math.sin(psi), math.cos(psi))
    theta2 = -math.asin(math.sin(phi) * math.sin(psi))
    # The first columns of Ry(theta1) Rx(theta2) and of exp(psi (-sin phi, cos phi, 0)) differ by the twist.
    x_axis = (math.cos(theta1), 0.0, -math.sin(theta1))
    s1, c1, s2, c2 = math.sin(theta1), math.cos(theta1), math.sin(theta2), math.cos(theta2)
    y_axis = (s1 * s2, c2, c1 * s2)
    turn = 1.0 - math.cos(psi)
    arc_x = (
        1.0 - turn * math.cos(phi) ** 2,
        -turn * math.sin(phi) * math.cos(phi),
        -math.sin(psi) * math.cos(phi),
    )
    along = sum(a * b for a, b in zip(x_axis, arc_x, strict=True))
    across = sum(a * b for a, b in zip(y_axis, arc_x, strict=True))
    return UniversalPose(length * half, theta1, theta2, math.atan2(across, along))
