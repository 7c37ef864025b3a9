"""Error of lumped and point masses of a soft segment against its distributed mass.

Problem: the mass of an arc moves with neither of its end frames. Jensen rotates all of it with the distal frame
(lumped). Mehl puts a point at the centre of gravity (point). The integral along the arc is exact (distributed).
Compare the mass matrix, the natural frequencies about the standing pose, the path of the tip after release from a bend,
and the energy error without damping, for a bare joint, an arm of three joints and links, and a single actuator.
Symbols: M mass matrix, f frequency [Hz]. Source: [Jensen, eq. 18-21], [Mehl, eq. 8, 10]; docs/theory/placements.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import root

import soft_dynamics as sd
from soft_dynamics.commands.arguments import number
from soft_dynamics.description.actuation import Actuation

PLACEMENTS = ('lumped', 'point', 'distributed')
BEND = {'bare joint': 0.5, 'pneumatic_arm': 0.5, 'floating_actuator': 0.02}  # of every arc [rad, rad, m]


def robot_with(name: str, placement: str, damped: bool = True) -> sd.Robot:
    """Return a shipped robot with one mass placement for all arcs, or the first joint of the arm alone."""
    whole = sd.load('pneumatic_arm' if name == 'bare joint' else name).description
    segments = [replace(s, placement=placement) if s.type == 'arc' else s for s in whole.segments]
    if not damped:
        bare = [replace(s.material, damping=()) if s.type == 'arc' else None for s in segments]
        segments = [replace(s, material=m) if m else s for s, m in zip(segments, bare, strict=True)]
    if name == 'bare joint':
        whole, segments = replace(whole, actuation=Actuation(), sensors=()), segments[:1]
    return sd.Robot(replace(whole, segments=tuple(segments)))


def standing(robot: sd.Robot) -> tuple[np.ndarray, np.ndarray]:
    """Return (pose at rest under gravity, indices of the free coordinates)."""
    free = np.arange(6 if robot.description.base.type == 'prescribed' else 0, robot.nq)
    still, pick = np.zeros(robot.nq), np.eye(robot.nq)[:, free]
    found = root(lambda x: robot.inverse_dynamics(pick @ x, still, still)[free], still[free], tol=1e-9)
    return pick @ found.x, free


def frequencies(robot: sd.Robot) -> tuple[np.ndarray, np.ndarray]:
    """Return (mass matrix, undamped natural frequencies [Hz]) of the free coordinates about the standing pose."""
    q, free = standing(robot)
    still, block = np.zeros(robot.nq), np.ix_(free, free)
    A, _ = robot.linearize(q, still, still)
    M = robot.mass_matrix(q)[block]
    K = -M @ A[robot.nq :, : robot.nq][block]
    return M, np.sqrt(eigh(0.5 * (K + K.T), M, eigvals_only=True)) / (2.0 * np.pi)


def released(robot: sd.Robot, name: str, seconds: float, method: str = 'implicit') -> sd.Trajectory:
    """Return the motion after release from a bend to one side."""
    q, _ = standing(robot)
    q[[k for k, c in enumerate(robot.coordinate_names) if c.endswith(('_u', '_dx'))]] = BEND[name]
    return robot.simulate(q, np.zeros(robot.nq), None, np.arange(0.0, seconds, 2e-3), method, step=2.5e-4)


def tip(robot: sd.Robot, motion: sd.Trajectory) -> np.ndarray:
    return robot.pose(motion.q, 'tip')[:, :3, 3]


def energy_made(robot: sd.Robot, motion: sd.Trajectory) -> float:
    """Return the largest change of the energy over the largest kinetic energy; zero is exact without damping."""
    kinetic, gravitational, elastic = robot.energy(motion.q, motion.qd)
    total = kinetic + gravitational + elastic
    return float(np.abs(total - total[0]).max() / kinetic.max())


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description='Compare lumped and point masses with distributed mass.')
    parser.add_argument('--seconds', type=number(0.01, 1e3), default=2.0, help='simulated time [s]')
    seconds = parser.parse_args(argv).seconds

    print(f'{"robot":18} placement     M off  {"frequencies [Hz]":21} tip off [mm]  energy made')
    for name in BEND:
        exact = robot_with(name, 'distributed')
        M_exact, tip_exact = frequencies(exact)[0], tip(exact, released(exact, name, seconds))
        for placement in PLACEMENTS:
            robot, undamped = robot_with(name, placement), robot_with(name, placement, damped=False)
            M, f = frequencies(robot)
            off = np.linalg.norm(M - M_exact) / np.linalg.norm(M_exact)
            apart = np.linalg.norm(tip(robot, released(robot, name, seconds)) - tip_exact, axis=1).max()
            made = energy_made(undamped, released(undamped, name, seconds, 'rk4'))
            listed = ' '.join(f'{value:6.2f}' for value in np.unique(f.round(2)))
            print(f'{name:18} {placement:11} {off:7.1%}  {listed:21} {1e3 * apart:12.1f} {made:12.2%}')


if __name__ == '__main__':
    main()
