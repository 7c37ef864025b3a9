"""Schultz: N discs on inextensible threads; disc 1 is the base.

q = (alpha, beta, gamma, psi, phi) per thread. From disc i to disc i + 1:
    R(alpha, beta), thread along its z axis, Rz(gamma), Rx(psi), Ry(phi)
    R = Rz(alpha) Rx(beta) Rz(-alpha) ('axis_angle') or Rz(alpha) Rx(beta) ('zxz')
The frame of a disc sits where the threads meet it; its centre is at +rho y. Frames: every disc, base first.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from .mechanics import Array, Body, Frame, System, evaluate, fixed_frame, rotation, vector


@dataclass(frozen=True, eq=False)
class SchultzParameters:
    """Section V, normalised units; scalars hold for all discs, threads or springs."""

    mass: tuple[float, ...] = (2.0, 2.0, 4.0)  # of discs 2..N: disc 1 does not move
    radius: ArrayLike = 1.0  # rho of discs 1..N
    thread: ArrayLike = 1.0  # l of threads 1..N-1
    spring_angles: tuple[float, ...] = (np.pi / 2, np.pi, 3 * np.pi / 2)  # ccw from the thread
    spring_stiffness: ArrayLike = 1.0  # per angle
    spring_rest: ArrayLike = 1.0  # length, per angle
    damping: ArrayLike = 100.0  # b, on every coordinate
    area: float = np.pi  # of disc N, under pressure
    gravity: ArrayLike = (0.0, -9.81, 0.0)  # world
    R_WB: ArrayLike = field(default_factory=lambda: np.eye(3))
    p_WB: ArrayLike = (0.0, 0.0, 0.0)

    @property
    def n(self) -> int:
        """Number of threads and of moving discs."""
        return len(self.mass)

    @property
    def radii(self) -> Array:
        return np.broadcast_to(np.asarray(self.radius, float), self.n + 1)

    @property
    def threads(self) -> Array:
        return np.broadcast_to(np.asarray(self.thread, float), self.n)

    @property
    def springs(self) -> Array:
        """Angle, stiffness, rest length of the springs between two discs, one row each."""
        columns = (self.spring_angles, self.spring_stiffness, self.spring_rest)
        return np.column_stack([np.broadcast_to(column, len(self.spring_angles)) for column in columns])

    def rim(self, disc: int, angle: float) -> Array:
        """Point of the rim of a disc in its frame: rho (sin, 1 - cos, 0)."""
        return np.array([np.sin(angle), 1 - np.cos(angle), 0]) * float(self.radii[disc])

    def hoop(self, disc: int) -> Array:
        """Inertia tensor of a thin hoop about its centre; discs count from 0, the base."""
        return np.diag(self.mass[disc - 1] * self.radii[disc] ** 2 * np.array([0.5, 0.5, 1.0]))


class Schultz(System):
    """Discs and threads."""

    def __init__(
        self, parameters: SchultzParameters, variant: Literal['axis_angle', 'zxz'] = 'axis_angle'
    ) -> None:
        self.parameters = parameters
        n = parameters.n
        q = ca.SX.sym('q', 5 * n)
        frames, bodies, springs = [fixed_frame(parameters.R_WB, parameters.p_WB)], [], ca.SX(0)
        for i in range(n):
            frames.append(_next_disc(frames[i], q[5 * i : 5 * i + 5], parameters.threads[i], variant))
            disc = frames[i + 1]
            centre_W = disc.point(vector(0, parameters.radii[i + 1], 0))
            bodies.append(Body(parameters.mass[i], centre_W, disc.R, ca.DM(parameters.hoop(i + 1))))
            for angle, stiffness, rest in parameters.springs:
                near, far = (frames[k].point(ca.DM(parameters.rim(k, angle))) for k in (i, i + 1))
                springs += stiffness / 2 * (ca.norm_2(far - near) - rest) ** 2
        layout: dict[str, Any] = {'rest': 0.0, 'scale': 1.0, 'bends': [(5 * i + 1,) for i in range(n)]}
        super().__init__(q, bodies, frames, parameters.gravity, springs, parameters.damping, layout)
        force = parameters.area * ca.jacobian(bodies[-1].p_W, q).T @ frames[-1].R[:, 2]
        self._inflation = ca.Function('inflation', [q], [force])

    def actuation(self, q: ArrayLike) -> Array:
        """Pressure to generalised force, nq x 1: the follower force p A z_N at the centre of disc N."""
        return evaluate(self._inflation, q)

    def momentum(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Canonical momentum p = dT/dqd."""
        return evaluate(self._canonical, q, qd)[:, 0]

    def momentum_rate(
        self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike = 0.0, pressure: float = 0.0
    ) -> Array:
        """Rate dp/dt = dT/dq - dV/dq + Q - B qd + tau   [Schultz, eq. 7 with all of dL/dq]."""
        applied = pressure * self.actuation(q)[:, 0] + np.asarray(tau, float) - self.damping(q, qd)
        kinetic = evaluate(self._canonical, q, qd)[:, 1]
        return np.asarray(kinetic - self.gravity(q) - self.elastic(q) + applied)

    @cached_property
    def _canonical(self) -> Any:
        q, qd = ca.MX.sym('q', self.nq), ca.MX.sym('qd', self.nq)
        T = self._total['kinetic'](q, qd, 0)
        return ca.Function('canonical', [q, qd], [ca.horzcat(ca.gradient(T, qd), ca.gradient(T, q))])


def _next_disc(disc: Frame, angles: Any, thread: float, variant: str) -> Frame:
    alpha, beta, gamma, psi, phi = ca.vertsplit(angles)
    along = rotation('z', alpha) @ rotation('x', beta)
    if variant == 'axis_angle':
        along = along @ rotation('z', -alpha)
    onto = rotation('z', gamma) @ rotation('x', psi) @ rotation('y', phi)
    return disc.then(along @ onto, thread * along[:, 2])
