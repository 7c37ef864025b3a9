"""The robot's dynamics as the process of a filter: exact linearisation, steps that stiffness does not bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from soft_dynamics.arguments import Array
from soft_dynamics.description import Disc
from soft_dynamics.reader import quantity
from soft_dynamics.robot import Robot

TAYLOR_TERMS, TAYLOR_RADIUS = 7, 0.25  # relative error of the first short step below 1e-9


class Belief(NamedTuple):
    """What is known at time t: x = (q, qd, w) with covariance P; w are the forces that the model does not know."""

    t: float
    x: Array
    P: Array


@dataclass(frozen=True)
class ProcessNoise:
    """How far the model is trusted, as parts of the largest force the chambers can exert on each coordinate."""

    force: float = quantity(0.002, unit='1/sqrt(Hz)', doc='white disturbance')
    drift: float = quantity(0.1, unit='1/sqrt(s)', doc='random walk of the unknown force; 0: there is none')
    base_acceleration: float = quantity(
        0.0, unit='m/s^2 or rad/s^2 per sqrt(Hz)', doc='white, of a base that somebody moves'
    )
    step: float = quantity(5e-3, unit='s', doc='longest step between two linearisations')

    def __post_init__(self) -> None:
        for name in ('force', 'drift', 'base_acceleration'):
            if not getattr(self, name) >= 0.0:
                raise ValueError(f'{name} must be >= 0, got {getattr(self, name)}')
        if not self.step > 0.0:
            raise ValueError(f'step must be > 0, got {self.step}')


def discretise(A: Array, f: Array, Q: Array, dt: float) -> tuple[Array, Array, Array]:
    """(Phi, step, covariance) of dx = f + A (x - x0) + noise of density Q over dt, from x0.

    Phi = exp(A dt)     step = int exp(A s) f ds     covariance = int exp(A s) Q exp(A s)^T ds
    by a Taylor series over dt/2^m and m doublings: X(2h) = X(h) + Phi(h) X(h) [Phi(h)^T].
    """
    doublings = max(0, int(np.ceil(np.log2(np.abs(A).sum(1).max() * dt / TAYLOR_RADIUS + 1e-300))))
    h = dt / 2**doublings
    n, Ah = A.shape[0], A * h
    Phi, step, cov = np.eye(n) + Ah, h * f, h * Q
    power, moved, spread = Ah, step, cov
    for k in range(2, TAYLOR_TERMS + 2):
        moved = Ah @ moved / k
        spread = (Ah @ spread + spread @ Ah.T) / k
        power = Ah @ power / k
        Phi, step, cov = Phi + power, step + moved, cov + spread
    for _ in range(doublings):
        step, cov, Phi = step + Phi @ step, cov + Phi @ cov @ Phi.T, Phi @ Phi
    return Phi, step, 0.5 * (cov + cov.T)


class Process:
    """Carries a belief forward under pressures.

    The mean takes the exponential Rosenbrock step x + int exp(A s) ds f(x): second order, exact for linear robots and
    stable however stiff they are.
    """

    def __init__(self, robot: Robot, noise: ProcessNoise) -> None:
        if any(isinstance(segment, Disc) for segment in robot.description.segments):
            raise ValueError(
                f'{robot.name}: the model-based filter needs coordinates with inertia in every pose; '
                'those of discs have none when straight'
            )
        self.robot, self.noise = robot, noise
        n = self.n = robot.nq
        self.size = 3 * n if noise.drift > 0.0 else 2 * n
        self.given = slice(0, 6 if robot.description.base.type == 'prescribed' else 0)
        self.force_scale = force_scale(robot)
        self._white = (noise.force * self.force_scale) ** 2
        self._walk = (noise.drift * self.force_scale) ** 2

    def start(self, t: float, spread: float, spread_rate: float) -> Belief:
        """At rest, give or take `spread` [rad or m] and `spread_rate`; a base that somebody moves is where it is."""
        x = np.zeros(self.size)
        x[: self.n] = self.robot.rest
        sigma = np.zeros(self.size)
        sigma[: self.n], sigma[self.n : 2 * self.n] = spread, spread_rate
        if self.size > 2 * self.n:
            sigma[2 * self.n :] = self.noise.drift * self.force_scale
        if self.noise.base_acceleration == 0.0:
            sigma[self.given] = sigma[self.n : 2 * self.n][self.given] = 0.0
        return Belief(t, x, np.diag(sigma**2))

    def force(self, x: Array, pressure: Array) -> Array:
        """Generalised forces of the pressures and of what the model does not know."""
        tau = self.robot.actuation(x[..., : self.n]) @ pressure
        return tau + x[..., 2 * self.n :] if self.size > 2 * self.n else tau

    def acceleration(self, x: Array, pressure: Array) -> Array:
        n = self.n
        return self.robot.forward_dynamics(x[..., :n], x[..., n : 2 * n], self.force(x, pressure))

    def predict(self, belief: Belief, t: float, pressure: Array) -> Belief:
        """The belief at a later time under constant pressures."""
        return self.transition(belief, t, pressure)[0]

    def transition(self, belief: Belief, t: float, pressure: Array) -> tuple[Belief, Array]:
        """The belief at a later time, and the derivative of its mean with respect to the mean now."""
        count = int(np.ceil((t - belief.t) / self.noise.step - 1e-9))
        Phi = np.eye(self.size)
        for end in np.linspace(belief.t, t, count + 1)[1:].tolist():
            belief, Phi_step = self._step(belief, end, pressure)
            Phi = Phi_step @ Phi
        return belief, Phi

    def _step(self, belief: Belief, t: float, pressure: Array) -> tuple[Belief, Array]:
        n, x = self.n, belief.x
        q, qd, tau = x[:n], x[n : 2 * n], self.force(x, pressure)
        A_model, B = self.robot.linearize(q, qd, tau)
        A, f, Q = np.zeros((self.size, self.size)), np.zeros(self.size), np.zeros((self.size, self.size))
        A[: 2 * n, : 2 * n] = A_model
        f[:n], f[n : 2 * n] = qd, self.robot.forward_dynamics(q, qd, tau)
        Q[: 2 * n, : 2 * n] = (B * self._white) @ B.T
        given = np.arange(n, 2 * n)[self.given]
        Q[given, given] += self.noise.base_acceleration**2
        if self.size > 2 * n:
            A[: 2 * n, 2 * n :] = B
            Q[2 * n :, 2 * n :] = np.diag(self._walk)
        Phi, step, cov = discretise(A, f, Q, t - belief.t)
        P = Phi @ belief.P @ Phi.T + cov
        return Belief(t, x + step, 0.5 * (P + P.T)), Phi


def force_scale(robot: Robot) -> Array:
    """The largest force of the chambers on each coordinate at rest; where there is none, of a spring moved by 1."""
    reach = np.abs(robot.actuation(robot.rest)).sum(1) * robot.description.actuation.pressure_max
    eps = 1e-6
    stiffness = np.abs(robot.elastic(robot.rest + eps) - robot.elastic(robot.rest - eps)) / (2.0 * eps)
    return np.where(reach > 0.0, reach, stiffness)
