"""Safety state machine between a control law and the valves, as pure functions.

    memory = advance(limits, memory, t, request)        memory.pressure is the safe command

docs/control/safety.md has the diagram and the rules. Times are seconds of one monotonic clock.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from soft_dynamics.array import Array
from soft_dynamics.geometry.se3 import pose_error
from soft_dynamics.pressure_limits import ChamberLimits, chamber_limits
from soft_dynamics.robot import Robot

from .kernels import (
    JUMPS,
    NOT_FINITE,
    NOTHING,
    OTHER_SIZE,
    TOO_FAR,
    all_finite,
    approach,
    first_wrong,
)
from .plausibility import Plausible

_SHORTEST_STEP = 0.005  # [s] shorter intervals count as this long in the checks for jumps
_ROTATION = 1e-6  # [-] tolerance of R R^T = 1
_NONE: Array = np.empty(0)
_THAT = {NOT_FINITE: 'is not finite', JUMPS: 'jumps', OTHER_SIZE: 'belongs to another robot'}


class Mode(Enum):
    """IDLE: vented, waiting. FOLLOWING: the law commands. VENTING: on the ramp. STOPPED: until reactivated."""

    IDLE = 'idle'
    FOLLOWING = 'following'
    VENTING = 'venting'
    STOPPED = 'stopped'


@dataclass(frozen=True, kw_only=True)
class Limits(ChamberLimits):
    """Limits of the chambers and plausible states of the robot."""

    state_timeout: float  # [s]
    plausible: Plausible

    @classmethod
    def of(cls, robot: Robot) -> Limits:
        """Return the limits from the robot file."""
        return cls(
            **chamber_limits(robot.description),
            state_timeout=robot.description.safety.state_timeout,
            plausible=Plausible.of(robot),
        )


class State(NamedTuple):
    """A state estimate: time, coordinates, rates and, if measured, the pose of the tip."""

    t: float
    q: Array
    qd: Array
    X_WT: Array | None = None  # None: use the model


class Request(NamedTuple):
    """Input of one cycle."""

    wanted: Array | None = None  # [Pa] None: no reference
    fault: str = ''  # why the controller must not follow, or ''
    reference_t: float = -math.inf  # [s] arrival of the reference
    stop: bool = False  # emergency stop


class Memory(NamedTuple):
    """State of the state machine between cycles."""

    mode: Mode
    pressure: Array  # [Pa] last command
    t: float  # [s] of the last cycle
    fault_t: float = -math.inf  # [s] last fault; the controller follows only newer references
    reason: str = ''  # why it does not follow, or ''


def begin(pressure: Array, t: float) -> Memory:
    """Return the memory at activation, with zero pressures or those of the controller before."""
    return Memory(Mode.VENTING if pressure.any() else Mode.IDLE, pressure, t, reason='no reference yet')


def advance(limits: Limits, before: Memory, t: float, request: Request) -> Memory:
    """Run one cycle: decide the mode, then move the pressures within its rate and the limits."""
    mode, reason, fault_t = _decide(before, t, request)
    wanted = request.wanted if mode is Mode.FOLLOWING else None
    reach = limits.reach(t - before.t, wanted is not None)
    target = np.zeros_like(before.pressure) if wanted is None else wanted
    pressure = np.empty_like(target)
    approach(before.pressure, target, reach, limits.pressure_min, limits.pressure_max, pressure)
    if mode is Mode.VENTING and not pressure.any():
        mode = Mode.IDLE
    return Memory(mode, pressure, t, fault_t, reason)


def _decide(before: Memory, t: float, request: Request) -> tuple[Mode, str, float]:
    """Return (mode, reason, time of the last fault); the first fault wins."""
    if request.stop or before.mode is Mode.STOPPED:
        return Mode.STOPPED, 'emergency stop', t
    fault = request.fault
    if not fault and request.wanted is not None:
        if request.wanted.shape != before.pressure.shape:
            fault = f'{request.wanted.size} pressures for {before.pressure.size} chambers'
        elif not all_finite(request.wanted):
            fault = 'pressures are not finite'
    if fault:
        return Mode.VENTING, fault, t
    if request.wanted is None or not request.reference_t > before.fault_t:
        reason = 'no reference yet' if math.isinf(before.fault_t) else before.reason
        return Mode.VENTING, reason, before.fault_t
    return Mode.FOLLOWING, '', before.fault_t


def state_fault(limits: Limits, t: float, state: State | None, before: State | None) -> str:
    """Return why an estimate cannot be trusted at time t, or ''. `before` is the previous estimate."""
    if state is None:
        return 'no state yet'
    if not abs(t - state.t) <= limits.state_timeout:
        return f'no state for {limits.state_timeout:g} s'
    if state.qd.size != state.q.size:
        fault = _THAT[OTHER_SIZE]
    elif before is None:
        fault = motion_fault(limits.plausible, state.q, state.qd)
    else:
        fault = motion_fault(limits.plausible, state.q, state.qd, before.q, state.t - before.t)
    return fault and f'state {fault}'


def joint_reference_fault(limits: Limits, q: Array, before: Array | None, dt: float) -> str:
    """Return why coordinates cannot be followed, or ''. `before`: those sampled dt seconds ago."""
    fault = motion_fault(limits.plausible, q, before=_NONE if before is None else before, dt=dt)
    return fault and f'reference {fault}'


def motion_fault(
    plausible: Plausible, q: Array, qd: Array = _NONE, before: Array = _NONE, dt: float = 0.0
) -> str:
    """Return which coordinate, rate or step from `before` in dt seconds is impossible for the robot, or ''."""
    names, centre, most, fastest = plausible[:4]
    wrong, k = first_wrong((centre, most, fastest), q, qd, before, max(dt, _SHORTEST_STEP))
    if wrong == NOTHING:
        return ''
    if wrong in _THAT:
        return _THAT[wrong]
    if wrong == TOO_FAR:
        away = f' from {centre[k]:g}' if centre[k] else ''
        return f'has {names[k]} more than {most[k]:g}{away}'
    return f'has a rate of {names[k]} beyond {fastest[k]:g}'


def pose_reference_fault(limits: Limits, q: Array, X_WT: Array, before: Array | None, dt: float) -> str:
    """Return why a robot at q cannot follow a pose of the tip, or ''. `before`: the pose dt seconds ago."""
    R_WT, p_WT, plausible = X_WT[:3, :3], X_WT[:3, 3], limits.plausible
    if not np.isfinite(X_WT).all():
        return 'reference is not finite'
    if np.max(np.abs(R_WT @ R_WT.T - np.eye(3))) > _ROTATION or np.linalg.det(R_WT) < 0.0:
        return 'reference orientation is not a rotation'
    if not math.dist(p_WT, plausible.p_WB(q)) <= plausible.tip:
        return f'reference is more than {plausible.tip:.3g} m from the base'
    if before is not None:
        turn, way = np.split(pose_error(X_WT, before), 2)
        passed = max(dt, _SHORTEST_STEP)
        if (
            math.hypot(*way) > plausible.tip_speed * passed
            or math.hypot(*turn) > plausible.turn_rate * passed
        ):
            return 'reference jumps'
    return ''
