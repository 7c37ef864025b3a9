"""Tracking of the coordinates: PID and model feed-forward.

tau = Kp e + Kd e' + Ki int e + M(q) qdd_r + C(q, qd) qd_r + g(q) + k(q_r) + d(q, qd_r)          [Wang, eq. 9]

with e = q_r - q and the Christoffel matrix C (half of dc/dqd). The choice of C matters, because it multiplies the rate
of the reference. k is the whole elastic law, from the rest of the springs, and d the whole damper law.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from soft_dynamics.array import Array
from soft_dynamics.errors import SoftRobotError
from soft_dynamics.robot import Robot

from ..allocation.pressure_allocation import generic_pose
from ..references import JointPath, JointSample
from ..safety.state_machine import State
from .pid_feedback import add_feedback

_CYCLES_LATE = 2.0  # [-] delay from a motion to its command, through sensor and estimator
_PHASE = 0.6  # [rad] largest phase delay of feedback on a swing; more would excite it
_QUARTER = 1.0  # [rad] with about this delay, a force against the deflection acts along the rate


@dataclass(frozen=True)
class ConfigurationGains:
    """Gains relative to the springs and dampers of the robot: one number, or one per coordinate."""

    proportional: tuple[float, ...] = field(
        default=(1.0,), metadata={'doc': 'Kp, in multiples of the stiffness of the coordinate', 'unit': '-'}
    )
    derivative: tuple[float, ...] = field(
        default=(0.5,), metadata={'doc': 'Kd, in multiples of the damping of the coordinate', 'unit': '-'}
    )
    integral: tuple[float, ...] = field(
        default=(2.0,), metadata={'doc': 'Ki, in multiples of the stiffness of the coordinate', 'unit': '1/s'}
    )
    windup_time: float = field(default=0.2, metadata={'doc': 'time constant of the anti-windup', 'unit': 's'})
    lookahead: float = field(
        default=0.0,
        metadata={'doc': 'time by which the feed-forward looks ahead in the reference', 'unit': 's'},
    )

    def eased(self, robot: Robot, delay: float) -> ConfigurationGains:
        """Return gains that do not excite the slowest swing of a robot when feedback acts `delay` seconds late.

        Kp, Kd or Ki that differ from their defaults stay unchanged.
        """
        swing = slowest_swing(robot)
        phase = abs(swing) * delay
        share = min(1.0, (_PHASE / max(phase, 1e-9)) ** 2)
        if phase > _QUARTER:  # it reduces the damping of the swing: by half at most
            share = min(share, -swing.real / abs(swing) / math.sin(min(phase, 0.5 * math.pi)))
        usual = ConfigurationGains()
        kp, kd, ki = (
            tuple(share * k for k in gains) if gains == default else gains
            for gains, default in (
                (self.proportional, usual.proportional),
                (self.derivative, usual.derivative),
                (self.integral, usual.integral),
            )
        )
        return replace(self, proportional=kp, derivative=kd, integral=ki)

    def __post_init__(self) -> None:
        for name in ('proportional', 'derivative', 'integral'):
            if not getattr(self, name) or not all(0.0 <= k < np.inf for k in getattr(self, name)):
                raise ValueError(f'{name} must be finite numbers >= 0, got {list(getattr(self, name))}')
        if not 0.0 < self.windup_time < np.inf:
            raise ValueError(f'windup_time must be > 0 and finite, got {self.windup_time}')
        if not 0.0 <= self.lookahead < np.inf:
            raise ValueError(f'lookahead must be >= 0 and finite, got {self.lookahead}')


class ConfigurationLaw:
    """Generalised forces for following a JointPath."""

    def __init__(self, robot: Robot, gains: ConfigurationGains) -> None:
        self.robot, self.gains = robot, gains
        stiffness, damping = stiffness_scale(robot), damping_scale(robot)
        self._gains = np.stack(
            [
                per_coordinate('proportional', gains.proportional, robot.nq) * stiffness,
                per_coordinate('derivative', gains.derivative, robot.nq) * damping,
                per_coordinate('integral', gains.integral, robot.nq) * stiffness,
            ]
        )
        self._integral: Array = np.zeros(robot.nq)  # [N m or N] Ki int e
        self._wanted: Array = np.zeros(robot.nq)

    def rest(self, state: State) -> JointSample:
        """Return a reference that holds the current coordinates."""
        zero = np.zeros_like(state.q)
        return JointSample(state.q, zero, zero)

    def start(self, t: float, state: State, reference: JointPath, tau: Array) -> None:
        """Choose the integral so that the first forces equal the present ones."""
        self._integral = np.zeros(self.robot.nq)
        self._integral = tau - self.forces(t, 0.0, state, reference)

    def forces(self, t: float, dt: float, state: State, reference: JointPath) -> Array:
        """Return tau of eq. 9 at time t, dt seconds after the previous call."""
        q, qd, now, lookahead = state.q, state.qd, reference.sample(t), self.gains.lookahead
        ahead = reference.sample(t + lookahead) if lookahead else now
        self._wanted = self.robot.tracking_forces(q, qd, *ahead)
        add_feedback(self._gains, dt, (q, qd), (now.q, now.qd), self._integral, self._wanted)
        return self._wanted

    def applied(self, dt: float, tau: Array) -> None:
        """Take the forces that the limits allowed, and reduce the integral by back-calculation."""
        self._integral = self._integral + (tau - self._wanted) * min(dt / self.gains.windup_time, 1.0)


def make(robot: Robot, config: Any, tell: Callable[[str], Any]) -> ConfigurationLaw:
    """Make the law from the parameters of the controller; tell if the robot needs lower gains."""
    delay = robot.description.actuation.valve_lag + _CYCLES_LATE / config.rate
    gains = config.gains.eased(robot, delay)
    if gains != config.gains:
        eased = [np.round(k, 3).tolist() for k in (gains.proportional, gains.derivative, gains.integral)]
        why = f'reduced gains, because {robot.name} swings fast for {config.rate:g} Hz'
        tell('{}: proportional {}, derivative {}, integral {}'.format(why, *eased))
    return ConfigurationLaw(robot, gains)


def per_coordinate(name: str, values: tuple[float, ...], nq: int) -> Array:
    """Return one number per coordinate, from a single number or a list."""
    if len(values) not in (1, nq):
        raise ValueError(f'{name} must have 1 or {nq} entries, got {len(values)}')
    return np.broadcast_to(np.asarray(values, np.float64), (nq,)).copy()


def stiffness_scale(robot: Robot) -> Array:
    """Return the diagonal of dk/dq near rest [N m/rad or N/m]."""
    h, q = 1e-5, generic_pose(robot)
    steps = h * np.eye(robot.nq)
    return np.maximum(np.diag(robot.elastic(q + steps) - robot.elastic(q - steps)) / (2.0 * h), 0.0)


def damping_scale(robot: Robot) -> Array:
    """Return the diagonal of dd/dqd near rest [N m s/rad or N s/m]."""
    q = np.tile(generic_pose(robot), (robot.nq, 1))
    return np.maximum(np.diag(robot.damping(q, np.eye(robot.nq))), 0.0)


def slowest_swing(robot: Robot) -> complex:
    """Return the eigenvalue [rad/s] of the slowest oscillating mode at rest; 0 if there is none or it is unknown."""
    q, zero = generic_pose(robot), np.zeros(robot.nq)
    try:
        A, _ = robot.linearize(q, zero, robot.inverse_dynamics(q, zero, zero))
    except SoftRobotError:
        return 0.0j
    swinging = [x for x in np.linalg.eigvals(A) if x.imag > 1e-3 * abs(x.real) and abs(x) > 1e-3]
    return complex(min(swinging, key=abs, default=0.0))
