"""Simulate ten seconds of a pneumatic arm under random pressure steps.

Problem: each chamber of the three-joint arm gets a new random pressure between 0 and 150 kPa every 2 s, through valves
with a first-order lag. Find the motion of the joints and the computing time. Symbols: (u, v) bend of a joint [rad], p
chamber pressures [Pa]. Source: [Jensen, sec. IV-B and V]: the input of its training data; the paper takes 9.77 s for
13.1 s of motion, 1.34 x real time, with scipy's BDF on a twelve-core processor.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import numpy as np

import soft_dynamics as sd
from soft_dynamics.commands.arguments import number

HOLD = 2.0  # [s] between two pressure steps


def pressure_steps(robot: sd.Robot, seconds: float, seed: int = 3) -> np.ndarray:
    """Return random commands [Pa], one row per step, one column per chamber."""
    actuation = robot.description.actuation
    shape = (int(np.ceil(seconds / HOLD)), len(actuation.chambers))
    return np.random.default_rng(seed).uniform(actuation.pressure_min, actuation.pressure_max, shape)


def motion(robot: sd.Robot, seconds: float, step: float) -> sd.Trajectory:
    """Simulate from the straight pose at rest with the implicit method (SDIRK4) and a fixed step [s]."""
    levels = pressure_steps(robot, seconds)
    rest = np.zeros(robot.nq)
    t = np.arange(0.0, seconds, 0.01)
    return robot.simulate(rest, rest, lambda now: levels[int(now / HOLD)], t, valve=True, step=step)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description='A pneumatic arm under random pressure steps.')
    parser.add_argument('--seconds', type=number(0.1, 1e4), default=10.0, help='simulated time [s]')
    parser.add_argument(
        '--step', type=number(1e-5, 0.1), default=0.005, help='step of the implicit method [s]'
    )
    options = parser.parse_args(argv)

    robot = sd.load('pneumatic_arm')
    motion(robot, 0.1, options.step)  # compiles on the first run on this machine
    start = time.process_time()
    run = motion(robot, options.seconds, options.step)
    taken = time.process_time() - start
    fine = motion(robot, options.seconds, options.step / 8.0)

    for name, q in zip(robot.coordinate_names, run.q.T, strict=True):
        print(f'{name}: from {q.min():+.3f} to {q.max():+.3f} rad, at the end {q[-1]:+.3f} rad')
    off = np.abs(run.q - fine.q).max()
    print(f'steps of {1e3 * options.step:g} ms differ by {off:.1e} rad from steps of an eighth')
    print(
        f'{options.seconds:g} s of motion in {1e3 * taken:.0f} ms, {options.seconds / taken:.0f} x real time'
    )


if __name__ == '__main__':
    main()
