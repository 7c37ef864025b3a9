"""The robot's dynamics as the process of a filter: exact linearisation, steps that are stable for stiff robots."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from soft_dynamics.array import Array
from soft_dynamics.reader import quantity
from soft_dynamics.robot import Robot

from .kernels import advance, correct, glance, wrench_slopes

CONSTANT_WORK = ('gain', 'volume')  # chambers whose generalised force does not depend on the pose


class Belief(NamedTuple):
    """Belief at time t: x = (q, qd, w) with covariance P; w are the forces that the model does not know."""

    t: float
    x: Array
    P: Array


class Estimate(NamedTuple):
    """State at time t. variance holds that of q, then of qd; force is the unknown force."""

    t: float
    q: Array
    qd: Array
    qdd: Array
    variance: Array
    force: Array


class Linearisation(NamedTuple):
    """A = d(qd, qdd)/d(q, qd), B = d(qd, qdd)/d(tau), and (qd, qdd) itself."""

    A: Array
    B: Array
    rates: Array


@dataclass(frozen=True)
class ProcessNoise:
    """Process noise, relative to the largest force of the chambers on each coordinate."""

    force: float = quantity(0.001, unit='1/sqrt(Hz)', doc='white disturbance')
    drift: float = quantity(
        0.05,
        unit='1/sqrt(s)',
        doc='random walk of the unknown force; 0: no unknown force',
    )
    blind_drift: float = quantity(
        1.0,
        unit='1/sqrt(s)',
        doc='the same while pressures are missing; at least drift',
    )
    memory: float = quantity(
        2.0,
        unit='s',
        doc='time in which the unknown force is forgotten unless confirmed',
    )
    base_acceleration: float = quantity(
        0.0, unit='m/s^2 or rad/s^2 per sqrt(Hz)', doc='white acceleration noise of a moving base'
    )
    step: float = quantity(0.01, unit='s', doc='longest step between two linearisations')

    def __post_init__(self) -> None:
        for name in ('force', 'drift', 'base_acceleration'):
            if not getattr(self, name) >= 0.0:
                raise ValueError(f'{name} must be >= 0, got {getattr(self, name)}')
        if not self.blind_drift >= self.drift:
            raise ValueError(f'blind_drift must be >= drift, {self.drift}, got {self.blind_drift}')
        for name in ('memory', 'step'):
            if not getattr(self, name) > 0.0:
                raise ValueError(f'{name} must be > 0, got {getattr(self, name)}')


class Process:
    """Predicts a belief under pressures.

    The mean takes the exponential Rosenbrock step x + int exp(A s) ds f(x): second order, exact for linear robots and
    stable for any stiffness.
    """

    def __init__(self, robot: Robot, noise: ProcessNoise) -> None:
        if any(segment.singular for segment in robot.description.segments):
            raise ValueError(
                f'{robot.name}: the model-based filter needs coordinates with inertia in every pose; '
                'those of discs have none in the straight pose'
            )
        self.robot, self.noise = robot, noise
        n = self.n = robot.nq
        self.size = 3 * n if noise.drift > 0.0 else 2 * n
        self.given = slice(0, 6 if robot.description.base.type == 'prescribed' else 0)
        self.force_scale = force_scale(robot)
        self._noise = np.zeros((4, n))  # white force, drift and acceleration; forgetting
        self._noise[0] = (noise.force * self.force_scale) ** 2
        self._noise[1] = (noise.drift * self.force_scale) ** 2
        self._noise[2, self.given] = noise.base_acceleration**2
        self._noise[3] = 1.0 / noise.memory
        driven = np.any(robot.actuation(robot.rest), axis=1)
        self._blind_noise = self._noise.copy()
        self._blind_noise[1, driven] = (noise.blind_drift * self.force_scale[driven]) ** 2
        chambers = robot.description.actuation.chambers
        constant = all(chamber.work in CONSTANT_WORK for chamber in chambers)
        self._actuation = robot.actuation(robot.rest) if constant else None
        self._on_moving_base = with_moving_base(robot) if robot.description.base.type == 'fixed' else None
        self._T_still = wrench_of_base(np.zeros(3))
        self._last: tuple[Array, Array, Linearisation] | None = None

    def start(self, t: float, spread: float, spread_rate: float) -> Belief:
        """Return a belief at rest, with `spread` [rad or m] and `spread_rate`; a moving base keeps its place."""
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
        """Return the generalised forces of the pressures plus the unknown forces."""
        A = self.robot.actuation(x[..., : self.n]) if self._actuation is None else self._actuation
        tau = A @ pressure
        return tau + x[..., 2 * self.n :] if self.size > 2 * self.n else tau

    def acceleration(self, x: Array, pressure: Array) -> Array:
        n = self.n
        return self.robot.forward_dynamics(x[..., :n], x[..., n : 2 * n], self.force(x, pressure))

    def linearise(self, x: Array, pressure: Array) -> Linearisation:
        """Return the derivatives at x, and the rates there.

        Reuses the last call for the same array with other pressures: accelerations are linear in the forces, and A
        hardly changes with the pressures between two samples.
        """
        tau = self.force(x, pressure)
        if self._last is None or self._last[0] is not x:
            n = self.n
            q, qd = x[:n], x[n : 2 * n]
            A, B = self.robot.linearize(q, qd, tau)
            if self._actuation is None:  # the chambers' forces depend on the pose
                A[:, :n] += B @ slopes(lambda rows: self.robot.actuation(rows) @ pressure, q)
            rates = np.concatenate([qd, self.robot.forward_dynamics(q, qd, tau)])
            self._last = x, tau, Linearisation(A, B, rates)
            return self._last[2]
        _, tau_then, linear = self._last
        return linear._replace(rates=linear.rates + linear.B @ (tau - tau_then))

    def base_wrench(self, x: Array, pressure: Array) -> tuple[Array, Array]:
        """Return (W, dW/dx): the wrench on the robot at its base under its own motion, and its derivatives.

        Treats a fixed base as a prescribed one at rest. With tau_0 the first six forces of inverse dynamics,
        W = T tau_0 and dW/dx = T (dtau_0/d(q, qd) + M_0 dqdd/dx) + dT/dx tau_0.
        """
        n, is_fixed = self.n, self._on_moving_base is not None
        robot = self._on_moving_base or self.robot
        A, B, rates = self.linearise(x, pressure)
        state, H = np.zeros((3, robot.nq)), np.empty((6, self.size))
        state[0, -n:], state[1, -n:], state[2, -n:] = x[:n], rates[:n], rates[n:]
        q, T, tau_0 = state[0], self._T_still, robot.inverse_dynamics(*state)[:6]
        if not is_fixed:
            T = wrench_of_base(q[3:6])
        wrench_slopes(T, robot.inverse_derivatives(*state), (A, B), H)
        if not is_fixed:
            H[:, 3:6] += slopes(lambda rows: np.array([wrench_of_base(row) @ tau_0 for row in rows]), q[3:6])
        return T @ tau_0, H

    def predict(self, belief: Belief, t: float, pressure: Array, known_until: float = math.inf) -> Belief:
        """Return the belief at a later time under constant pressures, which are unknown after `known_until`.

        Raises ValueError or a SoftRobotError where the model has no such motion.
        """
        for end in self._ends(belief.t, t):
            belief = self._step(belief, end, pressure, known_until)[0]
        if not math.isfinite(belief.x.sum() + belief.P.sum()):
            raise ValueError(f'x, P: expected finite numbers at {t:.6f} s, got {belief.x.tolist()}')
        return belief

    def glance(
        self, belief: Belief, t: float, pressure: Array, known_until: float = math.inf
    ) -> tuple[Array, Array]:
        """Return (x, variances of q and qd) at a later time, at most a few steps ahead."""
        if not t > belief.t:
            return belief.x, np.diagonal(belief.P)[: 2 * self.n]
        noise = self._noise if t <= known_until else self._blind_noise
        return glance(self.linearise(belief.x, pressure), belief.x, belief.P, noise, t - belief.t)

    def heard_again(self, belief: Belief, before: Array, pressure: Array) -> Belief:
        """Return the belief when pressures return after a silence, during which the unknown force stood in for them.

        Their effect is subtracted from it; its uncertainty is at most that of the start.
        """
        if self.size == 2 * self.n:
            return belief
        x, places = belief.x.copy(), np.flatnonzero(self.force_scale)
        x[2 * self.n :] -= self.force(x, pressure) - self.force(x, before)
        H = np.eye(self.size)[2 * self.n + places]
        x, P, _ = correct(x, belief.P, -H @ x, H, (self.noise.drift * self.force_scale[places]) ** 2)
        return Belief(belief.t, x, P)

    def transition(self, belief: Belief, t: float, pressure: Array) -> tuple[Belief, Array]:
        """Return the belief at a later time, and the derivative of its mean with respect to the current mean."""
        Phi = np.eye(self.size)
        for end in self._ends(belief.t, t):
            belief, Phi_step = self._step(belief, end, pressure)
            Phi = Phi_step @ Phi
        return belief, Phi

    def _ends(self, start: float, end: float) -> list[float]:
        """Return the ends of equal steps of at most `step`."""
        count = math.ceil((end - start) / self.noise.step - 1e-9)
        return [start + k * (end - start) / count for k in range(1, count)] + [end][:count]

    def _step(
        self, belief: Belief, t: float, pressure: Array, known_until: float = math.inf
    ) -> tuple[Belief, Array]:
        linear, noise = self.linearise(belief.x, pressure), self._noise
        if t > known_until:
            noise = self._blind_noise
        Phi, x, P = advance(linear, belief.x, belief.P, noise, t - belief.t)
        return Belief(t, x, P), Phi


def force_scale(robot: Robot) -> Array:
    """Return the largest force of the chambers on each coordinate at rest; without chambers, of a spring moved by 1."""
    reach = np.abs(robot.actuation(robot.rest)).sum(1) * robot.description.actuation.pressure_max
    eps = 1e-6
    stiffness = np.abs(robot.elastic(robot.rest + eps) - robot.elastic(robot.rest - eps)) / (2.0 * eps)
    return np.where(reach > 0.0, reach, stiffness)


def wrench_of_base(cardan: Array) -> Array:
    """Return T (6, 6): torque and force in the base's axes from the forces on its x, y, z and Cardan angles."""
    (sa, sb, sc), (ca, cb, cc) = np.sin(cardan).tolist(), np.cos(cardan).tolist()
    R_WB = np.array(
        [
            [cb * cc, -cb * sc, sb],
            [ca * sc + sa * sb * cc, ca * cc - sa * sb * sc, -sa * cb],
            [sa * sc - ca * sb * cc, sa * cc + ca * sb * sc, ca * cb],
        ]
    )
    axes = np.array(
        [R_WB[0], [sc, cc, 0.0], [0.0, 0.0, 1.0]]
    )  # axes about which each angle rotates the base, in the base's axes
    T = np.zeros((6, 6))
    T[:3, 3:], T[3:, :3] = np.linalg.inv(axes), R_WB.T
    return T


def with_moving_base(robot: Robot) -> Robot:
    """Return the same robot with six more coordinates, of its base."""
    description = robot.description
    base = dataclasses.replace(description.base, type='prescribed')
    return Robot(dataclasses.replace(description, base=base))


def slopes(function: Any, x: Array, eps: float = 1e-6) -> Array:
    """Return the Jacobian (m, n) by central differences of a function that takes many rows at once."""
    steps = eps * np.eye(x.size)
    rows = function(np.concatenate([x + steps, x - steps]))
    return np.asarray((rows[: x.size] - rows[x.size :]).T / (2.0 * eps))
