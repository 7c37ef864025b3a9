"""The reading of a force/torque sensor under a soft actuator, and the mass of the actuator from it.

Problem: chamber 1 opens to 75 kPa through a valve with 7 ms lag. Compute the wrench on the base from the motion, and
the mass from the z force with sensor noise. The base does not move; the model has its six freedoms only to give the
forces on them. The z force is linear in the mass and depends on no other parameter,

    f_z = m (z'' - g_z)  with z'' the acceleration of the centre of gravity            one-column regressor

Symbols: q = (base, dx, dy, dl) [m], W = (n, f) wrench on the robot at its base, angular first [N m, N].
Source: [Mehl, eq. 16, 28 and 29-31, Table I]; the sensor is an ATI Nano17.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq

import soft_dynamics as sd
from soft_dynamics.commands.arguments import number
from soft_dynamics.model.mehl_regressor import PARAMETERS, regressor

PRESSURE = 75e3  # [Pa]
BASE_Z = 2  # row of the z force of the base in the regressor
NOISE = 0.02  # [N] standard deviation of the z force, our choice


def standing(robot: sd.Robot) -> np.ndarray:
    """Return the rest pose without pressure: the actuator sags a little under its weight."""
    still, length_only = np.zeros(robot.nq), np.eye(robot.nq)[-1]
    sag = brentq(lambda dl: robot.inverse_dynamics(dl * length_only, still, still)[-1], -0.02, 0.0)
    return sag * length_only


def step_response(robot: sd.Robot, seconds: float) -> tuple[sd.Trajectory, np.ndarray]:
    """Return the motion after chamber 1 opens and its accelerations (samples, nq)."""
    t = np.arange(0.0, seconds, 1e-3)
    command = np.array([PRESSURE, 0.0, 0.0])
    motion = robot.simulate(standing(robot), np.zeros(robot.nq), lambda _: command, t, valve=True)
    tau = np.einsum('kij,kj->ki', robot.actuation(motion.q), motion.inputs)
    return motion, robot.forward_dynamics(motion.q, motion.qd, tau)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description='Base wrench and mass of a soft actuator.')
    parser.add_argument('--seconds', type=number(0.1, 1e3), default=1.0, help='simulated time [s]')
    options = parser.parse_args(argv)

    robot = sd.load('floating_actuator')
    motion, qdd = step_response(robot, options.seconds)
    W = robot.base_wrench(motion.q, motion.qd, qdd)

    column = regressor(robot, motion.q, motion.qd, qdd)[:, BASE_Z, PARAMETERS.index('mass')]  # [N/kg]
    measured = W[:, 5] + np.random.default_rng(2).normal(0.0, NOISE, column.size)
    mass = column @ measured / (column @ column)

    for name, unit, w in zip(('n_y', 'f_x', 'f_z'), ('N m', 'N', 'N'), W[:, [1, 3, 5]].T, strict=True):
        print(f'{name}: from {w.min():+.4f} to {w.max():+.4f} {unit}, at the end {w[-1]:+.4f} {unit}')
    true_mass = robot.description.segments[0].mass
    print(f'mass from the z force: {mass:.4f} kg; the robot file says {true_mass} kg')


if __name__ == '__main__':
    main()
