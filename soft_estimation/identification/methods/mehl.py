"""Mass from the force under the base, then least squares on the regressor inside a particle swarm.     [Mehl, sec. V]

For one extensible arc on a force/torque sensor. The steps of the paper's figure 2:

    f_z = m f_unit(q, qd, qdd)                                                    the mass, from the base force (eq. 29)
    tau(p; x_m, y_m, T)/A = Psi (m, d_theta, d_dl, k_theta, k_dl1, k_dl3)^T / A   the rest, linear (eq. 32)

The swarm finds the shift (x_m, y_m) of the chambers and the lag T of the pressures. Unphysical sets of linear
parameters cost a constant more than any error. Unlike in the paper, the zero-phase filter of q, qd and qdd also filters
both measured forces. Filtered on one side only, the equations do not balance, and the error goes into the dampers,
which are worth about a millisecond of lag.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize

from soft_dynamics.array import Array
from soft_dynamics.description.robot_description import Description
from soft_dynamics.model.mehl_regressor import known_forces, regressor
from soft_dynamics.robot import Robot
from soft_dynamics.segments import Arc

from ...differentiate.smoothing_spline import smoothing_spline
from ...recordings.recording import Recording
from .. import particle_swarm
from ..budget import Checkpoint, Options, Report
from ..problem import Problem, follow_evenly
from ..uncertainty import summed

PARTICLES = 20
PENALTY = 1e6
FORCE_Z = 5  # row of a wrench, torque first
MASS = 0  # column of the regressor
BANDWIDTH = 40.0  # [Hz] of the filter on coordinates that are not filtered yet
FINE = {'xatol': 1e-5, 'fatol': 0.0, 'maxfev': 400}  # evaluations of the final local search
EDGE = 2.0  # periods of the filter's bandwidth to cut off at either end of a filtered recording


class _Motion(NamedTuple):
    """A filtered recording: its motion, the same filter for forces, and the rows away from the ends."""

    q: Array
    qd: Array
    qdd: Array
    smooth: Callable[[Array], Array]
    rows: slice


class _Force(NamedTuple):
    """Forces per area from a recording's pressures, as a function of shift and lag."""

    motion: _Motion
    at_zero: Array  # (n, moving coordinates, chambers)
    by_x: Array
    by_y: Array
    pressure: Array
    dt: float

    def __call__(self, shift_x: float, shift_y: float, lag: float) -> Array:
        """Return filtered forces (rows, moving coordinates) [m^2 Pa]."""
        area = self.at_zero + shift_x * self.by_x + shift_y * self.by_y
        force = np.einsum('kij,kj->ki', area, follow_evenly(self.pressure, self.dt, lag))
        return self.motion.smooth(force)[self.motion.rows]


def keys(robot: Description) -> list[str]:
    """Return the parameters of the paper's table I; swarm first.

    Raises ValueError for a robot that is not one extensible arc.
    """
    segment = robot.segments[0]
    if len(robot.segments) != 1 or not isinstance(segment, Arc) or not segment.extensible:
        raise ValueError(f'method mehl: expected a single extensible arc, got {robot.name}')
    name = segment.name
    linear = ('mass', 'damping[0:2]', 'damping[2]', 'stiffness[0:2]', 'stiffness[2]', 'cubic_stiffness[2]')
    return ['*.position[0]', '*.position[1]', 'valve_lag', '*.area', *(f'{name}.{field}' for field in linear)]


def search(problem: Problem, options: Options, report: Report, checkpoint: Checkpoint) -> Array:
    """Return x of all ten parameters. Raises ValueError if a recording has no base wrench."""
    robot, motions = Robot(problem.description), [_motion(recording) for recording in problem.recordings]
    mass, _ = mass_from_force(problem, robot, motions)
    inner = _Inner(problem, robot, motions, mass)
    total = max(1, options.trials // PARTICLES)

    def after(state: dict[str, Any]) -> None:
        checkpoint.save(state)
        report(min(1.0, state['step'] / total), f'error {min(state["costs"]):.4g}')

    bounds = problem.low[:3], problem.high[:3]
    state = checkpoint.load() or None
    x, least = particle_swarm.minimise(inner.cost, bounds, PARTICLES, total, options.seed, state, after)
    if least >= PENALTY:
        raise ValueError(
            'method mehl: no physical parameters fit these recordings; every set has a negative one'
        )
    settled = optimize.minimize(
        inner.cost, x, method='Nelder-Mead', bounds=list(zip(*bounds, strict=True)), options=FINE
    )
    linear = inner.solve(settled.x)[0]
    values = [1.0 / linear[MASS], mass, *(linear[1:] / linear[MASS])]
    rest = [p.at(value) for p, value in zip(problem.parameters[3:], values, strict=True)]
    return np.concatenate([settled.x, rest])


def mass_std(problem: Problem) -> dict[int, float]:
    """Return the standard deviation [kg] of the mass, by its index among the unknowns."""
    motions = [_motion(recording) for recording in problem.recordings]
    _, std = mass_from_force(problem, Robot(problem.description), motions)
    return {k: std for k, p in enumerate(problem.parameters) if p.targets[0].field == 'mass'}


def mass_from_force(problem: Problem, robot: Robot, motions: list[_Motion]) -> tuple[float, float]:
    """Return m that fits f_z best, and its standard deviation for correlated errors, as for the other unknowns."""
    arc: Any = robot.description.segments[0]
    bare, unit = (
        Robot(dataclasses.replace(robot.description, segments=(dataclasses.replace(arc, mass=m),)))
        for m in (0.0, 1.0)
    )
    measured, wanted = [], []
    for recording, motion in zip(problem.recordings, motions, strict=True):
        if recording.wrench_B is None:
            raise ValueError('method mehl: expected recordings with ft/wrench, got one without it')
        state = motion.q, motion.qd, motion.qdd
        known = bare.base_wrench(*state)  # of tip load and base
        wanted.append((unit.base_wrench(*state) - known)[motion.rows, FORCE_Z])
        measured.append((motion.smooth(recording.wrench_B) - known)[motion.rows, FORCE_Z])
    f, f_unit = np.concatenate(measured), np.concatenate(wanted)
    square = float(f_unit @ f_unit)
    mass = float(f @ f_unit) / square
    if not mass > 0.0:
        raise ValueError(
            f'method mehl: the base force gives a mass of {mass:.3g} kg; check its sign (force on the robot)'
        )
    pulls = [(u * (f - mass * u))[:, None] for f, u in zip(measured, wanted, strict=True)]
    return mass, float(np.sqrt(summed(pulls)[0, 0])) / square


class _Inner:
    """The inner cascade: linear parameters for given shift and lag."""

    def __init__(self, problem: Problem, robot: Robot, motions: list[_Motion], mass: float) -> None:
        self._nonlinear, rows = problem.parameters[:3], problem.moving
        Psi = [regressor(robot, m.q, m.qd, m.qdd)[m.rows, rows[:, None], np.arange(6)] for m in motions]
        scale = np.array([mass, 1.0, 1.0, 1.0, 1.0, 1.0])
        self._Psi = np.concatenate(Psi).reshape(-1, 6) * scale
        known = [known_forces(robot, m.q, m.qd, m.qdd)[m.rows, rows] for m in motions]
        self._Psi[:, MASS] += np.concatenate(known).ravel()  # divided by A, like the mass
        self._inverse = np.linalg.pinv(self._Psi)
        self._forces = [
            _force(robot, recording, motion, rows)
            for recording, motion in zip(problem.recordings, motions, strict=True)
        ]

    def solve(self, x: Array) -> tuple[Array, float]:
        """Return ((1, d_theta, d_dl, k_theta, k_dl1, k_dl3)/A, rms error of tau/A [m^2 Pa])."""
        shift_x, shift_y, lag = (p.value(now) for p, now in zip(self._nonlinear, x, strict=True))
        shift_x, shift_y = shift_x - self._nonlinear[0].shown, shift_y - self._nonlinear[1].shown
        force = np.concatenate([of(shift_x, shift_y, lag).ravel() for of in self._forces])
        linear = self._inverse @ force
        return linear, float(np.sqrt(np.mean((self._Psi @ linear - force) ** 2)))

    def cost(self, x: Array) -> float:
        """Return the error, plus a penalty for unphysical parameters."""
        linear, error = self.solve(x)
        return error + PENALTY * bool(np.any(linear[:-1] <= 0.0))


def _motion(recording: Recording) -> _Motion:
    """Return the recording filtered; its rates are recomputed if it was not filtered yet."""
    t, bandwidth = recording.t, recording.bandwidth or BANDWIDTH

    def smooth(values: Array) -> Array:
        return np.asarray(smoothing_spline(t, values, bandwidth)(t))

    edge = min(int(np.ceil(EDGE / bandwidth / recording.dt)), t.size // 4)
    rows = slice(edge, t.size - edge)
    if recording.bandwidth:
        return _Motion(recording.q, recording.qd, recording.qdd, smooth, rows)
    spline = smoothing_spline(t, recording.q, bandwidth)
    return _Motion(spline(t), spline(t, 1), spline(t, 2), smooth, rows)


def _force(robot: Robot, recording: Recording, motion: _Motion, rows: Any) -> _Force:
    areas = []
    for shift in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0)):
        chambers = tuple(
            dataclasses.replace(c, area=1.0, position=(c.position[0] + shift[0], c.position[1] + shift[1]))
            for c in robot.description.actuation.chambers
        )
        actuation = dataclasses.replace(robot.description.actuation, chambers=chambers)
        moved = Robot(dataclasses.replace(robot.description, actuation=actuation))
        areas.append(moved.actuation(motion.q)[:, rows])
    zero, by_x, by_y = areas
    return _Force(motion, zero, by_x - zero, by_y - zero, recording.pressure, recording.dt)
