"""Tracking of a pose by looking ahead: the model linearised exactly, the valves' lag in it, and a load estimate.

In every cycle the motion over a short horizon is a linear-quadratic problem in x = (q, qd, tau) around the present,

    q' = qd,    qd' = f(q, qd, tau + d),    tau' = (u - tau)/T,
    sum over the horizon of |W (e_r - J dq)|^2 + damping |qd|^2 + effort |u - tau|^2,

with the exact derivatives of f, and it is solved by one Riccati recursion; u of its first step is what is wanted. d are
forces that the model does not know, a load for example, learnt from the rates that it did not predict.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import expm

from soft_dynamics.arguments import Array
from soft_dynamics.robot import Robot

from .allocation import first_actuated
from .configuration import damping_scale, stiffness_scale
from .references import PosePath, PoseSample
from .rotation import pose_error
from .safety import State

_SUBSTEP = 0.01  # [s] longest step when the rates are predicted


@dataclass(frozen=True)
class PredictiveGains:
    """Horizon, weights and the speed of the load estimate."""

    steps: int = field(default=10, metadata={'doc': 'steps of the horizon'})
    step: float = field(default=0.05, metadata={'doc': 'length of a step', 'unit': 's'})
    orientation: float = field(
        default=1.0, metadata={'doc': 'weight of orientation beside position, 0: position only', 'unit': '-'}
    )
    posture: float = field(default=1e-3, metadata={'doc': 'weight of the distance from rest', 'unit': '-'})
    damping: float = field(default=1e-3, metadata={'doc': 'weight of the rates', 'unit': 's^2'})
    effort: float = field(default=3e-3, metadata={'doc': 'weight of changing the forces', 'unit': '-'})
    load_time: float = field(default=0.2, metadata={'doc': 'time in which a load is learnt', 'unit': 's'})

    def __post_init__(self) -> None:
        if not 1 <= self.steps <= 100:
            raise ValueError(f'steps must be 1 to 100, got {self.steps}')
        for name in ('step', 'effort', 'load_time'):
            if not 0.0 < getattr(self, name) < np.inf:
                raise ValueError(f'{name} must be > 0, got {getattr(self, name)}')
        for name in ('orientation', 'posture', 'damping'):
            if not 0.0 <= getattr(self, name) < np.inf:
                raise ValueError(f'{name} must be >= 0, got {getattr(self, name)}')


class PredictiveLaw:
    """Generalised forces that make the tip follow a PosePath, decided over a horizon."""

    def __init__(self, robot: Robot, gains: PredictiveGains) -> None:
        if first_actuated(robot):
            raise ValueError(f'robot {robot.name}: expected a fixed base')
        self.robot, self.gains = robot, gains
        n = robot.nq
        self._scale = np.repeat([gains.orientation, 1.0 / robot.length], 3)
        self._lag = max(robot.description.actuation.valve_lag, 1e-3)
        stiffness = np.maximum(stiffness_scale(robot), 1e-9)
        self._effort = np.diag(gains.effort / stiffness**2)  # a change counts as the bend it makes
        self._dampers = damping_scale(robot)
        self._acting: Array = np.zeros(n)  # forces behind the valves
        self._command: Array = np.zeros(n)
        self._load: Array = np.zeros(n)  # d
        self._last: State | None = None

    def rest(self, state: State) -> PoseSample:
        """Return the reference that leaves the tip where it is."""
        return PoseSample(self.robot.pose(state.q, 'tip'), np.zeros(6))

    def start(self, t: float, state: State, reference: PosePath, tau: Array) -> None:
        """Begin with the forces that act already; what they do not explain of a pose at rest is load."""
        held = self.robot.inverse_dynamics(state.q, state.qd, np.zeros(self.robot.nq))
        self._acting, self._command, self._load, self._last = tau, tau, held - tau, None

    def forces(self, t: float, dt: float, state: State, reference: PosePath) -> Array:
        """Return the first forces of the best motion over the horizon."""
        self._observe(dt, state)
        gains, robot, (_, q, qd) = self.gains, self.robot, state
        J, X_WT = self._scale[:, None] * robot.jacobian(q, 'tip'), robot.pose(q, 'tip')
        wishes = []  # linear part of the cost of the state that each step leads to
        for i in range(1, gains.steps + 1):
            e = self._scale * pose_error(reference.sample(t + i * gains.step).X_WT, X_WT)
            bend = J.T @ e + gains.posture * (robot.rest - q)
            wishes.append(np.concatenate([bend, -gains.damping * qd, np.zeros(robot.nq)]))
        K, k = self._riccati(self._discretise(q, qd), J, wishes)
        return -K[:, 2 * robot.nq :] @ self._acting - k

    def _riccati(
        self, model: tuple[Array, Array, Array], J: Array, wishes: list[Array]
    ) -> tuple[Array, Array]:
        """Return K, k of the first input u = -K x - k of the best motion."""
        (F, G, c), gains, n, R = model, self.gains, self.robot.nq, self._effort
        Q = np.zeros((3 * n, 3 * n))
        Q[:n, :n] = J.T @ J + gains.posture * np.eye(n)
        Q[n : 2 * n, n : 2 * n] = gains.damping * np.eye(n)
        effort, N = np.zeros((3 * n, 3 * n)), np.zeros((3 * n, n))  # |u - tau|^2: tau is the last part of x
        effort[2 * n :, 2 * n :], N[2 * n :] = R, -R
        S: Array = np.zeros((3 * n, 3 * n))
        s: Array = np.zeros(3 * n)
        K: Array = N.T
        k: Array = np.zeros(n)
        for wish in reversed(wishes):
            P, p = S + Q, s - wish
            H = R + G.T @ P @ G
            sides = np.column_stack([G.T @ P @ F + N.T, G.T @ (P @ c + p)])
            solved = np.asarray(np.linalg.solve(H, sides), np.float64)
            K, k = solved[:, :-1], solved[:, -1]
            S = effort + F.T @ P @ F - K.T @ H @ K
            s = F.T @ (P @ c + p) - K.T @ H @ k
        return K, k

    def applied(self, dt: float, tau: Array) -> None:
        """Learn which forces the limits left."""
        self._command = tau

    def _observe(self, dt: float, state: State) -> None:
        """Move the valves' model on by dt, and learn d from the rates that it did not predict."""
        before, self._last = self._last, state
        if before is None or dt <= 0.0:
            return
        after = self._command + np.exp(-dt / self._lag) * (self._acting - self._command)
        span = state.t - before.t
        if span > 0.0:
            inputs = np.array([self._acting, after]) + self._load
            motion = self.robot.simulate(
                before.q, before.qd, inputs, [0.0, span], kind='force', step=_SUBSTEP
            )
            missed = self.robot.mass_matrix(state.q) @ (state.qd - motion.qd[-1])
            missed += self._dampers * (state.q - motion.q[-1])  # what the dampers took of the impulse
            self._load = self._load + missed / self.gains.load_time
        self._acting = after

    def _discretise(self, q: Array, qd: Array) -> tuple[Array, Array, Array]:
        """Return F, G, c of x+ = F x + G u + c with x = (q - q_now, qd - qd_now, tau)."""
        robot, n, h = self.robot, self.robot.nq, self.gains.step
        total = self._acting + self._load
        A, B = robot.linearize(q, qd, total)
        slope = np.zeros((4 * n + 1, 4 * n + 1))
        slope[: 2 * n, : 2 * n], slope[: 2 * n, 2 * n : 3 * n] = A, B
        slope[2 * n : 3 * n, 2 * n : 3 * n] = -np.eye(n) / self._lag
        slope[2 * n : 3 * n, 3 * n : 4 * n] = np.eye(n) / self._lag
        slope[:n, -1] = qd
        slope[n : 2 * n, -1] = robot.forward_dynamics(q, qd, total) - B[n:] @ self._acting
        E = expm(slope * h)
        return E[: 3 * n, : 3 * n], E[: 3 * n, 3 * n : 4 * n], E[: 3 * n, -1]
