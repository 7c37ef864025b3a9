"""A two-segment pneumatic arm against its recordings: python -m examples.real_data.asu_arm [--write FILE]

Problem: bend v [rad] of both segments of the hanging arm of the ASU RISE lab, from the measured pressures alone.
Geometry and mass are measured; ten numbers are identified: the torque per pressure of the right and of the left chamber
of each segment and its bend at rest, and, shared by both, stiffness, damping and how fast chambers fill and vent behind
their pressure sensors. The bar is what anybody would fit first: gains and a lag, see bar.py.
Data: asu_two_segment_arm, the first half to fit and the second to test, and the other way round.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from examples.real_data.bar import bar_error
from examples.real_data.data import folder, imported
from examples.real_data.figure import draw
from soft_dynamics.array import Array
from soft_dynamics.commands.arguments import file_to_read, file_to_write
from soft_dynamics.description.robot_description import Description
from soft_dynamics.description.writer import write_description
from soft_dynamics.robot import Robot, load
from soft_estimation.identification import Identification, Options, identify, problem_of
from soft_estimation.recordings.recording import Recording
from soft_estimation.validation.free_run import free_run

ROBOT, FILE = Path(__file__).with_name('asu_arm.yaml'), 'apr_18_data_collect_1.txt.gz'
SEGMENTS = 'proximal', 'distal'
SIDES = [f'{segment}_{side}.gain' for segment in SEGMENTS for side in ('right', 'left')]
RESTS, LAGS = [f'{segment}.rest[1]' for segment in SEGMENTS], ['fill_lag=0.05:1', 'vent_lag=0.3:5']
KEYS = ['*.stiffness', '*.damping', *SIDES, *RESTS, *LAGS]
BENDS = [1, 3]  # v of both segments


def recorded() -> Recording:
    """The motion in the plane of the chambers: out of it the plates lean by a degree, which no chamber can explain."""
    file = folder('asu_two_segment_arm') / FILE
    seen = imported(file, 'asu_two_segment_arm', load(ROBOT), rate=20.0, bandwidth=2.0)
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
    """Print the errors of model and bar on the half that neither has seen; return the fit to the whole."""
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
    parser.add_argument(
        '--check', type=file_to_read, help='test this robot file on the whole instead of fitting'
    )
    parser.add_argument('--figure', type=file_to_write, help='with --check: draw measured and modelled bends')
    parser.add_argument(
        '--write', type=file_to_write, help='new robot file with what the whole recording says'
    )
    options = parser.parse_args(args)
    if options.write and options.write.exists():
        parser.error(f'--write: {options.write} exists already')
    whole = recorded()
    if options.check:
        given = load(options.check)
        print('free-run rms error of v1, v2 [deg]:', *model_error(given.description, whole).round(2))
        if options.figure:
            run = free_run(given, whole, lambda part: None)
            draw(options.figure, whole.t, SEGMENTS, whole.q[:, BENDS], run.q[:, BENDS])
        return
    found = compare(load(ROBOT).description, whole)
    if options.write:
        write_description(options.write, found.description, f'asu_arm as `asu_arm.py` found it in {FILE}.')


if __name__ == '__main__':
    main()
