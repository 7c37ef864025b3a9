"""A fabric arm of discs and threads falls under its weight, and inflation curls it up.

Problem: four discs of radius 1 on threads of length 1, the first disc fixed, start at rest and almost horizontal.
Find the motion of the last disc for an inflation force F of 0, 12 and 12 pi on it. In the angles of the paper, this
motion crosses poses without inertia (beta = 0) and ends near others (psi = pi/2). It is integrated in unit quaternions,
which have no such poses. Symbols: beta thread bend, psi disc tilt [rad], F = p A [N], c centre of the last disc [m].
The paper normalises all constants, so the units are nominal. Source: [Schultz, sec. V]. Its "12000 Pa" does not fit
those constants; F between 10 and 40 shows the fall and the curl it describes (docs/theory/schultz.md).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

import soft_dynamics as sd
from soft_dynamics.commands.arguments import number

FORCES = (0.0, 12.0, 12.0 * np.pi)  # [N]


def fall(force: float, t: np.ndarray) -> tuple[sd.Trajectory, np.ndarray]:
    """Return the motion under an inflation force [N] and the centre of the last disc (samples, 3) [m]."""
    robot = sd.load('fabric_arm')
    pressure = force / robot.description.actuation.chambers[0].area
    q0 = dict.fromkeys(robot.coordinate_names, 0.0)
    q0 |= {'disc2_beta': 0.1, 'disc3_beta': 0.01, 'disc4_beta': 0.01}
    motion = robot.simulate(list(q0.values()), np.zeros(robot.nq), lambda _: [pressure], t, step=2e-3)
    X_WD = robot.pose(motion.q, 'disc4')
    radius = robot.description.segments[-1].radius
    return motion, X_WD[:, :3, 3] + radius * X_WD[:, :3, 1]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description='A fabric arm falls and curls.')
    parser.add_argument('--seconds', type=number(1.1, 1e4), default=50.0, help='simulated time [s]')
    options = parser.parse_args(argv)

    t = np.arange(0.0, options.seconds + 1e-9, 0.05)
    print('  F [N]  highest after the fall     at the end: y, z       largest |psi|')
    for force in FORCES:
        motion, c_W = fall(force, t)
        after = c_W[t > 1.0, 1]
        (_, y, z), tilt = c_W[-1], np.abs(motion.q[:, 3::5]).max()
        print(f'{force:7.2f} {after.max():21.2f} m {y:15.2f}, {z:5.2f} m {tilt:17.2f} rad')


if __name__ == '__main__':
    main()
