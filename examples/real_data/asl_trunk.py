"""Identify a tendon-driven trunk and its input map: python -m examples.real_data.asl_trunk --data FOLDER

Problem: predict the bend (u, v) [rad] of the three segments of the Stanford ASL trunk from the commanded angles of its
six motors. Masses, springs and tendon radii are not published. Identified on the first 50 s of a 100 s recording: the
map from motors to torques (36 numbers, starting from a linear regression), stiffness, damping and rest bend of each
segment, and the lag of the motors. Tested in a free run through the other 50 s, beside a baseline of static gains and a
lag, see bar.py. The chord of an arc gives its bend for any length. Source: docs/real_data.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from examples.real_data.bar import bar_error
from examples.real_data.data import add_data_option, file_in
from soft_dynamics.array import Array
from soft_dynamics.description.robot_description import Description, load_description
from soft_dynamics.robot import Robot
from soft_dynamics.segments import Arc
from soft_estimation.differentiate.smoothing_spline import smoothing_spline
from soft_estimation.identification import Options, identify, problem_of
from soft_estimation.identification.identify import free_run_rms
from soft_estimation.recordings.recording import Recording

ROBOT = Path(__file__).with_name('asl_trunk.yaml')
NAME = 'controlled_1_first100s'
BASE = np.array([0.1007, 0.0, 0.1045])  # [m] top of the trunk, above the disks at rest
RATE, EVERY, BANDWIDTH = 100, 5, 5.0  # rows per second, rows between samples, smoothing [Hz]
STEP = 0.5 * EVERY / RATE  # [s] of the simulation


def bends(disks: Array) -> Array:
    """Return u, v of each segment (n, 6) from the disk positions (n, 3, 3), in the axes of the robot file."""
    R, start, found = Rotation.identity(len(disks)), np.zeros((len(disks), 3)), []
    for k in range(3):
        x, y, z = R.inv().apply(disks[:, k] - start).T
        across = np.hypot(x, y)
        turn = 2.0 * np.arctan2(across, z) / np.maximum(across, 1e-12)
        bend = np.stack([-turn * y, turn * x], 1)
        found.append(bend)
        R, start = R * Rotation.from_rotvec(np.column_stack([bend, np.zeros(len(bend))])), disks[:, k]
    return np.concatenate(found, 1)


def recorded(data: Path, name: str = NAME) -> Recording:
    """Read the observations and inputs of one run."""
    seen, inputs = (
        np.genfromtxt(file_in(data, f'{kind}_{name}.csv'), delimiter=',', skip_header=1)
        for kind in ('observations', 'control_inputs')
    )
    lab = seen[:, 1:10].reshape(-1, 3, 3) - BASE
    disks = np.stack([lab[..., 0], lab[..., 2], -lab[..., 1]], -1)
    t = np.arange(len(disks)) / RATE
    smooth = smoothing_spline(t, bends(disks), BANDWIDTH)
    rows = slice(None, None, EVERY)
    motors = np.repeat(inputs[:, 1:7], 3, axis=1)
    return Recording(
        'asl_trunk', t[rows], smooth(t[rows]), smooth(t[rows], 1), smooth(t[rows], 2), motors[rows]
    )


def fit(trunk: Description, seen: Recording) -> Description:
    """Start from the input map by linear regression, with rest at the mean bend; then fit all unknowns together."""
    rests = iter(seen.q.mean(0).reshape(-1, 2).tolist())
    segments = [
        replace(s, material=replace(s.material, rest=tuple(next(rests)))) if isinstance(s, Arc) else s
        for s in trunk.segments
    ]
    gains = [f'{chamber.name}.gain[{k}]' for chamber in trunk.actuation.chambers for k in range(2)]
    fields = 'stiffness', 'damping', 'rest[0]', 'rest[1]'
    springs = [f'segment{k}.{field}' for k in (1, 2, 3) for field in fields]
    found = replace(trunk, segments=tuple(segments))
    for method, keys in (('wang', gains), ('least_squares', [*springs, 'valve_lag', *gains])):
        problem = problem_of(found, [seen], method, keys, window=10.0, step=STEP)
        found = identify(problem, method, Options(starts=1)).description
    return found


def free_run_error(trunk: Description, recording: Recording) -> Array:
    """Free-run rms error of each bend [rad]."""
    problem = problem_of(trunk, [recording], 'least_squares', ['valve_lag'], window=1e3, step=STEP)
    return free_run_rms(problem, problem.start)


def main(args: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or '').partition('\n')[0])
    add_data_option(parser, f'observations_{NAME}.csv', f'control_inputs_{NAME}.csv')
    whole = recorded(parser.parse_args(args).data)
    seen, unseen = whole.part(0.0, 50.0), whole.part(50.0, whole.duration)
    found = fit(load_description(ROBOT), seen)
    table = np.degrees([unseen.q.std(0), free_run_error(found, unseen), bar_error(seen, unseen, range(6))]).T
    print('coordinate    moved [deg]  model [deg]  gains and lag [deg]')
    for name, (moved, ours, bar) in zip(Robot(found).coordinate_names, table, strict=True):
        print(f'{name:12} {moved:11.2f} {ours:11.2f} {bar:11.2f}')


if __name__ == '__main__':
    main()
