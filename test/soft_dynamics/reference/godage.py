"""Godage: n planar links, each turning about +z by theta_i + theta_i0 and reaching along +y.

q = (theta_1, ..., theta_n). Frames: base, end of every link.
"""

from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from .mechanics import Array, Body, System, fixed_frame, polynomial_springs, rotation, vector


@dataclass(frozen=True, eq=False)
class GodageParameters:
    """The paper's actuator; a scalar holds for all links.

    The defaults of com_distance and inertia are physical (a rod: l/2, m l^2/12); see also `literal`.
    """

    n: int = 5
    length: ArrayLike = 0.17 / 5  # [m]
    mass: ArrayLike = 0.069 / 5  # [kg]
    com_distance: ArrayLike | None = None  # along the link [m]
    inertia: ArrayLike | None = None  # about z at the centre of mass [kg m^2]
    rest_offset: ArrayLike = 0.0  # theta_i0 [rad]
    stiffness: ArrayLike = 1.6067  # K_b [N m/rad]
    damping: ArrayLike = 8e-3  # [N m s/rad]
    radius: float = 0.01  # r2 [m]
    tip_load: float = 0.0  # [kg]
    gravity: ArrayLike = (0.0, 0.0, 0.0)  # world [m/s^2]
    R_WB: ArrayLike = field(default_factory=lambda: np.eye(3))
    p_WB: ArrayLike = (0.0, 0.0, 0.0)  # [m]

    @classmethod
    def literal(cls) -> 'GodageParameters':
        """Eqs. 4-5 and 9 as printed: mass at the link's tip, inertia m l^2/75."""
        length, mass = 0.17 / 5, 0.069 / 5
        return cls(com_distance=length, inertia=mass * length**2 / 75)

    def links(self) -> Array:
        """Length, mass, com_distance, inertia, rest_offset of every link, n x 5."""
        length, mass = np.asarray(self.length, float), np.asarray(self.mass, float)
        com = length / 2 if self.com_distance is None else self.com_distance
        inertia = mass * length**2 / 12 if self.inertia is None else self.inertia
        rows = (length, mass, com, inertia, self.rest_offset)
        return np.column_stack([np.broadcast_to(row, self.n) for row in rows])


class Godage(System):
    """A planar chain."""

    def __init__(self, parameters: GodageParameters) -> None:
        self.parameters, n = parameters, parameters.n
        q = ca.SX.sym('q', n)
        frames, bodies = [fixed_frame(parameters.R_WB, parameters.p_WB)], []
        for i, (length, mass, com, inertia, offset) in enumerate(parameters.links()):
            root = frames[-1].then(rotation('z', q[i] + offset), vector(0, 0, 0))
            tensor = ca.diag(vector(0, 0, inertia))
            bodies.append(Body(mass, root.point(vector(0, com, 0)), root.R, tensor))
            frames.append(root.then(ca.SX.eye(3), vector(0, length, 0)))
        bodies.append(Body(parameters.tip_load, frames[-1].p))
        springs = polynomial_springs(q, 0, parameters.stiffness)
        layout: dict[str, Any] = {'rest': 0.0, 'scale': 1.0, 'bends': [(i,) for i in range(n)]}
        super().__init__(q, bodies, frames, parameters.gravity, springs, parameters.damping, layout)

    def actuation(self, q: ArrayLike) -> Array:
        """One pressure to n equal torques (2/3) r2^3 p, n x 1   [Godage, III-C]."""
        return np.full((self.nq, 1), 2 / 3 * self.parameters.radius**3)
