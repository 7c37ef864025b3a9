"""Identify and test a two-segment pneumatic arm: python -m examples.real_data.asu_arm --data FOLDER [--write FILE]

Problem: predict the bend v [rad] of both segments of the hanging arm of the ASU RISE lab from the measured pressures.
Geometry and mass are measured. Ten numbers are identified: for each segment, the torque per pressure of the right and
of the left chamber and the bend at rest; for both together, stiffness, damping, and the lags with which chambers fill
and vent behind their pressure sensors. The baseline is static gains and a lag, see bar.py.
Data: apr_18_data_collect_1, fitted to one half and tested on the other, both ways round. Source: docs/real_data.md.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from examples.real_data.bar import bar_error
from examples.real_data.data import add_data_option, file_in, imported
from examples.real_data.figure import draw
from soft_dynamics.array import Array
from soft_dynamics.commands.arguments import file_to_read, file_to_write
from soft_dynamics.description.robot_description import Description
from soft_dynamics.description.writer import write_description
from soft_dynamics.robot import Robot, load
from soft_estimation.identification import Identification, Options, identify, problem_of
from soft_estimation.recordings.recording import Recording
from soft_estimation.validation.free_run import free_run

ROBOT, FILE = Path(__file__).with_name('asu_arm.yaml'), 'apr_18_data_collect_1.txt'
SEGMENTS = 'proximal', 'distal'
SIDES = [f'{segment}_{side}.gain' for segment in SEGMENTS for side in ('right', 'left')]
RESTS, LAGS = [f'{segment}.rest[1]' for segment in SEGMENTS], ['fill_lag=0.05:1', 'vent_lag=0.3:5']
KEYS = ['*.stiffness', '*.damping', *SIDES, *RESTS, *LAGS]
BENDS = [1, 3]  # v of both segments


def recorded(data: Path) -> Recording:
    """Return the motion in the plane of the chambers; chambers cannot cause the small lean out of that plane."""
    seen = imported(file_in(data, FILE), 'asu_two_segment_arm', load(ROBOT), rate=20.0, bandwidth=2.0)
    in_plane = np.isin(np.arange(seen.q.shape[1]), BENDS)
    return replace(seen, q=seen.q * in_plane, qd=seen.qd * in_plane, qdd=seen.qdd * in_plane)


def fit(robot: Description, recording: Recording) -> Identification:
    problem = problem_of(robot, [recording], 'least_squares', KEYS, window=1e3, step=0.05)
    return identify(problem, 'least_squares', Options(starts=1))


def model_error(robot: Description, recording: Recording) -> Array:
    """Free-run rms error of both bends [deg]."""
    table = free_run(Robot(robot), recording, lambda part: None).table
    return np.degrees([table[k].rmse for k in BENDS])


def compare(robot: Description, whole: Recording) -> Identification:
    """Print the errors of model and baseline on the half that neither was fitted to; return the fit to the whole."""
    half, end = whole.duration / 2, whole.duration
    parts = {'first half': whole.part(0.0, half), 'second half': whole.part(half, end), 'whole': whole}
    print('fitted to    tested on     model v1, v2 [deg]   gains and lag [deg]')
    for seen, test in (('first half', 'second half'), ('second half', 'first half'), ('whole', 'whole')):
        found = fit(robot, parts[seen])
        ours = model_error(found.description, parts[test])
        bar = np.degrees(bar_error(parts[seen], parts[test], BENDS))
        print(f'{seen:12} {test:12}  {ours[0]:8.2f} {ours[1]:8.2f}   {bar[0]:9.2f} {bar[1]:8.2f}', flush=True)
    for parameter, value, std in zip(found.parameters, found.values, found.uncertainty.std, strict=True):
        print(f'{parameter.key:20} {value:11.4g} +- {std:.2g}')
    return found


def main(args: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or '').partition('\n')[0])
    add_data_option(parser, FILE)
    parser.add_argument(
        '--check', type=file_to_read, help='test this robot file on the whole recording; fit nothing'
    )
    parser.add_argument('--figure', type=file_to_write, help='with --check: plot measured and modelled bends')
    parser.add_argument(
        '--write',
        type=file_to_write,
        help='write a robot file with the numbers fitted to the whole recording',
    )
    options = parser.parse_args(args)
    if options.write and options.write.exists():
        parser.error(f'--write: {options.write} exists already')
    whole = recorded(options.data)
    if options.check:
        given = load(options.check)
        print('free-run rms error of v1, v2 [deg]:', *model_error(given.description, whole).round(2))
        if options.figure:
            run = free_run(given, whole, lambda part: None)
            draw(options.figure, whole.t, SEGMENTS, whole.q[:, BENDS], run.q[:, BENDS])
        return
    found = compare(load(ROBOT).description, whole)
    if options.write:
        write_description(
            options.write, found.description, f'asu_arm, identified by `asu_arm.py` from {FILE}.'
        )


if __name__ == '__main__':
    main()
