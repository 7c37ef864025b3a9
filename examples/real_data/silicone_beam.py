"""Predict a loaded silicone cantilever from the unloaded one: python -m examples.real_data.silicone_beam --data FOLDER

Problem: a clamped beam is released under its own weight, and again with a load on the upper edge of its tip. The
frequency [Hz] of the swing and the final sag [mm] are measured. The modulus E and the damping are fitted to the
unloaded beam only, so that the loaded beam is a prediction. Source: Dubied et al., RA-L 2022; see docs/real_data.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import fsolve, least_squares

from examples.real_data.data import add_data_option
from soft_dynamics.array import Array
from soft_dynamics.description.robot_description import Description, load_description
from soft_dynamics.robot import Robot
from soft_estimation.identification.damped_sinusoids import fit_swing
from soft_estimation.identification.unknowns import apply, select

ROBOT = Path(__file__).with_name('silicone_beam.yaml')
GRAVITY, RATE, SWING = 9.81, 100, 100  # [m/s^2], [Hz], samples of the swing that are fitted
SECOND_MOMENT, LENGTH = 0.03**4 / 12, 0.1 / 8  # of the cross-section [m^4]; of one arc [m]
CASES = {'unloaded': ('beam_gravity_V2_a.c3d', 0.0), 'loaded': ('beam_load101_V2_a.c3d', 1.00062 / GRAVITY)}


class Swing(NamedTuple):
    """Frequency [Hz], decay [1/s] and sag [m]."""

    frequency: float
    decay: float
    sag: float


def swing_of(height: Array, sag: float) -> Swing:
    """Fit the least damped mode, from the lowest point of the first swing onwards."""
    lowest = int(np.argmin(height[: 3 * RATE // 2]))
    fitted = fit_swing(np.arange(SWING) / RATE, height[lowest : lowest + SWING, None], 2)
    b, c = min((mode for mode in fitted.modes if mode[1] > mode[0] ** 2), key=lambda mode: mode[0])
    return Swing(float(np.sqrt(c - b * b)) / (2 * np.pi), float(b), sag)


def measured(file: Path) -> Swing:
    """Evaluate the mean height (x) of the three tip markers; the beam is held at the start and at rest at the end."""
    import c3d

    with warnings.catch_warnings(), file.open('rb') as handle:
        warnings.simplefilter('ignore')  # c3d warns that the files have no analog channels
        points = np.array([point[:3, 0] for _, point, _ in c3d.Reader(handle).read_frames()], float)
    height = points.mean(axis=1)
    return swing_of(height, float(height[:30].mean() - height[-50:].mean()))


def modelled(beam: Description, load: float) -> Swing:
    """Simulate the release from the straight pose."""
    segments = (*beam.segments[:-1], dataclasses.replace(beam.segments[-1], mass=load))
    robot = Robot(dataclasses.replace(beam, segments=segments))
    still = np.zeros(robot.nq)
    motion = robot.simulate(still, still, None, np.arange(2 * RATE) / RATE, step=1 / RATE)
    rest = fsolve(lambda q: robot.gravity(q) + robot.elastic(q), still)
    return swing_of(robot.forward_kinematics(motion.q)[:, -1, 0, 3], -float(robot.pose(rest, 'tip')[0, 3]))


def fit(beam: Description, unloaded: Swing) -> Description:
    """Fit one factor for the modulus and one for the damping to frequency, sag and decay of the unloaded beam."""
    unknowns = select(beam, ['*.stiffness', '*.damping'])

    def misfit(x: Array) -> Array:
        return np.log(np.array(modelled(apply(beam, unknowns, x), 0.0)) / np.array(unloaded))

    found = least_squares(misfit, np.zeros(2), diff_step=0.02, xtol=1e-4, ftol=1e-4)
    return apply(beam, unknowns, found.x)


def main(args: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or '').partition('\n')[0])
    add_data_option(parser, *(file for file, _ in CASES.values()))
    data = parser.parse_args(args).data
    real = {name: measured(data / file) for name, (file, _) in CASES.items()}
    beam = fit(load_description(ROBOT), real['unloaded'])
    material = beam.segments[0].material
    modulus = material.stiffness[0] * LENGTH / SECOND_MOMENT
    print(f'E = {modulus / 1e3:.1f} kPa, d/k = {1e3 * material.damping[0] / material.stiffness[0]:.2f} ms')
    for name, (_, load) in CASES.items():
        model = modelled(beam, load)
        for key, unit, scale in (('frequency', 'Hz', 1.0), ('sag', 'mm', 1e3)):
            ours, theirs = scale * getattr(model, key), scale * getattr(real[name], key)
            off = 100 * (ours / theirs - 1)
            print(f'{name:9} {key:9} measured {theirs:6.2f} {unit}  model {ours:6.2f} {unit}  {off:+.1f} %')


if __name__ == '__main__':
    main()
