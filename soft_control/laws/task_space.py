"""Tracking of tip poses with a model of the statics.

qd* = J^+ (V_r + K_P e + K_D e' + K_I int e),    d tau = B qd* dt                                [Wang, eq. 19]

e is the rotation vector and the displacement from the tip to its reference, J the geometric Jacobian. The paper
measures B; here it is d(g + k)/dq. The forces accumulate from cycle to cycle, so the law carries an unknown load after
a while. New here: a damper kd (qd* - qd) beside the sum, because otherwise K_P can hardly exceed the decay rate of the
swing; a pseudo-inverse that is damped near singular poses; and a null space that returns to rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from soft_dynamics.array import Array
from soft_dynamics.geometry.se3 import pose_error
from soft_dynamics.robot import Robot

from ..allocation.pressure_allocation import first_actuated
from ..references import PosePath, PoseSample
from ..safety.state_machine import State
from .configuration_space import damping_scale

_BLIND = 0.1  # [-] relative to `singular`: smaller directions belong to the null space
_STEP = 1e-5  # [rad or m] of the central differences in B


@dataclass(frozen=True)
class TaskGains:
    """Gains on the pose error, the same for position and orientation."""

    proportional: float = field(default=1.6, metadata={'doc': 'proportional gain K_P', 'unit': '1/s'})
    derivative: float = field(default=0.0, metadata={'doc': 'derivative gain K_D', 'unit': '-'})
    integral: float = field(default=0.0, metadata={'doc': 'integral gain K_I', 'unit': '1/s^2'})
    damping: float = field(
        default=2.0,
        metadata={'doc': 'damping of the coordinates, in multiples of their own damping', 'unit': '-'},
    )
    orientation: float = field(
        default=1.0,
        metadata={
            'doc': 'weight of the orientation error relative to the position error; 0: position only',
            'unit': '-',
        },
    )
    singular: float = field(
        default=0.1,
        metadata={'doc': 'damp singular values of the scaled Jacobian below this', 'unit': '-'},
    )
    posture: float = field(
        default=0.5, metadata={'doc': 'rate at which redundant coordinates return to rest', 'unit': '1/s'}
    )
    fastest: float = field(
        default=1.5, metadata={'doc': 'largest commanded rate of a coordinate', 'unit': 'rad/s or m/s'}
    )

    def __post_init__(self) -> None:
        for name in ('proportional', 'derivative', 'integral', 'damping', 'orientation', 'posture'):
            if not 0.0 <= getattr(self, name) < np.inf:
                raise ValueError(f'{name} must be >= 0 and finite, got {getattr(self, name)}')
        if not 0.0 < self.singular < 1.0:
            raise ValueError(f'singular must be between 0 and 1, got {self.singular}')
        if not 0.0 < self.fastest < np.inf:
            raise ValueError(f'fastest must be > 0 and finite, got {self.fastest}')


class TaskLaw:
    """Generalised forces for following a PosePath with the tip."""

    def __init__(self, robot: Robot, gains: TaskGains) -> None:
        self.robot, self.gains = robot, gains
        self._first = first_actuated(robot)
        self._rest = robot.rest
        # Rows in comparable units: a rotation counts as the displacement that it causes at one body length.
        self._scale = np.repeat([gains.orientation, 1.0 / robot.length], 3)
        self._integral: Array = np.zeros(6)  # [rad s, m s]
        self._kd = gains.damping * damping_scale(robot)
        self._held: Array = np.zeros(robot.nq)  # [N m or N] accumulated steps
        self._damper: Array = np.zeros(robot.nq)
        self._saturated = False

    def rest(self, state: State) -> PoseSample:
        """Return a reference that holds the tip where it is."""
        return PoseSample(tip_pose(self.robot, state), np.zeros(6))

    def start(self, t: float, state: State, reference: PosePath, tau: Array) -> None:
        """Start from the present forces."""
        self._held, self._integral, self._saturated = tau + self._kd * state.qd, np.zeros(6), False

    def forces(self, t: float, dt: float, state: State, reference: PosePath) -> Array:
        """Return the forces of the previous call, dt seconds ago, plus the step of eq. 19."""
        gains, q, qd = self.gains, state.q, state.qd
        X_WR, V_WR = reference.sample(t)
        J = self.robot.jacobian(q, 'tip')
        J[:, : self._first] = 0.0
        e, ed = pose_error(X_WR, tip_pose(self.robot, state)), V_WR - J @ qd
        if not self._saturated:
            self._integral = self._integral + dt * e
        wanted = V_WR + gains.proportional * e + gains.derivative * ed + gains.integral * self._integral
        inverse, idle = damped_inverse(self._scale[:, None] * J, gains.singular)
        posture = gains.posture * (self._rest - q)
        posture[: self._first] = 0.0
        rate = inverse @ (self._scale * wanted) + idle @ posture
        rate *= gains.fastest / max(float(np.max(np.abs(rate))), gains.fastest)
        self._held = self._held + static_stiffness(self.robot, q) @ (rate * dt)
        self._damper = self._kd * (rate - qd)
        return self._held + self._damper

    def applied(self, dt: float, tau: Array) -> None:
        """Continue from the forces that the limits allowed; while they are clipped, stop the integral."""
        left = tau - self._damper
        missing = np.abs(left - self._held)[self._first :]
        self._saturated = bool(np.max(missing) > 1e-3 * np.max(np.abs(tau[self._first :])))
        self._held = left


def make(robot: Robot, config: Any, _tell: Callable[[str], Any]) -> TaskLaw:
    """Make the law from the parameters of the controller."""
    return TaskLaw(robot, config.gains)


def tip_pose(robot: Robot, state: State) -> Array:
    """Return the measured pose of the tip, or that of the model."""
    return robot.pose(state.q, 'tip') if state.X_WT is None else state.X_WT


def damped_inverse(J: Array, singular: float) -> tuple[Array, Array]:
    """Return the pseudo-inverse (n, m) of J (m, n), damped near singularities, and the null-space projector (n, n).

    Singular values s below `singular` count as (s^2 + l^2)/s with l^2 = singular^2 (1 - (s/singular)^2). So the
    inverse never exceeds 1/singular, and larger singular values are unchanged.
    """
    U, s, Vt = np.linalg.svd(J, full_matrices=False)
    damping = np.maximum(singular**2 - s**2, 0.0)
    inverse = (Vt.T * (s / (s**2 + damping))) @ U.T
    seen = Vt[s >= _BLIND * singular]
    return inverse, np.eye(J.shape[1]) - seen.T @ seen


def static_stiffness(robot: Robot, q: Array) -> Array:
    """Return B = d(g + k)/dq (nq, nq), by central differences."""
    steps = np.concatenate([q + _STEP * np.eye(robot.nq), q - _STEP * np.eye(robot.nq)])
    held = robot.inverse_dynamics(steps, np.zeros_like(steps), np.zeros_like(steps))
    return ((held[: robot.nq] - held[robot.nq :]) / (2.0 * _STEP)).T
