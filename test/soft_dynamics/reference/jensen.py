"""Jensen: constant-curvature joints with coordinates (u, v), each followed by a rigid link.

q = (u_1, v_1, u_2, v_2, ...). Frames: base, end of arc 1, end of link 1, end of arc 2, ...
A link is a pure offset along z. `lumped` is the paper's model (without dI/dt); `point` and `distributed` come
from an energy.
"""

from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from .arcs import Placement, arc, arc_body, chamber_length
from .mechanics import Array, Body, System, evaluate, fixed_frame, polynomial_springs, vector


@dataclass(frozen=True, eq=False)
class Link:
    """Rigid link: centre of mass at com_distance along z, inertia about it (principal values or a tensor)."""

    length: float = 0.12  # [m]
    mass: float = 0.7  # [kg]
    com_distance: float = 0.05  # [m]
    inertia: ArrayLike = (2.1e-3, 1.9e-3, 1.2e-3)  # [kg m^2]


@dataclass(frozen=True, eq=False)
class JensenSegment:
    """An arc and its link. The paper gives no numbers; these match the size of its arm."""

    length: float = 0.21  # h [m]
    mass: float = 0.65  # of the arc [kg]
    radius: float = 0.09  # D/2 [m]
    stiffness: ArrayLike = (30.0, 32.0)  # on (u, v) [N m/rad]
    cubic_stiffness: ArrayLike = (0.0, 0.0)  # [N m/rad^3]
    damping: ArrayLike = (4.0, 4.2)  # [N m s/rad]
    chamber_distance: float = 0.055  # d [m]
    chamber_radius: float = 0.033  # delta [m]
    link: Link | None = field(default_factory=Link)


@dataclass(frozen=True, eq=False)
class JensenParameters:
    segments: tuple[JensenSegment, ...] = (JensenSegment(),) * 3
    tip_load: float = 0.0  # point mass at the last frame [kg]
    gravity: ArrayLike = (0.0, 0.0, -9.81)  # world [m/s^2]
    R_WB: ArrayLike = field(default_factory=lambda: np.eye(3))
    p_WB: ArrayLike = (0.0, 0.0, 0.0)  # [m]


class Jensen(System):
    """Arcs and links with the given mass placement."""

    def __init__(self, parameters: JensenParameters, placement: Placement = 'lumped') -> None:
        self.parameters = parameters
        segments, n = parameters.segments, len(parameters.segments)
        q = ca.SX.sym('q', 2 * n)
        frames, bodies, volumes = [fixed_frame(parameters.R_WB, parameters.p_WB)], [], []
        for i, segment in enumerate(segments):
            bend = q[2 * i], q[2 * i + 1], segment.length
            volumes += _volumes(bend, segment)
            bodies.append(arc_body(frames[-1], *bend, segment.mass, segment.radius, placement))
            frames.append(frames[-1].then(*arc(*bend)))
            if segment.link is not None:
                link, inertia = segment.link, np.asarray(segment.link.inertia, float)
                com_W = frames[-1].point(vector(0, 0, link.com_distance))
                tensor = np.diag(inertia) if inertia.ndim == 1 else inertia
                bodies.append(Body(link.mass, com_W, frames[-1].R, ca.DM(tensor)))
                frames.append(frames[-1].then(ca.SX.eye(3), vector(0, 0, link.length)))
        bodies.append(Body(parameters.tip_load, frames[-1].p))
        springs = polynomial_springs(
            q, 0, np.ravel([s.stiffness for s in segments]), np.ravel([s.cubic_stiffness for s in segments])
        )
        damping = np.ravel([s.damping for s in segments])
        layout: dict[str, Any] = {'rest': 0.0, 'scale': 1.0, 'bends': [(2 * i, 2 * i + 1) for i in range(n)]}
        super().__init__(q, bodies, frames, parameters.gravity, springs, damping, layout)
        self._actuation = ca.Function('actuation', [q], [ca.jacobian(ca.vertcat(*volumes), q).T])

    def actuation(self, q: ArrayLike) -> Array:
        """Chamber pressures to generalised force, dV/dq (2n x 4n)   [Jensen, eq. 24].

        Chambers 0..3 of each joint sit at +y, -y, -x, +x.
        """
        return evaluate(self._actuation, q)


def _volumes(bend: tuple[Any, Any, float], segment: JensenSegment) -> list[Any]:
    d, area = segment.chamber_distance, np.pi * segment.chamber_radius**2
    return [area * chamber_length(*bend, x, y) for x, y in ((0, d), (0, -d), (-d, 0), (d, 0))]
