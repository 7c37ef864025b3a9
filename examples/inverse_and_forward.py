"""Inverse dynamics and forward dynamics of one state and of a batch.

Problem: for the four-segment honeycomb arm in a random state (q, qd, qdd), find the generalised forces

    tau = M(q) qdd + c(q, qd) + g(q) + k(q) + d(q, qd)          one pass out, one pass in

term by term and in one call. Then compute qdd = forward_dynamics(q, qd, tau), which does not form M. Do the same for a
batch of states in one call. Symbols: q joint angles [rad], tau torques [N m]; M, c, g, k, d are inertia, velocity
products, weight, springs and dampers. Source: [Wang, eq. 8, algorithm 1], [Featherstone, ch. 7]; docs/theory/chain.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

import soft_dynamics as sd
from soft_dynamics.commands.arguments import number


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description='Inverse and forward dynamics of one state and of a batch.')
    parser.add_argument('--robot', default='honeycomb_arm', help='shipped robot or path of a robot file')
    parser.add_argument('--states', type=number(1, 1e7, int), default=1000, help='size of the batch')
    options = parser.parse_args(argv)

    try:
        robot = sd.load(options.robot)
    except (OSError, sd.SoftRobotError) as error:
        parser.error(f'--robot: {error}')
    rng = np.random.default_rng(1)
    q, qd, qdd = rng.uniform(-1.0, 1.0, (3, robot.nq))

    terms = {
        'inertia': robot.mass_matrix(q) @ qdd,
        'velocity': robot.coriolis(q, qd),
        'weight': robot.gravity(q),
        'springs': robot.elastic(q),
        'dampers': robot.damping(q, qd),
    }
    tau = robot.inverse_dynamics(q, qd, qdd)
    print(f'{"[N m]":18}' + ''.join(f'{name:>10}' for name in terms) + f'{"sum":>10}{"one call":>10}')
    for row in zip(robot.coordinate_names, *terms.values(), sum(terms.values()), tau, strict=True):
        print(f'{row[0]:18}' + ''.join(f'{value:10.4f}' for value in row[1:]))

    q, qd, qdd = rng.uniform(-1.0, 1.0, (3, options.states, robot.nq))
    back = robot.forward_dynamics(q, qd, robot.inverse_dynamics(q, qd, qdd))
    print(
        f'{options.states} states there and back: largest difference {np.abs(back - qdd).max():.1e} rad/s^2'
    )


if __name__ == '__main__':
    main()
