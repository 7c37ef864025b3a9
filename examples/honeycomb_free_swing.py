"""Free swing of a honeycomb arm, without and with a load at its tip.

Problem: all four segments of the hanging arm start with the same bend in the plane x = 0, without pressure. Find
frequency and decay of the swing without load and with 500 g at the tip. As in the identification of the paper, the
sideways path of the tip is fitted by a exp(-b t) sin(w t - c). Symbols: theta2 bend of a segment about x [rad], b decay
[1/s], w angular frequency [rad/s]. Source: [Wang, sec. IV-A.3 and IV-B.2], with the masses, K and D of the paper.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from scipy.optimize import curve_fit

import soft_dynamics as sd
from soft_dynamics.commands.arguments import number

BEND = -0.3  # [rad] of each segment at the start: towards +y


def swing(load: float, seconds: float) -> tuple[sd.Trajectory, np.ndarray]:
    """Return the motion with a tip load [kg] and the path of the tip (samples, 3) [m]."""
    robot = sd.load('honeycomb_arm').with_tip_load(load)
    q0 = np.zeros(robot.nq)
    q0[1::2] = BEND
    motion = robot.simulate(q0, np.zeros(robot.nq), None, np.arange(0.0, seconds, 0.005))
    return motion, robot.pose(motion.q, 'tip')[:, :3, 3]


def damped_sine(t: np.ndarray, a: float, b: float, w: float, c: float) -> np.ndarray:
    return a * np.exp(-b * t) * np.sin(w * t - c)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description='Free swing of a honeycomb arm.')
    parser.add_argument('--seconds', type=number(2.0, 1e3), default=6.0, help='simulated time [s]')
    options = parser.parse_args(argv)

    for load in (0.0, 0.5):
        motion, tip_W = swing(load, options.seconds)
        (_, b, w, _), _ = curve_fit(damped_sine, motion.t, tip_W[:, 1], p0=(0.3, 1.0, 6.0, -1.5))
        frequency, half_life = w / (2.0 * np.pi), np.log(2.0) / b
        print(f'{load:.1f} kg at the tip: starts {tip_W[0, 1]:.2f} m to the side,', end=' ')
        print(f'swings at {frequency:.2f} Hz, halves its swing every {half_life:.2f} s')


if __name__ == '__main__':
    main()
