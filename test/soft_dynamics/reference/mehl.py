"""Mehl: extensible arcs (Delta_x, Delta_y, delta_L) on a floating base.

q = (x, y, z, alpha, beta, gamma, Delta_x1, Delta_y1, delta_L1, ...); R_WB = Rx(alpha) Ry(beta) Rz(gamma).
u = -Delta_y/d, v = Delta_x/d, h = L0 + delta_L. Frames: base, end of every arc. The base itself has no mass.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from .arcs import Placement, arc, arc_body, chamber_length
from .mechanics import Array, Body, Frame, System, evaluate, polynomial_springs, rotation

BASE = 6  # floating-base coordinates
BETA = ('mass', 'd_theta', 'd_dl', 'k_theta', 'k_dl', 'k_dl3')  # the linear parameters of the regressor


@dataclass(frozen=True)
class MehlSegment:
    """Table I; length, d (outer radius in Fig. 1) and chamber radius are assumptions."""

    length: float = 0.13  # L0 [m]
    d: float = 0.05  # [m]
    mass: float = 0.1806  # [kg]
    radius: float = 0.025  # of the discs in the placements 'lumped' and 'distributed' [m]
    k_theta: float = 183.5195  # [N/m]
    k_theta3: float = 0.0  # [N/m^3]
    k_dl: float = 251.7274  # [N/m]
    k_dl3: float = -4.2e4  # [N/m^3]
    d_theta: float = 0.2301  # [kg/s]
    d_dl: float = 1.8384  # [kg/s]
    chamber_area: float = 31e-6  # A [m^2]
    chamber_radius: float = 0.02  # r_ch [m]
    chamber_angle: float = 2 * np.pi / 3  # between neighbours [rad]
    x_m: float = -0.4e-3  # shift of the centre [m]
    y_m: float = -1.5e-3  # [m]

    @property
    def chambers(self) -> Array:
        """Positions (x, y) of the three chambers, 3 x 2   [Mehl, eqs. 22-24]."""
        angle = np.pi + self.chamber_angle * np.arange(3)
        return self.chamber_radius * np.column_stack([np.cos(angle), np.sin(angle)]) - [self.x_m, self.y_m]


@dataclass(frozen=True)
class MehlParameters:
    segments: tuple[MehlSegment, ...] = (MehlSegment(),)
    tip_load: float = 0.0  # [kg]
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)  # world [m/s^2]


class Mehl(System):
    """Arcs on a free base; the paper places each mass as a point at the centre of gravity."""

    def __init__(self, parameters: MehlParameters, placement: Placement = 'point') -> None:
        self.parameters, self.placement = parameters, placement
        segments, n = parameters.segments, len(parameters.segments)
        q = ca.SX.sym('q', BASE + 3 * n)
        R_WB = rotation('x', q[3]) @ rotation('y', q[4]) @ rotation('z', q[5])
        frames, bodies, volumes = [Frame(R_WB, q[:3])], [], []
        for i, s in enumerate(segments):
            delta_x, delta_y, delta_l = ca.vertsplit(q[BASE + 3 * i : BASE + 3 * i + 3])
            bend = -delta_y / s.d, delta_x / s.d, s.length + delta_l
            volumes += [s.chamber_area * chamber_length(*bend, x, y) for x, y in s.chambers]
            bodies.append(arc_body(frames[-1], *bend, s.mass, s.radius, placement))
            frames.append(frames[-1].then(*arc(*bend)))
        bodies.append(Body(parameters.tip_load, frames[-1].p))
        springs = polynomial_springs(
            q,
            0,
            _per_coordinate(0, [(s.k_theta, s.k_theta, s.k_dl) for s in segments]),
            _per_coordinate(0, [(s.k_theta3, s.k_theta3, s.k_dl3) for s in segments]),
        )
        damping = _per_coordinate(0, [(s.d_theta, s.d_theta, s.d_dl) for s in segments])
        layout: dict[str, Any] = {
            'rest': 0.0,
            'scale': _per_coordinate(1, [(s.d, s.d, s.length / 5) for s in segments]),
            'bends': [(BASE + 3 * i, BASE + 3 * i + 1) for i in range(n)],
        }
        super().__init__(q, bodies, frames, parameters.gravity, springs, damping, layout)
        self._dv = ca.Function('dv', [q], [ca.jacobian(ca.vertcat(*volumes), q).T])

    def actuation(self, q: ArrayLike, law: Literal['tip_wrench', 'p_dv'] = 'tip_wrench') -> Array:
        """Chamber pressures to generalised force, (6 + 3n) x 3n.

        'tip_wrench': eqs. 25-26 with m_y = -A sum r_x p in eq. 21; 'p_dv': dV/dq of ideal chambers.
        """
        if law == 'p_dv':
            return evaluate(self._dv, q)
        pull = [self.jacobian(q, k).T @ np.kron(np.eye(2), X[:3, :3]) for k, X in enumerate(self.frames(q))]
        columns = []
        for k, s in enumerate(self.parameters.segments):
            wrench = s.chamber_area * np.array([[y, -x, 0, 0, 0, 1] for x, y in s.chambers]).T
            columns.append((pull[k + 1] - pull[k]) @ wrench)
        return np.hstack(columns)

    def euler_rates(self, q: ArrayLike) -> Array:
        """E with w_world = E (alpha', beta', gamma'); rows 3:6 of tau are E^T n_world."""
        return self.jacobian(q, 0)[:3, 3:6]

    def base_wrench_minus_actuation(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, p: ArrayLike) -> Array:
        """tau_0 - (tau_CC)_0 as a wrench at the base origin, world axes, angular first   [Mehl, eq. 17]."""
        tau = (self.inverse_dynamics(q, qd, qdd) - self.actuation(q) @ np.asarray(p, float))[:BASE]
        return np.concatenate([np.linalg.solve(self.euler_rates(q).T, tau[3:]), tau[:3]])

    def hybrid_dynamics(
        self, q: ArrayLike, qd: ArrayLike, base_qdd: ArrayLike, tau_c: ArrayLike
    ) -> tuple[Array, Array]:
        """tau_0 of the base and qdd of the arcs for a given base motion   [Mehl, eq. 28, corrected]."""
        M = self.mass_matrix(q)
        still = np.concatenate([np.asarray(base_qdd, float), np.zeros(self.nq - BASE)])
        rest = self.inverse_dynamics(q, qd, still)
        qdd_c = np.asarray(np.linalg.solve(M[BASE:, BASE:], np.asarray(tau_c, float) - rest[BASE:]), float)
        return rest[:BASE] + M[:BASE, BASE:] @ qdd_c, qdd_c

    def regressor(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
        """Psi with inverse_dynamics = Psi beta, beta the values of BETA common to all arcs   [Mehl, eq. 30].

        tau is linear in beta (k_theta3 and tip load left out), so column j is the torque of the robot whose
        only non-zero parameter is beta_j = 1.
        """
        return np.column_stack([unit.inverse_dynamics(q, qd, qdd) for unit in self._units])

    @cached_property
    def _units(self) -> list['Mehl']:
        units = []
        for name in BETA:
            values = {**dict.fromkeys(BETA, 0.0), 'k_theta3': 0.0, name: 1.0}
            segments = tuple(replace(s, **values) for s in self.parameters.segments)
            units.append(Mehl(replace(self.parameters, segments=segments, tip_load=0.0), self.placement))
        return units


def _per_coordinate(base: float, arcs: list[tuple[float, float, float]]) -> Array:
    return np.concatenate([np.full(BASE, base), np.ravel(arcs)])
