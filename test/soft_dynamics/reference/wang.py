"""Wang: piecewise universal joint (PUJ) arm; a segment slides d1, turns theta1 (y), theta2 (x), slides d2.

full:     q = (d1, theta1, theta2, d2) per segment; absolute lengths, rest (L/2, 0, 0, L/2)
reduced:  q = (theta1, theta2) per segment; d is a parameter
Frames: base, end of every segment. The arm hangs: gravity is along +z of the base frame.
"""

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from .mechanics import Array, Body, Frame, System, fixed_frame, polynomial_springs, rotation, vector

BAR = 1e5  # [Pa]


@dataclass(frozen=True, eq=False)
class WangParameters:
    """Table II and the identified K, D, A. Stiffness and damping of the slides are not in the paper: ours.

    `mid_fraction` f puts f m on the universal joint and (1 - f) m/2 on either end of a segment; the paper: 0.
    `order`: 'printed' multiplies entry j of K, D, A with angle j of q; 'swapped' reads each pair as
    (x, y) = (theta2, theta1).
    """

    length: tuple[float, ...] = (0.185, 0.175, 0.155, 0.145)  # [m]
    mass: tuple[float, ...] = (1.2, 0.8, 0.6, 0.4)  # [kg]
    stiffness: tuple[float, ...] = (5.78, 7.36, 4.71, 5.98, 3.81, 4.21, 2.86, 2.99)  # [N m/rad]
    damping: tuple[float, ...] = (0.38, 0.38, 0.26, 0.31, 0.22, 0.25, 0.08, 0.05)  # [N m s/rad]
    torque_per_bar: tuple[float, ...] = (2.52, 4.30, 1.53, 2.62, 1.33, 1.75, 0.76, 1.11)  # [N m/bar]
    slide_stiffness: float = 2000.0  # [N/m]
    slide_damping: float = 20.0  # [N s/m]
    order: Literal['printed', 'swapped'] = 'printed'
    mid_fraction: float = 0.0
    tip_load: float = 0.0  # [kg]
    weigh_root: bool = False  # count the motionless root mass in the base wrench
    gravity: ArrayLike = (0.0, 0.0, 9.81)  # world [m/s^2]
    R_WB: ArrayLike = field(default_factory=lambda: np.eye(3))
    p_WB: ArrayLike = (0.0, 0.0, 0.0)  # [m]

    def per_angle(self, values: tuple[float, ...]) -> Array:
        """Values of (theta1, theta2) per segment, n x 2."""
        pairs = np.asarray(values, float).reshape(-1, 2)
        return pairs if self.order == 'printed' else pairs[:, ::-1]


class Wang(System):
    """The PUJ arm; `d` (n x 2) are the link lengths of the reduced model, L/2 unless given."""

    def __init__(
        self,
        parameters: WangParameters,
        model: Literal['reduced', 'full'] = 'reduced',
        d: ArrayLike | None = None,
    ) -> None:
        self.parameters, self.model, n = parameters, model, len(parameters.length)
        halves = np.column_stack([parameters.length, parameters.length]) / 2
        if model == 'full':
            q = ca.SX.sym('q', 4 * n)
            per_segment = ca.reshape(q, 4, n).T
            slides, angles = per_segment[:, [0, 3]], per_segment[:, [1, 2]]
        else:
            q = ca.SX.sym('q', 2 * n)
            slides, angles = (
                ca.SX(ca.DM(halves if d is None else np.asarray(d, float))),
                ca.reshape(q, 2, n).T,
            )
        frames, bodies = _chain(parameters, slides, angles)
        self._angles = np.arange(q.shape[0]).reshape(n, -1)[
            :, slice(1, 3) if model == 'full' else slice(None)
        ]
        rest = self._row(np.zeros((n, 2)), halves)
        stiffness = self._row(parameters.per_angle(parameters.stiffness), parameters.slide_stiffness)
        damping = self._row(parameters.per_angle(parameters.damping), parameters.slide_damping)
        layout: dict[str, Any] = {
            'rest': rest,
            'scale': self._row(np.ones((n, 2)), halves / 3),
            'bends': [tuple(pair) for pair in self._angles],
        }
        springs = polynomial_springs(q, rest, stiffness)
        super().__init__(q, bodies, frames, parameters.gravity, springs, damping, layout)

    def _row(self, angles: Array, slides: ArrayLike) -> Array:
        """Values of all coordinates in the order of q, from those of angles and slides (n x 2)."""
        if self.model == 'reduced':
            return angles.ravel()
        first, last = np.broadcast_to(slides, angles.shape).T
        return np.column_stack([first, angles, last]).ravel()

    def actuation(self, q: ArrayLike) -> Array:
        """Pressure components [Pa] of (theta1, theta2) per segment to force, nq x 2n   [Wang, eq. 24]."""
        gain = self.parameters.per_angle(self.parameters.torque_per_bar).ravel() / BAR
        B = np.zeros((self.nq, gain.size))
        B[self._angles.ravel(), np.arange(gain.size)] = gain
        return B

    def chamber_actuation(self, q: ArrayLike) -> Array:
        """Pressures [Pa] of the four bags to generalised force, nq x 4n   [Wang, eqs. 22-24].

        p_x = (p1 + p2 - p3 - p4)/2 bends about x (theta2), p_y = (p1 - p2 + p3 - p4)/2 about y (theta1).
        """
        components = np.array([[1, -1, 1, -1], [1, 1, -1, -1]]) / 2
        return np.asarray(self.actuation(q) @ np.kron(np.eye(len(self.parameters.length)), components))


def _chain(parameters: WangParameters, slides: Any, angles: Any) -> tuple[list[Frame], list[Body]]:
    frames, bodies = [fixed_frame(parameters.R_WB, parameters.p_WB)], []
    f = parameters.mid_fraction
    ends = [(1 - f) / 2 * m for m in parameters.mass]
    for i, m in enumerate(parameters.mass):
        turn = rotation('y', angles[i, 0]) @ rotation('x', angles[i, 1])
        joint = frames[-1].then(turn, vector(0, 0, slides[i, 0]))
        frames.append(joint.then(ca.SX.eye(3), vector(0, 0, slides[i, 1])))
        following = ends[i + 1] if i + 1 < len(ends) else parameters.tip_load
        bodies += [Body(f * m, joint.p), Body(ends[i] + following, frames[-1].p)]
    if parameters.weigh_root:
        bodies.append(Body(ends[0], frames[0].p))
    return frames, bodies


class Puj(NamedTuple):
    """One segment, and the angle about the tip z axis with R_puj Rz(twist) = R_pcc."""

    d1: float
    theta1: float
    theta2: float
    d2: float
    twist: float


def puj_pose(d1: float, theta1: float, theta2: float, d2: float) -> Array:
    """Tip pose of one segment   [Wang, eq. 3]."""
    R = Rotation.from_euler('YX', [theta1, theta2]).as_matrix()
    return np.vstack([np.column_stack([R, [0, 0, d1] + d2 * R[:, 2]]), [0, 0, 0, 1]])


def pcc_pose(phi: float, psi: float, length: float) -> Array:
    """Tip pose of the torsion-free arc bent by psi towards phi: R = exp(psi [(-sin phi, cos phi, 0)]x)."""
    R = Rotation.from_rotvec(psi * np.array([-np.sin(phi), np.cos(phi), 0])).as_matrix()
    reach = length * np.sin(psi / 2) * np.sinc(psi / 2 / np.pi)  # l (1 - cos psi)/psi
    p = [reach * np.cos(phi), reach * np.sin(phi), length * np.sinc(psi / np.pi)]
    return np.vstack([np.column_stack([R, p]), [0, 0, 0, 1]])


def pcc_to_puj(phi: float, psi: float, length: float) -> Puj:
    """PUJ segment with the tip position and z axis of an arc, 0 <= psi < pi   [Wang, lemma 1, corrected]."""
    theta1 = float(np.arctan2(np.cos(phi) * np.sin(psi), np.cos(psi)))
    theta2 = float(-np.arcsin(np.sin(phi) * np.sin(psi)))
    d = float(length / 2 * np.sinc(psi / 2 / np.pi) / np.cos(psi / 2))  # (l/psi) tan(psi/2)
    R_between = puj_pose(d, theta1, theta2, d)[:3, :3].T @ pcc_pose(phi, psi, length)[:3, :3]
    return Puj(d, theta1, theta2, d, float(np.arctan2(R_between[1, 0], R_between[0, 0])))
