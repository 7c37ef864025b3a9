"""Load estimate of the predictive law: unknown forces, and the mass at the tip that explains them.

A Kalman filter on x = (q, qd, d). The model moves q and qd under the known forces and d, d is a random walk, and each
incoming estimate of q and qd is a measurement, which smooths the rates.

A mass m at the tip causes d = -m Y(q, qd, qdd), where Y is what one kilogram adds to the inverse dynamics. The
observer fits m by least squares over `mass_time` and adds it to the model, with weight and inertia. d keeps the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from scipy.linalg import expm

from soft_dynamics.array import Array
from soft_dynamics.robot import Robot

from ..safety.state_machine import State
from .configuration_space import stiffness_scale

_SUBSTEP = 0.0125  # [s] longest step of the prediction
_GRAIN = 0.02  # [kg] masses are rounded to multiples of this, so that each model is built once
_DOUBT = 1e-3  # [rad^2 s/kg^2] prior information of m = 0


@dataclass(frozen=True)
class LoadGains:
    """Noise levels of states and model."""

    coordinate_noise: float = field(
        default=5e-3, metadata={'doc': 'std of coordinates in a state', 'unit': 'rad or m'}
    )
    rate_noise: float = field(
        default=1.0, metadata={'doc': 'std of rates in a state', 'unit': 'rad/s or m/s'}
    )
    force_noise: float = field(
        default=0.01,
        metadata={
            'doc': 'white force noise, in multiples of the stiffness of the coordinate',
            'unit': '1/sqrt(Hz)',
        },
    )
    drift: float = field(
        default=0.2,
        metadata={
            'doc': 'random walk of the unknown force, in multiples of the stiffness',
            'unit': '1/sqrt(s)',
        },
    )
    mass_time: float = field(default=2.0, metadata={'doc': 'averaging time of the tip mass', 'unit': 's'})

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0.0 < value < np.inf:
                raise ValueError(f'{name} must be > 0 and finite, got {value}')


class LoadObserver:
    """Model of the robot with its load, its state, the forces behind the valves, and the unknown forces."""

    def __init__(self, robot: Robot, lag: float, gains: LoadGains) -> None:
        self._robot, self._lag, self._mass_time = robot, lag, gains.mass_time
        self._loaded = lru_cache(64)(robot.with_tip_load)
        self._kilogram = self._loaded(robot.description.tip_load + 1.0)
        stiffness = np.maximum(stiffness_scale(robot), 1e-9)
        self._weights = 1.0 / stiffness
        self._heaviest = sum(
            segment.mass for segment in robot.description.segments
        )  # [kg] upper bound of the mass: that of the robot
        self._white, self._walk = (gains.force_noise * stiffness) ** 2, (gains.drift * stiffness) ** 2
        self._noise = np.repeat([gains.coordinate_noise**2, gains.rate_noise**2], robot.nq)
        self.model, self.mass = robot, 0.0  # [kg] beyond that of the robot file

    def start(self, state: State, tau: Array) -> None:
        """Start at rest with the present forces; the unknown forces are what these do not explain."""
        self.model, self.mass = self._robot, 0.0
        self.acting = self.command = tau
        self.q, self.qd = state.q, np.zeros_like(state.qd)
        self.unknown = self._robot.inverse_dynamics(self.q, self.qd, self.qd) - tau
        self._P = np.diag(np.concatenate([self._noise, self._walk]))
        self._t = state.t
        self._information = self._product = 0.0

    def observe(self, dt: float, state: State) -> None:
        """Advance the valve model by dt and the state to its time, then correct with the new estimate."""
        after = self.command + math.exp(-dt / self._lag) * (self.acting - self.command)
        span = state.t - self._t
        if span > 0.0:
            rates = self.qd
            self._predict(span, np.array([self.acting, after]))
            self._correct(state)
            self._weigh(span, (self.qd - rates) / span)
            self._t = state.t
        self.acting = after

    def _predict(self, span: float, forces: Array) -> None:
        n, model = self._robot.nq, self.model
        A, B = model.linearize(self.q, self.qd, forces[0] + self.unknown)
        slope = np.zeros((3 * n, 3 * n))
        slope[: 2 * n, : 2 * n], slope[: 2 * n, 2 * n :] = A, B
        motion = model.simulate(
            self.q, self.qd, forces + self.unknown, [0.0, span], kind='force', step=_SUBSTEP, tolerance=1e-6
        )
        self.q, self.qd = motion.q[-1], motion.qd[-1]
        Phi = expm(slope * span)
        half = expm(slope * 0.5 * span)  # noise enters all along the step: place it half way
        spread = np.zeros((3 * n, 3 * n))
        spread[: 2 * n, : 2 * n] = (B * self._white) @ B.T
        spread[2 * n :, 2 * n :] = np.diag(self._walk)
        self._P = Phi @ self._P @ Phi.T + span * half @ spread @ half.T

    def _correct(self, state: State) -> None:
        n, P = self._robot.nq, self._P
        missed = np.concatenate([state.q - self.q, state.qd - self.qd])
        gain = np.linalg.solve(P[: 2 * n, : 2 * n] + np.diag(self._noise), P[: 2 * n]).T
        step = gain @ missed
        self.q, self.qd = self.q + step[:n], self.qd + step[n : 2 * n]
        self.unknown = self.unknown + step[2 * n :]
        P = P - gain @ P[: 2 * n]
        self._P = 0.5 * (P + P.T)

    def _weigh(self, span: float, qdd: Array) -> None:
        """Move the part of the unknown forces that a mass explains into the mass."""
        motion = self.q, self.qd, qdd
        Y = self._kilogram.inverse_dynamics(*motion) - self._robot.inverse_dynamics(*motion)
        y, d = self._weights * Y, self._weights * (self.mass * Y - self.unknown)
        keep = math.exp(-span / self._mass_time)
        self._information = keep * self._information + span * float(y @ y)
        self._product = keep * self._product + span * float(y @ d)
        best = min(max(self._product / (self._information + _DOUBT), 0.0), self._heaviest)
        mass = _GRAIN * round(best / _GRAIN)
        if mass != self.mass:
            self.unknown = self.unknown + (mass - self.mass) * Y
            self.mass = mass
            self.model = self._loaded(self._robot.description.tip_load + mass)
