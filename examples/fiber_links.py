"""How many links reproduce the shape of a bending actuator?

Problem: a fiber measures 212 points, 0.8 mm apart, along a soft bending actuator after a pressure step. A cubic spline
through the ends of 2 to 5 equal links approximates the shape. The error is the largest distance from the fiber.
Symbols: s arc length [m], p pressure [Pa], error max |p_spline(s) - p_fiber(s)| [m] over all points. Source: [Godage,
sec. III-A, Fig. 4], where 5 links stay below 3 mm. The recording is not public. Here the fiber is in a chain of 20
hinges under the step of the paper; the half at the base is twice as stiff, so that the curvature is not constant.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

import soft_dynamics as sd
from soft_dynamics.commands.arguments import file_to_write, number
from soft_estimation.inverse_kinematics.fiber_shape import link_errors

HINGES, PRESSURE = 20, 240e3  # [-], [Pa]
STIFFNESS, DAMPING = (
    0.42,
    8e-3,
)  # [N m/rad], [N m s/rad] of each of five links: 0.42 gives the bend of the paper
S = 0.8e-3 * np.arange(212)  # [m]


def fine_actuator() -> sd.Robot:
    """Return the bending actuator with more and shorter links than any of the compared models."""
    finer = HINGES / 5.0
    stiffer = [2.0 if k < HINGES // 2 else 1.0 for k in range(HINGES)]
    hinges = [
        {
            'name': f'link{k + 1}',
            'type': 'hinge',
            'length': 0.17 / HINGES,
            'mass': 0.069 / HINGES,
            'material': {'stiffness': [finer * STIFFNESS * stiffer[k]], 'damping': [finer * DAMPING]},
        }
        for k in range(HINGES)
    ]
    chambers = [{'name': 'chamber', 'segment': 'all', 'gain': [2.0 / 3.0 * 0.010**3]}]
    actuation = {'pressure_max': PRESSURE, 'chambers': chambers}
    return sd.Robot.from_dict({'format': 1, 'name': 'fine', 'segments': hinges, 'actuation': actuation})


def errors_over_time(seconds: float) -> tuple[np.ndarray, dict[int, np.ndarray], np.ndarray]:
    """Return (times, {links: largest error at each time [m]}, points of the fiber (times, 212, 3))."""
    robot = fine_actuator()
    t = np.arange(0.0, seconds, 1.0 / 75.0)
    pressure = np.full((t.size, 1), PRESSURE)
    motion = robot.simulate(np.zeros(robot.nq), np.zeros(robot.nq), pressure, t)
    points = robot.centerline(motion.q, S)
    return t, {n: np.array([link_errors(S, p, n).max() for p in points]) for n in (2, 3, 4, 5)}, points


def plot(t: np.ndarray, errors: dict[int, np.ndarray], points: np.ndarray, path: str) -> None:
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.5), layout='constrained')
    left.plot(1e3 * points[::4, :, 0].T, 1e3 * points[::4, :, 1].T, color='0.6', lw=0.8)
    left.set(xlabel='x [mm]', ylabel='y [mm]', title='212 points of the fiber', aspect='equal')
    for links, error in errors.items():
        right.plot(t, 1e3 * error, label=f'{links} links')
    right.set(xlabel='t [s]', ylabel='largest error [mm]', title='spline through the ends of the links')
    right.legend()
    figure.savefig(path, dpi=150)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description='Shape of a bending actuator from few links.')
    parser.add_argument('--seconds', type=number(0.1, 1e3), default=2.0, help='simulated time [s]')
    parser.add_argument('--figure', type=file_to_write, help='PNG with shapes and errors')
    options = parser.parse_args(argv)
    t, errors, points = errors_over_time(options.seconds)
    if options.figure:
        plot(t, errors, points, options.figure)
    for links, error in errors.items():
        print(f'{links} links: largest error {1e3 * error.max():.2f} mm, mean {1e3 * error.mean():.2f} mm')


if __name__ == '__main__':
    main()
