"""One state per Python call and many states per compiled loop, on the chain of 16 joints and on three arcs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from benchmarks.chains import State, arc_robot, pinocchio_model, puj_robot, random_state
from benchmarks.measure import Case, Settings, take_turns
from benchmarks.peers import PinocchioLoop, mujoco_case, pinocchio_library
from benchmarks.table import Figure, Row, Target
from soft_dynamics.array import Array
from soft_dynamics.kernels import batch_calls
from soft_dynamics.model.assembly import assemble
from soft_dynamics.robot import Robot

SEGMENTS = 4
STATES = 1000  # of a compiled loop; they fit the cache
CALL, LOOP = 'Python call', 'compiled loop'


class Subject(NamedTuple):
    """A robot with motions (count, nq) and their forces."""

    robot: Robot
    state: State
    tau: Array

    def of_one(self, algorithm: str) -> list[Array]:
        """Return the arguments of inverse or forward dynamics for the first state."""
        q, qd, qdd = (array[0].copy() for array in self.state)
        return [q, qd, qdd if algorithm == 'inverse' else self.tau[0].copy()]

    def call(self, algorithm: str) -> Case:
        return Case(getattr(self.robot, f'{algorithm}_dynamics'), self.of_one(algorithm))

    def loop(self, algorithm: str) -> Case:
        """Return a loop of the kernel over all states, without the checks of the public call."""
        (q, qd, qdd), chain = self.state, assemble(self.robot.description).elements
        count, out, no_wrench = len(q), np.zeros_like(q), np.zeros((len(q), 0, 6))
        if algorithm == 'inverse':
            return Case(
                batch_calls.inverse_many, (chain, q, qd, qdd, no_wrench, out, np.empty((count, 6))), count
            )
        return Case(
            batch_calls.forward_many, (chain, q, qd, self.tau, no_wrench, out, np.empty(count, int)), count
        )


def subject(robot: Robot, count: int) -> Subject:
    state = random_state(robot, count)
    return Subject(robot, state, robot.inverse_dynamics(*state))


@lru_cache
def puj() -> Subject:
    """Return the chain of 16 joints."""
    return subject(puj_robot(SEGMENTS), STATES)


def inverse_call(settings: Settings) -> list[Row]:
    return _call(settings, 'inverse', pin.rnea, 'Pinocchio rnea', Target(1.0))


def forward_call(settings: Settings) -> list[Row]:
    return _call(settings, 'forward', pin.aba, 'Pinocchio aba', Target(0.8))


def _call(settings: Settings, algorithm: str, peer: Any, peer_name: str, target: Target) -> list[Row]:
    model, args = pinocchio_model(SEGMENTS), puj().of_one(algorithm)
    theirs = Case(peer, (model, model.createData(), *args))
    ours, peers = take_turns([puj().call(algorithm), theirs], settings.repetitions)
    name, what = f'{algorithm}.call', f'{algorithm}, 16 joints, {CALL}'
    return [Row.against(name, what, ours, peers, f'{peer_name}, Python', target)]


def inverse_loop(settings: Settings) -> list[Row]:
    return _loop(settings, 'inverse', (Target(0.15), None))


def forward_loop(settings: Settings) -> list[Row]:
    return _loop(settings, 'forward', (None, Target(0.3)))


def _loop(settings: Settings, algorithm: str, targets: Sequence[Target | None]) -> list[Row]:
    """Compare the kernel, and the public call of a batch, with Pinocchio in C++ and MuJoCo in C.

    If the C++ loop cannot be built, its cost is estimated from the growth of Python calls from 4 to 16 joints.
    """
    me = puj()
    given = me.state.qdd if algorithm == 'inverse' else me.tau
    public = Case(getattr(me.robot, f'{algorithm}_dynamics'), (me.state.q, me.state.qd, given), STATES)
    found = np.empty_like(given)
    cases = [me.loop(algorithm), public, mujoco_case(f'mj_{algorithm}', SEGMENTS, me.state)]
    library = pinocchio_library(settings.say, build=not settings.quick)
    if library:
        cases.append(PinocchioLoop(library, SEGMENTS).case(algorithm, me.state.q, me.state.qd, given, found))
        kernel, public_call, mj, pinocchio = take_turns(cases, settings.repetitions)
        label = 'C++'
    else:
        samples = take_turns([*cases, *_calls_of_two_lengths(algorithm)], settings.repetitions)
        kernel, public_call, mj, short, full = samples
        pinocchio = (full - short) * SEGMENTS / (SEGMENTS - 1)
        label = 'C++, estimated'
    name, what = f'{algorithm}.loop', f'{algorithm}, 16 joints'
    theirs = f'Pinocchio {"rnea" if algorithm == "inverse" else "aba"}, {label}'
    return [
        Row.against(name, f'{what}, {LOOP}', kernel, pinocchio, theirs, targets[0]),
        Row.against(name, f'{what}, {LOOP}', kernel, mj, f'MuJoCo mj_{algorithm}, C', targets[1]),
        Row.against(name, f'{what}, Python call for {STATES} states', public_call, pinocchio, theirs),
    ]


def _calls_of_two_lengths(algorithm: str) -> list[Case]:
    """Return Pinocchio's call for one segment and for all segments; the difference contains no call overhead."""
    cases = []
    for segments in (1, SEGMENTS):
        model = pinocchio_model(segments)
        args = [array[: 4 * segments] for array in puj().of_one(algorithm)]
        cases.append(
            Case(pin.rnea if algorithm == 'inverse' else pin.aba, (model, model.createData(), *args))
        )
    return cases


def linearize(settings: Settings) -> list[Row]:
    model = pinocchio_model(SEGMENTS)
    args = puj().of_one('forward')
    theirs = Case(pin.computeABADerivatives, (model, model.createData(), *args))
    ours, peers = take_turns([Case(puj().robot.linearize, args), theirs], settings.repetitions)
    what, peer_name = f'linearize, 16 joints, {CALL}', 'Pinocchio computeABADerivatives, Python'
    return [Row.against('linearize', what, ours, peers, peer_name, Target(1.0))]


def arcs(placement: str, limit: float) -> Callable[[Settings], list[Row]]:
    """Return the benchmark of both dynamics of the pneumatic arm with a mass placement; limit [s]."""

    def measure(settings: Settings) -> list[Row]:
        arm = subject(arc_robot(3, placement), 1)
        algorithms = 'inverse', 'forward'
        samples = take_turns([arm.call(algorithm) for algorithm in algorithms], settings.repetitions)
        kind = placement if placement == 'lumped' else f'{placement}, 5 points'
        return [
            Row(f'arcs.{placement}', what, Figure.of(sample, 's'), target=Target(limit, 's'))
            for algorithm, sample in zip(algorithms, samples, strict=True)
            for what in [f'{algorithm}, 3 arcs and links, {kind}, {CALL}']
        ]

    return measure


def agreement() -> dict[str, float]:
    """Return the largest differences between our results and the peers' on the chain of 16 joints."""
    me, model = puj(), pinocchio_model(SEGMENTS)
    data, count = model.createData(), 100
    states = [tuple(array[k] for array in (*me.state, me.tau)) for k in range(count)]
    rnea = max(abs(pin.rnea(model, data, q, qd, qdd) - tau).max() for q, qd, qdd, tau in states)
    ours = me.robot.forward_dynamics(me.state.q[:count], me.state.qd[:count], me.tau[:count])
    aba = max(
        abs(pin.aba(model, data, q, qd, tau) - ours[k]).max() for k, (q, qd, _, tau) in enumerate(states)
    )
    q, qd, _, tau = states[0]
    A, B = me.robot.linearize(q, qd, tau)
    n = me.robot.nq
    pin.computeABADerivatives(model, data, q, qd, tau)
    theirs = np.hstack([data.ddq_dq, data.ddq_dv, data.Minv])
    lower = np.hstack([A[n:], B[n:]])
    _, mj = mujoco_case('mj_inverse', SEGMENTS, me.state).call(1)
    return {
        'rnea': float(rnea),
        'aba': float(aba),
        'computeABADerivatives': float(abs(lower - theirs).max() / abs(theirs).max()),
        'mj_inverse': float(abs(mj.qfrc_inverse - me.tau[0]).max()),
    }
