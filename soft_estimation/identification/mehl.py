"""Mass from the force under the base, then least squares on the regressor inside a particle swarm.     [Mehl, sec. V]

For one extensible arc on a force/torque sensor. The steps of the paper's figure 2:

    f_z = m f_unit(q, qd, qdd)                                                    the mass, from the base force (eq. 29)
    tau(p; x_m, y_m, T)/A = Psi (m, d_theta, d_dl, k_theta, k_dl1, k_dl3)^T / A   the rest, linear (eq. 32)

with the shift (x_m, y_m) of the chambers and the lag T of the pressures found by the swarm; a set of linear parameters
that cannot be physical costs a constant more than any error.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from soft_dynamics.arguments import Array
from soft_dynamics.description import Arc, Description
from soft_dynamics.regressor import regressor
from soft_dynamics.robot import Robot

from . import swarm
from .options import Checkpoint, Options, Report
from .problem import Problem, follow_evenly

PARTICLES = 20
PENALTY = 1e6
FORCE_Z = 5  # row of a wrench, torque first
MASS = 0  # column of the regressor


class _Step(NamedTuple):
    """What the inner least squares needs of a recording: regressor, and forces per area as a function of the shift."""

    Psi: Array  # (n, rows, 6)
    at_zero: Array  # (n, rows, chambers)
    by_x: Array
    by_y: Array
    pressure: Array
    dt: float


def keys(robot: Description) -> list[str]:
    """The paper's table I; swarm first.

    Raises ValueError for a robot that is not one extensible arc.
    """
    segment = robot.segments[0]
    if len(robot.segments) != 1 or not isinstance(segment, Arc) or not segment.extensible:
        raise ValueError(f'method mehl: expected a single extensible arc, got {robot.name}')
    name = segment.name
    linear = ('mass', 'damping[0:2]', 'damping[2]', 'stiffness[0:2]', 'stiffness[2]', 'cubic_stiffness[2]')
    return ['*.position[0]', '*.position[1]', 'valve_lag', '*.area', *(f'{name}.{field}' for field in linear)]


def search(problem: Problem, options: Options, report: Report, checkpoint: Checkpoint) -> Array:
    """x of all ten parameters. Raises ValueError if a recording has no base wrench."""
    robot = Robot(problem.description)
    mass = mass_from_force(problem, robot)
    steps = [_step(problem, robot, k) for k in range(len(problem.recordings))]
    total = max(1, options.trials // PARTICLES)

    def cost(x: Array) -> float:
        return _inner(problem, steps, mass, x)[1]

    def after(state: dict[str, Any]) -> None:
        checkpoint.save(state)
        report(min(1.0, state['step'] / total), f'error {min(state["costs"]):.4g}')

    bounds = problem.low[:3], problem.high[:3]
    x, least = swarm.minimise(cost, bounds, PARTICLES, total, options.seed, checkpoint.load() or None, after)
    if least >= PENALTY:
        raise ValueError(
            'method mehl: no physical parameters fit these recordings; every set has a negative one'
        )
    linear = _inner(problem, steps, mass, x)[0]
    values = [1.0 / linear[MASS], mass, *(linear[1:] / linear[MASS])]
    rest = [p.at(value) for p, value in zip(problem.parameters[3:], values, strict=True)]
    return np.concatenate([x, rest])


def mass_from_force(problem: Problem, robot: Robot) -> float:
    """m that fits f_z best."""
    segment = dataclasses.replace(robot.description.segments[0], mass=1.0)
    unit = Robot(dataclasses.replace(robot.description, segments=(segment,), tip_load=0.0))
    measured, wanted = [], []
    for recording in problem.recordings:
        if recording.wrench_B is None:
            raise ValueError('method mehl: expected recordings with ft/wrench, got one without')
        wanted.append(unit.base_wrench(recording.q, recording.qd, recording.qdd)[:, FORCE_Z])
        measured.append(recording.wrench_B[:, FORCE_Z])
    f, f_unit = np.concatenate(measured), np.concatenate(wanted)
    mass = float(f @ f_unit / (f_unit @ f_unit))
    if not mass > 0.0:
        raise ValueError(
            f'method mehl: the base force gives a mass of {mass:.3g} kg; is its sign that on the robot?'
        )
    return mass


def _step(problem: Problem, robot: Robot, k: int) -> _Step:
    recording, rows = problem.recordings[k], problem.moving
    Psi = regressor(robot, recording.q, recording.qd, recording.qdd)[:, rows]
    areas = []
    for shift in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0)):
        chambers = tuple(
            dataclasses.replace(c, area=1.0, position=(c.position[0] + shift[0], c.position[1] + shift[1]))
            for c in robot.description.actuation.chambers
        )
        actuation = dataclasses.replace(robot.description.actuation, chambers=chambers)
        moved = Robot(dataclasses.replace(robot.description, actuation=actuation))
        areas.append(moved.actuation(recording.q)[:, rows])
    return _Step(Psi, areas[0], areas[1] - areas[0], areas[2] - areas[0], recording.pressure, recording.dt)


def _inner(problem: Problem, steps: list[_Step], mass: float, x: Array) -> tuple[Array, float]:
    """((1, d_theta, d_dl, k_theta, k_dl1, k_dl3)/A, rms error of tau/A [m^2 Pa]) for a place of the swarm."""
    shift_x, shift_y, lag = (p.value(now) for p, now in zip(problem.parameters[:3], x, strict=True))
    left, right = [], []
    for step in steps:
        area = step.at_zero + (shift_x - problem.parameters[0].shown) * step.by_x
        area = area + (shift_y - problem.parameters[1].shown) * step.by_y
        force = np.einsum('kij,kj->ki', area, follow_evenly(step.pressure, step.dt, lag))
        Psi = step.Psi * np.array([mass, 1.0, 1.0, 1.0, 1.0, 1.0])
        left.append(Psi.reshape(-1, 6))
        right.append(force.ravel())
    Psi, force = np.concatenate(left), np.concatenate(right)
    linear = np.linalg.lstsq(Psi, force, rcond=None)[0]
    error = float(np.sqrt(np.mean((Psi @ linear - force) ** 2)))
    return linear, error + PENALTY * bool(np.any(linear[:-1] <= 0.0))
