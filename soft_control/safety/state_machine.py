"""What stands between any controller and the valves: a state machine as pure functions.

    memory = advance(limits, memory, t, request)        memory.pressure is what may be commanded

The diagram and the table of rules are in docs/control.md. Times are seconds of one monotonic clock.
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

_SHORTEST_STEP = 0.005  # [s] samples closer in time may differ as if they were this far apart
_ROTATION = 1e-6  # [-] by how much R R^T of a rotation may differ from one
_NONE: Array = np.empty(0)
_THAT = {NOT_FINITE: 'is not finite', JUMPS: 'jumps', OTHER_SIZE: "is another robot's"}


class Mode(Enum):
    """IDLE: vented, waiting. FOLLOWING: a controller decides. VENTING: on the ramp. STOPPED: until activated anew."""

    IDLE = 'idle'
    FOLLOWING = 'following'
    VENTING = 'venting'
    STOPPED = 'stopped'


@dataclass(frozen=True, kw_only=True)
class Limits(ChamberLimits):
    """What the chambers bear, and what is plausible of the robot."""

    state_timeout: float  # [s]
    plausible: Plausible

    @classmethod
    def of(cls, robot: Robot) -> Limits:
        """The limits that a robot file states."""
        return cls(
            **chamber_limits(robot.description),
            state_timeout=robot.description.safety.state_timeout,
            plausible=Plausible.of(robot),
        )


class State(NamedTuple):
    """An estimate: the time at which it holds, coordinates, rates; and where the tip is, if that is measured."""

    t: float
    q: Array
    qd: Array
    X_WT: Array | None = None  # None: as the model has it


class Request(NamedTuple):
    """What a controller asks for in one cycle."""

    wanted: Array | None = None  # [Pa] None: there is no reference to follow
    fault: str = ''  # why nothing may be followed; '' if all is well
    reference_t: float = -math.inf  # [s] when the reference came in
    stop: bool = False  # emergency


class Memory(NamedTuple):
    """All that the state machine remembers from one cycle to the next."""

    mode: Mode
    pressure: Array  # [Pa] put out last
    t: float  # [s] of the last cycle
    fault_t: float = -math.inf  # [s] of the last fault: only a newer reference is followed
    reason: str = ''  # why it does not follow


def begin(pressure: Array, t: float) -> Memory:
    """Memory at activation: zero pressures, or those that another controller commands at this moment."""
    return Memory(Mode.VENTING if pressure.any() else Mode.IDLE, pressure, t, reason='no reference yet')


def advance(limits: Limits, before: Memory, t: float, request: Request) -> Memory:
    """One cycle: decide the mode, then move the pressures at the rate that it allows, within the limits."""
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
    """(mode, reason, time of the last fault); the first thing that speaks against following wins."""
    if request.stop or before.mode is Mode.STOPPED:
        return Mode.STOPPED, 'emergency stop', t
    fault = request.fault
    if not fault and request.wanted is not None:
        if request.wanted.shape != before.pressure.shape:
            fault = f'{request.wanted.size} pressures for {before.pressure.size} chambers'
        elif not all_finite(request.wanted):
            fault = 'pressures that are not finite'
    if fault:
        return Mode.VENTING, fault, t
    if request.wanted is None or not request.reference_t > before.fault_t:
        reason = 'no reference yet' if math.isinf(before.fault_t) else f'{before.reason}'
        return Mode.VENTING, reason, before.fault_t
    return Mode.FOLLOWING, '', before.fault_t


def state_fault(limits: Limits, t: float, state: State | None, before: State | None) -> str:
    """Say why an estimate cannot be trusted at time t; '' if it can. `before` is the estimate ahead of it."""
    if state is None:
        return 'no state yet'
    if not abs(t - state.t) <= limits.state_timeout:
        return f'no state for {limits.state_timeout:g} s'
    if state.qd.size != state.q.size:
        fault = f'that {_THAT[OTHER_SIZE]}'
    elif before is None:
        fault = motion_fault(limits.plausible, state.q, state.qd)
    else:
        fault = motion_fault(limits.plausible, state.q, state.qd, before.q, state.t - before.t)
    return fault and f'state {fault}'


def joint_reference_fault(limits: Limits, q: Array, before: Array | None, dt: float) -> str:
    """Say why coordinates cannot be followed; '' if they can. Those `before` were sampled dt seconds ago."""
    fault = motion_fault(limits.plausible, q, before=_NONE if before is None else before, dt=dt)
    return fault and f'reference {fault}'


def motion_fault(
    plausible: Plausible, q: Array, qd: Array = _NONE, before: Array = _NONE, dt: float = 0.0
) -> str:
    """Say what of coordinates, rates or the way from those dt seconds before the robot cannot have; '' if nothing."""
    names, centre, most, fastest = plausible[:4]
    wrong, k = first_wrong((centre, most, fastest), q, qd, before, max(dt, _SHORTEST_STEP))
    if wrong == NOTHING:
        return ''
    if wrong in _THAT:
        return f'that {_THAT[wrong]}'
    if wrong == TOO_FAR:
        away = f' from {centre[k]:g}' if centre[k] else ''
        return f'with {names[k]} more than {most[k]:g}{away}'
    return f'with a rate of {names[k]} beyond {fastest[k]:g}'


def pose_reference_fault(limits: Limits, q: Array, X_WT: Array, before: Array | None, dt: float) -> str:
    """Say why a pose of the tip cannot be followed by a robot at q; '' if it can. `before` was dt seconds ago."""
    R_WT, p_WT, plausible = X_WT[:3, :3], X_WT[:3, 3], limits.plausible
    if not np.isfinite(X_WT).all():
        return 'reference that is not finite'
    if np.max(np.abs(R_WT @ R_WT.T - np.eye(3))) > _ROTATION or np.linalg.det(R_WT) < 0.0:
        return 'reference whose orientation is no rotation'
    if not math.dist(p_WT, plausible.p_WB(q)) <= plausible.tip:
        return f'reference further than {plausible.tip:.3g} m from the base'
    if before is not None:
        turn, way = np.split(pose_error(X_WT, before), 2)
        passed = max(dt, _SHORTEST_STEP)
        if (
            math.hypot(*way) > plausible.tip_speed * passed
            or math.hypot(*turn) > plausible.turn_rate * passed
        ):
            return 'reference that jumps'
    return ''
