"""Step response of a soft bending actuator.

Problem: a pressure of 119 kPa acts on a silicone actuator from t = 0.12 s for 2.76 s. The model has five planar links.
Find the bend, the ringing frequency and the overshoot. Symbols: theta hinge angles [rad], (X, Y) tip [m], along Y at
rest, K_b = 1.6067 N m/rad stiffness and tau = (2/3) r2^3 p torque of each hinge. Source: [Godage, sec. III-C and IV,
experiment one], "about 5 Hz". The mass matrix of the paper puts the mass of a link at its end, which gives 5.0 Hz. With
the mass in the middle of the link, the same K_b gives 5.9 Hz (docs/theory/godage.md).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

import soft_dynamics as sd
from soft_dynamics.commands.arguments import number

PRESSURE, START, LENGTH = 119e3, 0.12, 2.76  # [Pa], [s], [s]
READINGS: dict[str, dict[str, object]] = {
    'mass where it is': {},
    'the paper, literally': {'segment_defaults': {'com_distance': 0.034, 'inertia': 2.127e-7}},
}


def step_response(overrides: dict[str, object], seconds: float) -> tuple[sd.Trajectory, np.ndarray]:
    """Return the motion and the ends of the links (samples, 6, 2) [m], base first."""
    robot = sd.load('bending_actuator', overrides)
    t = np.arange(0.0, seconds, 1.0 / 1500.0)
    pressure = PRESSURE * ((t >= START) & (t < START + LENGTH))[:, None]
    motion = robot.simulate(np.zeros(robot.nq), np.zeros(robot.nq), pressure, t)
    return motion, robot.forward_kinematics(motion.q)[:, :, :2, 3]


def ringing(t: np.ndarray, x: np.ndarray) -> tuple[float, float]:
    """Return (frequency [Hz], overshoot) of a step response that starts at 0, from its first three peaks."""
    rising = np.diff(x) > 0.0
    peaks = 1 + np.flatnonzero(rising[:-1] & ~rising[1:])[:3]
    return 2.0 / (t[peaks[2]] - t[peaks[0]]), x[peaks[0]] / x[-1] - 1.0


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description='Step response of a soft bending actuator.')
    parser.add_argument(
        '--seconds',
        type=number(1.5, 1e3),
        default=2.8,
        help='simulated time [s]; the pressure ends at 2.88 s',
    )
    options = parser.parse_args(argv)

    for reading, overrides in READINGS.items():
        motion, ends = step_response(overrides, options.seconds)
        on = (motion.t >= START) & (motion.t < START + LENGTH)
        frequency, overshoot = ringing(motion.t[on], np.abs(ends[on, -1, 0]))
        bend = np.degrees(motion.q[on][-1].sum())
        print(
            f'{reading:22} bends {bend:.1f} deg, overshoots by {overshoot:.0%}, rings at {frequency:.2f} Hz'
        )


if __name__ == '__main__':
    main()
