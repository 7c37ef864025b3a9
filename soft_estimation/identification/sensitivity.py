"""Sensitivity of a free run to its unknowns and its start: the variational equation with exact derivatives.

    S' = A S + F,   A = d(qd, qdd)/d(q, qd),   F = dqdd/dx = M^-1 (dtau/dx - d inverse_dynamics/dx)

integrated by Lobatto IIIC over two steps of the run at a time (order 4, L-stable, as stiff arms need). A comes from
`Robot.linearize`. F is the difference of two robots, which is exact for parameters in which the forces are linear
(stiffness, damping, mass, gains).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from soft_dynamics.array import Array
from soft_dynamics.robot import Robot

from .problem import Problem, Run, Window

LOBATTO_A = (
    np.array([[2, -4, 2], [2, 5, -1], [2, 8, 2]]) / 12
)  # at the start, middle and end   [Hairer, table IV.5.12]
DELTA = 1e-3  # step of an unknown
NUDGE = 1e-6  # [rad or m] step of a coordinate, for forces that depend on the pose
FOLLOWERS = ('tip_wrench', 'end_force')


class Slopes(NamedTuple):
    """Derivatives at the samples of a window: dq/dx (n, nq, p) and dq/d(q0, qd0) (n, nq, 2 nq)."""

    parameters: Array
    start: Array


class States(NamedTuple):
    """States of a run, with the chamber pressures and their forces."""

    q: Array
    qd: Array
    qdd: Array
    u: Array
    lagged: dict[int, Array]  # derivatives of the pressures with respect to lags, by index of the lag
    actuation: Array


def slopes(problem: Problem, x: Array, robot: Robot, window: Window, run: Run) -> Slopes:
    """Return the sensitivities of a run of `problem` with the unknowns x.

    Raises SingularInertia if the accelerations are not determined along it.
    """
    n = robot.nq
    states = _states(problem, x, robot, window, run)
    A, B = robot.linearize(states.q, states.qd, np.einsum('kij,kj->ki', states.actuation, states.u))
    if any(chamber.work in FOLLOWERS for chamber in problem.description.actuation.chambers):
        A[:, n:, :n] += B[:, n:] @ _turning(robot, states)
    P, R = _propagators(np.diff(run.t[::2]), A, B @ force_slopes(problem, x, states))
    p = R.shape[2]
    S = np.zeros((len(P) + 1, 2 * n, p + 2 * n))
    S[0, :, p:] = np.eye(2 * n)
    for k in range(len(P)):
        S[k + 1] = P[k] @ S[k]
        S[k + 1, :, :p] += R[k]
    at_samples = S[:: run.every // 2, :n]
    return Slopes(at_samples[:, :, :p], at_samples[:, :, p:])


def _propagators(h: Array, A: Array, F: Array) -> tuple[Array, Array]:
    """Return (P, R) of every step h (count,), S_next = P S + R, from A and F at its start, middle and end."""
    size, p, count = A.shape[1], F.shape[2], h.size
    a = LOBATTO_A[:, :, None, None, None] * h[None, None, :, None, None]
    left, right = np.empty((count, 3 * size, 3 * size)), np.zeros((count, 3 * size, size + p))
    for i in range(3):
        rows = slice(i * size, (i + 1) * size)
        for j in range(3):
            left[:, rows, j * size : (j + 1) * size] = (i == j) * np.eye(size) - a[i, j] * A[j::2][:count]
            right[:, rows, size:] += a[i, j] * F[j::2][:count]
        right[:, rows, :size] = np.eye(size)
    solved = np.asarray(np.linalg.solve(left, right)[:, 2 * size :], np.float64)
    return solved[:, :, :size], solved[:, :, size:]


def _states(problem: Problem, x: Array, robot: Robot, window: Window, run: Run) -> States:
    times, lagged = problem.recordings[window.recording].t[window.rows], {}
    for place, slope in problem.pressure_slopes(x).items():
        part = slope[window.recording][window.rows]
        lagged[place] = np.stack([np.interp(run.t, times, column) for column in part.T], 1)
    actuation = robot.actuation(run.q)
    qdd = robot.forward_dynamics(run.q, run.qd, np.einsum('kij,kj->ki', actuation, run.u))
    return States(run.q, run.qd, qdd, run.u, lagged, actuation)


def _turning(robot: Robot, states: States) -> Array:
    """Return d(actuation(q) u)/dq, which `linearize` omits because it takes the forces as given."""
    columns = []
    for k in range(robot.nq):
        nudge = NUDGE * np.eye(robot.nq)[k]
        change = robot.actuation(states.q + nudge) - robot.actuation(states.q - nudge)
        columns.append(np.einsum('kij,kj->ki', change, states.u) / (2 * NUDGE))
    return np.stack(columns, -1)


def force_slopes(problem: Problem, x: Array, states: States) -> Array:
    """Return d(tau - inverse_dynamics)/dx (count, nq, p) at fixed motion."""
    columns = []
    for k, parameter in enumerate(problem.parameters):
        if k in states.lagged:
            columns.append(np.einsum('kij,kj->ki', states.actuation, states.lagged[k]))
            continue
        step = DELTA * np.eye(len(problem.parameters))[k]
        width = 2 * (math.sinh(DELTA) if parameter.kind == 'factor' else DELTA)
        above, below = (unbalanced(problem.robot(x + way * step), states) for way in (1, -1))
        columns.append((above - below) / width)
    return np.stack(columns, -1)


def unbalanced(robot: Robot, states: States) -> Array:
    """Return the force of the pressures minus the force that the motion needs."""
    force: Array = np.einsum('kij,kj->ki', robot.actuation(states.q), states.u)
    return force - robot.inverse_dynamics(states.q, states.qd, states.qdd)
