"""The control loop, the same for every law: state, reference, forces, pressures, safety."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from soft_dynamics.array import Array
from soft_dynamics.errors import SoftRobotError
from soft_dynamics.frozen_samples import FrozenSamples
from soft_dynamics.geometry.se3 import moved, pose_error
from soft_dynamics.pressure_limits import LONGEST_STEP
from soft_dynamics.robot import Robot

from .allocation.pressure_allocation import Allocation, generic_pose
from .allocation.valve_model import Valves, reachable
from .safety import state_machine
from .safety.force_balance import ForceBalance
from .safety.kernels import all_finite
from .safety.plausibility import TIP_OFF
from .safety.state_machine import Limits, Memory, Mode, Request, State

_TIP_TIME = 0.1  # [s] averaging time of the offset between measured tip and model
_TIP_FIRST = 0.1  # [-] weight of a first measurement during motion, so that the command does not jump
_TIP_LASTS = 0.5  # [s] without measurements until the offset fades ...
_TIP_FADES = 1.0  # [s] ... with this time constant
_TIP_TURN = 0.3  # [rad] ignore a measured tip further from the model's


class Law(Protocol):
    """A control law: generalised forces from a state and a reference."""

    def rest(self, state: State) -> Any:
        """Return a reference sample that holds the robot where it is."""

    def start(self, t: float, state: State, reference: Any, tau: Array) -> None:
        """Start without a bump from the present forces tau."""

    def forces(self, t: float, dt: float, state: State, reference: Any) -> Array:
        """Return the desired forces at time t, dt seconds after the previous call."""

    def applied(self, dt: float, tau: Array) -> None:
        """Take the forces that the limits allowed."""


@dataclass(frozen=True)
class Actuate:
    """Parameters of allocation and lag compensation."""

    co_contraction: float = field(
        default=0.0,
        metadata={
            'doc': 'mean pressure of antagonistic chambers; 0: lowest, 1: highest possible',
            'unit': '-',
        },
    )
    lag_speedup: float = field(
        default=1.0,
        metadata={
            'doc': 'factor by which commands speed up the pressures beyond the valve lag; 1: no speed-up',
            'unit': '-',
        },
    )

    def __post_init__(self) -> None:
        if not 0.0 <= self.co_contraction <= 1.0:
            raise ValueError(f'co_contraction must be 0 to 1, got {self.co_contraction}')
        if not 1.0 <= self.lag_speedup <= 10.0:
            raise ValueError(f'lag_speedup must be 1 to 10, got {self.lag_speedup}')


class ControlLoop:
    """Follows a reference with a law, allocation and safety. Call `step` in every cycle.

    A pressure follows its command with T dp/dt = c - p. To make it k times faster, the loop commands
    c = p + k (p_wanted - p), with p from a model of the valve. Limits and slew rate of c bound p_wanted, so allocation
    finds the best forces within both.
    """

    def __init__(self, robot: Robot, law: Law, actuate: Actuate | None = None) -> None:
        actuate = actuate or Actuate()
        self.robot, self.law = robot, law
        self.limits = Limits.of(robot)
        self._allocate = Allocation(robot, actuate.co_contraction)
        self._speedup = actuate.lag_speedup
        self._valves = Valves(robot.description)
        self._matrix = _constant_matrix(robot)
        self._balance = ForceBalance(robot, self._matrix)
        self._tip_limit = np.repeat([_TIP_TURN, TIP_OFF * robot.length], 3)
        self.begin(0.0)

    def begin(self, t: float, pressure: Array | None = None) -> None:
        """Reset; start vented, or from the pressures [Pa] that are already commanded."""
        start = np.zeros(self._allocate.low.size) if pressure is None else pressure
        self.memory: Memory = state_machine.begin(start.copy(), t)
        self.state: State | None = None
        self._before: State | None = None  # of the last cycle
        self._offset: Array | None = (
            None  # rotation and displacement from the model's tip to the measured one
        )
        self._offset_t = -math.inf  # [s]
        self._valves.begin(start)
        self._balance.begin()
        self._frozen = FrozenSamples(max(self.limits.pressure_max, -self.limits.pressure_min))
        self._stopped = self._started = False
        self._reference: Any = None
        self._reference_t = -math.inf  # [s]
        self._last_sample: Any = None  # of the reference, in the last cycle

    def feed(self, state: State) -> None:
        """Take an estimate of the state."""
        if self._offset is not None and all_finite(state.q):
            self._fade_offset(state.t)
            state = state._replace(X_WT=moved(self.robot.pose(state.q, 'tip'), self._offset))
        self.state = state
        self._frozen.feed(state.q.tobytes(), self._valves.pressure)

    def feed_pressure(self, t: float, pressure: Array) -> None:
        """Take the measured pressures [Pa] of all chambers. After the first call, silence is a fault."""
        self._valves.measured(t, pressure)

    def feed_tip(self, t: float, X_WT: Array) -> None:
        """Take a measured pose of the tip, in the world of the robot file.

        The tip of a soft body is not exactly where the model puts it. The offset changes slowly, so the loop estimates
        it here and adds it to the model's tip at every state. Without measurements the offset fades.
        """
        state = self.state
        if state is None or self._state_fault(state.t) or not abs(t - state.t) <= self.limits.state_timeout:
            return
        off = pose_error(X_WT, self.robot.pose(state.q + (t - state.t) * state.qd, 'tip'))
        passed = t - self._offset_t
        if not (passed > 0.0 and (np.abs(off) <= self._tip_limit).all()):
            return
        part = min(passed / _TIP_TIME, 1.0) if passed <= _TIP_LASTS or not self._started else _TIP_FIRST
        before = np.zeros(6) if self._offset is None else self._offset
        self._offset, self._offset_t = before + part * (off - before), t

    def stop(self) -> None:
        """Emergency stop: vent, and follow nothing until `begin`."""
        self._stopped = True

    def present(self, t: float) -> Any:
        """Return the sample at which a new reference starts; ValueError if the loop cannot follow one now."""
        fault = 'emergency stop' if self._stopped else self._fault(t)
        if fault or self.state is None:
            raise ValueError(f'not ready: {fault}')
        return self.law.rest(self.state) if self._reference is None else self._reference.sample(t)

    def follow(self, t: float, reference: Any) -> None:
        """Follow this reference from now on."""
        self._reference, self._reference_t = reference, t

    def step(self, t: float) -> Memory:
        """Run one cycle at time t and return the memory; its `pressure` is the command [Pa]."""
        dt = min(max(t - self.memory.t, 0.0), LONGEST_STEP)
        fault, wanted = self._state_fault(t), None
        self._before = self.state
        if not fault and self.state is not None:
            self._balance.feed(self.state, self._valves.bounds)
            fault = self._valves.fault(t) or self._lie()
        if not fault and self._reference is not None:
            try:
                fault, wanted = self._command(t, dt)
            except (SoftRobotError, ValueError, ArithmeticError) as error:
                fault = f'the law failed: {error}'
        request = Request(wanted, fault, self._reference_t, self._stopped)
        self.memory = state_machine.advance(self.limits, self.memory, t, request)
        if self.memory.mode is not Mode.FOLLOWING:
            self._drop()
        self._valves.advance(dt, self.memory.pressure)
        return self.memory

    def _drop(self) -> None:
        self._reference, self._reference_t = None, -math.inf
        self._started, self._last_sample = False, None

    def _fade_offset(self, t: float) -> None:
        """Fade out an offset without recent measurements."""
        if self._offset is not None and self.state is not None and t - self._offset_t > _TIP_LASTS:
            passed = min(max(t - self.state.t, 0.0), LONGEST_STEP)
            self._offset = math.exp(-passed / _TIP_FADES) * self._offset

    def _fault(self, t: float) -> str:
        return self._state_fault(t) or self._valves.fault(t) or self._lie()

    def _lie(self) -> str:
        """Return why a plausible state is wrong, or ''."""
        if self._frozen.is_frozen:
            return 'state is frozen: bit-identical while the pressures move'
        wrong = self._balance.wrong
        return wrong and f'state does not follow the pressures: {wrong}'

    def _state_fault(self, t: float) -> str:
        return state_machine.state_fault(self.limits, t, self.state, self._before)

    def _command(self, t: float, dt: float) -> tuple[str, Array | None]:
        """Return (fault, desired command) for the present reference."""
        state, reference, limits = self.state, self._reference, self.limits
        if state is None or t > reference.expires:
            return 'no reference for too long', None
        sample = reference.sample(t)
        fault = sample.fault(limits, state.q, self._last_sample, dt)
        if fault:
            return fault, None
        self._last_sample = sample
        A = self.robot.actuation(state.q) if self._matrix is None else self._matrix
        last, p, k = self.memory.pressure, self._valves.pressure, self._speedup
        if not self._started:
            self.law.start(t, state, reference, A @ (p + (last - p) / k))
            self._started = True
        tau = self.law.forces(t, dt, state, reference)
        if not all_finite(tau):
            return 'forces are not finite', None
        bounds = np.empty((2, p.size))
        reachable((limits.pressure_min, limits.pressure_max), last, limits.slew * dt, p, k, bounds)
        wanted = self._allocate(A, tau, *bounds)
        self.law.applied(dt, A @ wanted)
        return '', p + k * (wanted - p)


def _constant_matrix(robot: Robot) -> Array | None:
    """Return the actuation matrix if it is the same in every pose, else None."""
    q = generic_pose(robot)
    A, other = robot.actuation(q), robot.actuation(q + 0.1 * np.sin(1.0 + np.arange(robot.nq)))
    return A if np.array_equal(A, other) else None
