"""What a segment type says of its look: URDF joints with cylinders, and the curve between two plates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..array import Array

BODY, RIGID, PLATE = 'soft', 'rigid', 'plate'
STRAIGHT = 1e-9  # [rad] below this bend, the plane of bending is undefined


class Joint(NamedTuple):
    """A joint and its child link; child = parent * origin * motion(multiplier * value of the leader)."""

    name: str
    kind: str  # fixed, revolute or prismatic
    child: str
    axis: str = 'z'
    xyz: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)
    leader: str = ''  # for mimic joints
    multiplier: float = 1.0
    visuals: tuple[Visual, ...] = ()


class Visual(NamedTuple):
    """A cylinder along z, centred at xyz in the link's frame."""

    radius: float  # [m]
    length: float  # [m]
    xyz: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)
    color: str = BODY


def between_plates(X_W0: Array, X_W1: Array, arm: float, share: Array) -> Array:
    """Cubic through both plate centres along both plate normals; close to a circular arc if one exists.

    Handles of c / (3 cos^2(psi/4)) for chord c and bend psi approximate a circular arc.
    """
    a, b = (X[:3, 3] + arm * X[:3, 1] for X in (X_W0, X_W1))
    psi = np.arccos(np.clip(X_W0[:3, 2] @ X_W1[:3, 2], -1.0, 1.0))
    handle = np.linalg.norm(b - a) / (3.0 * np.cos(0.25 * psi) ** 2)
    t = share[:, None]
    inner_a, inner_b = a + handle * X_W0[:3, 2], b - handle * X_W1[:3, 2]
    curve = (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * inner_a + 3 * (1 - t) * t**2 * inner_b + t**3 * b
    return np.asarray(curve)
