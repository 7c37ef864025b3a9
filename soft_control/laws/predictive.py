"""Model-predictive tracking: exact linearisation along the motion, valves and limits in the model, a load estimate.

Each cycle optimises the motion over a short horizon, in x = (q, qd, tau) under commands c [Pa],

    q' = qd,    qd' = f(q, qd, tau + d; m),    tau' = (A c - tau)/T,    pressure_min <= c <= pressure_max,
    sum over the horizon of |W e|^2 + rate |W e'|^2 + damping |qd|^2 + posture |q - rest|^2 + effort |A c - tau|^2,

where e is the error of the tip's pose or of the coordinates. A cycle is one Gauss-Newton step: roll out the commands of
the last cycle, linearise f along that motion by its exact derivatives, and solve the quadratic problem within the
limits (`constrained_riccati.py`). The tip mass m and the unknown forces d come from `load_observer.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import expm

from soft_dynamics.array import Array
from soft_dynamics.geometry.se3 import moved, pose_error
from soft_dynamics.robot import Robot

from ..allocation.pressure_allocation import first_actuated
from ..references import JointSample, PoseSample
from ..safety.state_machine import State
from .configuration_space import stiffness_scale
from .constrained_riccati import Horizon, best_commands
from .load_observer import LoadGains, LoadObserver
from .task_space import tip_pose

_EASE = 1e-6  # [-] weight of the commands, some directions of which make no force


@dataclass(frozen=True)
class PredictiveGains:
    """Horizon, weights and load estimate."""

    steps: int = field(default=12, metadata={'doc': 'number of steps of the horizon'})
    step: float = field(default=0.05, metadata={'doc': 'duration of a step', 'unit': 's'})
    orientation: float = field(
        default=1.0,
        metadata={
            'doc': 'weight of the orientation error relative to the position error; 0: position only',
            'unit': '-',
        },
    )
    rate: float = field(default=0.0, metadata={'doc': 'weight of the rate of the error', 'unit': 's^2'})
    posture: float = field(
        default=1e-4, metadata={'doc': 'weight of the deviation from the rest posture', 'unit': '-'}
    )
    damping: float = field(default=1e-3, metadata={'doc': 'weight of the coordinate rates', 'unit': 's^2'})
    effort: float = field(default=3e-3, metadata={'doc': 'weight of changes of the forces', 'unit': '-'})
    load: LoadGains = LoadGains()

    def __post_init__(self) -> None:
        if not 1 <= self.steps <= 100:
            raise ValueError(f'steps must be 1 to 100, got {self.steps}')
        for name in ('step', 'effort'):
            if not 0.0 < getattr(self, name) < np.inf:
                raise ValueError(f'{name} must be > 0 and finite, got {getattr(self, name)}')
        for name in ('orientation', 'rate', 'posture', 'damping'):
            if not 0.0 <= getattr(self, name) < np.inf:
                raise ValueError(f'{name} must be >= 0 and finite, got {getattr(self, name)}')


class PredictiveLaw:
    """Generalised forces for following a PosePath with the tip or, with `joints`, a JointPath."""

    def __init__(self, robot: Robot, gains: PredictiveGains, joints: bool = False) -> None:
        if first_actuated(robot):
            raise ValueError(f'robot {robot.name}: expected a fixed base')
        if any(segment.singular for segment in robot.description.segments):
            raise ValueError(
                f'robot {robot.name}: expected no discs; the predictive law cannot linearise them'
            )
        self.robot, self.gains, self.joints = robot, gains, joints
        actuation = robot.description.actuation
        self._scale = np.repeat([gains.orientation, 1.0 / robot.length], 3)
        self._lag = max(actuation.valve_lag, 1e-3)
        self._unit = actuation.pressure_max  # scale of the internal commands
        self._low, self._high = actuation.pressure_min / self._unit, 1.0
        self._effort = (
            gains.effort / np.maximum(stiffness_scale(robot), 1e-9) ** 2
        )  # effort counts as the bend that it causes
        self.observer = LoadObserver(robot, self._lag, gains.load)
        self._commands: Array = np.zeros((gains.steps, len(robot.chamber_names)))

    def rest(self, state: State) -> Any:
        """Return a reference that holds the robot where it is."""
        if self.joints:
            return JointSample(state.q, np.zeros_like(state.q), np.zeros_like(state.q))
        return PoseSample(tip_pose(self.robot, state), np.zeros(6))

    def start(self, t: float, state: State, reference: Any, tau: Array) -> None:
        """Start from the present forces at rest; the part of the pose that they do not explain is load."""
        self.observer.start(state, tau)
        A = self.robot.actuation(state.q) * self._unit
        hold = np.clip(np.linalg.lstsq(A, tau, rcond=None)[0], self._low, self._high)
        self._commands = np.tile(hold, (self.gains.steps, 1))

    def forces(self, t: float, dt: float, state: State, reference: Any) -> Array:
        """Return the first forces of the optimal motion over the horizon."""
        self.observer.observe(dt, state)
        gains, steps = self.gains, self.gains.steps
        A = self.robot.actuation(state.q) * self._unit
        self._shift(dt)
        nominal, q, qd, tau = self._commands, *self._roll_out(A)
        F, G = self._discretise(q[:-1], qd[:-1], tau[:-1])
        samples = [reference.sample(t + i * gains.step) for i in range(1, steps + 1)]
        Q, wish = self._cost(samples, q[1:], qd[1:], state)
        v = nominal @ A.T - tau[:-1]
        ease = _EASE * float(np.max(np.abs(A.T * self._effort @ A)))
        change = np.zeros_like(nominal)
        problem = Horizon(
            F, G @ A, Q, -wish, A, self._effort, v, nominal, ease, self._low - nominal, self._high - nominal
        )
        best_commands(problem, change)
        self._commands = nominal + change
        return np.asarray(A @ self._commands[0])

    def applied(self, dt: float, tau: Array) -> None:
        """Take the forces that the limits allowed."""
        self.observer.command = tau

    def _shift(self, dt: float) -> None:
        """Shift the commands of the last cycle by dt; hold the last one."""
        steps = np.arange(self.gains.steps)
        at = np.minimum(steps + dt / self.gains.step, steps[-1])
        k = np.minimum(at.astype(int), steps[-1])
        part = (at - k)[:, None]
        self._commands = (1.0 - part) * self._commands[k] + part * self._commands[
            np.minimum(k + 1, steps[-1])
        ]

    def _roll_out(self, A: Array) -> tuple[Array, Array, Array]:
        """Return q, qd, tau (steps + 1, n) of the motion under the current commands."""
        h, observer = self.gains.step, self.observer
        tau = [observer.acting]
        for u in self._commands @ A.T:
            tau.append(u + np.exp(-h / self._lag) * (tau[-1] - u))
        forces = np.array(tau)
        times = h * np.arange(len(forces))
        motion = observer.model.simulate(
            observer.q, observer.qd, forces + observer.unknown, times, kind='force', step=h, tolerance=1e-6
        )
        return motion.q, motion.qd, forces

    def _discretise(self, q: Array, qd: Array, tau: Array) -> tuple[Array, Array]:
        """Return F (steps, 3n, 3n), G (steps, 3n, n) of x+ = F x + G u along the motion; u are forces."""
        n, lag = self.robot.nq, self._lag
        A, B = self.observer.model.linearize(q, qd, tau + self.observer.unknown)
        slope = np.zeros((len(q), 4 * n, 4 * n))
        slope[:, : 2 * n, : 2 * n], slope[:, : 2 * n, 2 * n : 3 * n] = A, B
        slope[:, 2 * n : 3 * n, 2 * n : 3 * n] = -np.eye(n) / lag
        slope[:, 2 * n : 3 * n, 3 * n :] = np.eye(n) / lag
        E = expm(slope * self.gains.step)
        return np.ascontiguousarray(E[:, : 3 * n, : 3 * n]), np.ascontiguousarray(E[:, : 3 * n, 3 * n :])

    def _cost(self, samples: list[Any], q: Array, qd: Array, state: State) -> tuple[Array, Array]:
        """Return Hessian (steps, 3n, 3n) and negative gradient (steps, 3n) of the cost along the motion."""
        gains, n = self.gains, self.robot.nq
        e, ed, J = (
            self._joint_errors(samples, q, qd) if self.joints else self._tip_errors(samples, q, qd, state)
        )
        Jt = J.transpose(0, 2, 1)
        Q, wish = np.zeros((len(q), 3 * n, 3 * n)), np.zeros((len(q), 3 * n))
        Q[:, :n, :n] = Jt @ J + gains.posture * np.eye(n)
        Q[:, n : 2 * n, n : 2 * n] = gains.rate * Jt @ J + gains.damping * np.eye(n)
        wish[:, :n] = (Jt @ e[:, :, None])[:, :, 0] + gains.posture * (self.robot.rest - q)
        wish[:, n : 2 * n] = gains.rate * (Jt @ ed[:, :, None])[:, :, 0] - gains.damping * qd
        return Q, wish

    def _joint_errors(self, samples: list[JointSample], q: Array, qd: Array) -> tuple[Array, Array, Array]:
        wanted, rates = np.array([s.q for s in samples]), np.array([s.qd for s in samples])
        return wanted - q, rates - qd, np.tile(np.eye(self.robot.nq), (len(q), 1, 1))

    def _tip_errors(
        self, samples: list[PoseSample], q: Array, qd: Array, state: State
    ) -> tuple[Array, Array, Array]:
        """Return e, e' and -de/dq, weighted; the offset of the measured tip stays constant over the horizon."""
        offset = pose_error(tip_pose(self.robot, state), self.robot.pose(state.q, 'tip'))
        X = [moved(X_WT, offset) for X_WT in self.robot.pose(q, 'tip')]
        J = self.robot.jacobian(q, 'tip')
        e = np.array([pose_error(s.X_WT, X_WT) for s, X_WT in zip(samples, X, strict=True)])
        ed = np.array([s.V_WT for s in samples]) - (J @ qd[:, :, None])[:, :, 0]
        return self._scale * e, self._scale * ed, self._scale[:, None] * J


def make_for_joints(robot: Robot, config: Any, _tell: Callable[[str], Any]) -> PredictiveLaw:
    """Make the law that follows a JointPath, from the parameters of the controller."""
    return PredictiveLaw(robot, config.predictive, joints=True)


def make_for_tip(robot: Robot, config: Any, _tell: Callable[[str], Any]) -> PredictiveLaw:
    """Make the law that follows a PosePath, from the parameters of the controller."""
    return PredictiveLaw(robot, config.predictive)
