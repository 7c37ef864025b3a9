"""A two-segment pneumatic arm against its recordings: python -m examples.real_data.asu_arm [--write FILE]

Problem: bend v [rad] of both segments of the hanging arm of the ASU RISE lab, from the measured pressures alone.
Geometry and mass are measured; eight numbers are identified: stiffness, damping, torque per pressure of the right and
of the left chambers, how fast the chambers fill and vent behind their pressure sensors, all shared by both segments,
and the bend of each at rest. The bar is what anybody would fit first: gains and a lag, see bar.py.
Data: asu_two_segment_arm, the first half to fit and the second to test, and the other way round.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from examples.real_data.bar import bar_error
from examples.real_data.data import folder, imported
from soft_dynamics.arguments import Array
from soft_dynamics.description import Description
from soft_dynamics.robot import Robot, load
from soft_dynamics.writer import write_description
from soft_estimation.identification import Identification, Options, identify, problem_of
from soft_estimation.recording import Recording
from soft_estimation.validation import free_run

ROBOT = Path(__file__).with_name('asu_arm.yaml')
ROOT = ROBOT.parents[2]
KEYS = (
    *('*.stiffness', '*.damping', '*_right.gain', '*_left.gain', 'proximal.rest[1]', 'distal.rest[1]'),
    *('fill_lag=0.05:1', 'vent_lag=0.3:5'),
)
BENDS = [1, 3]  # v of both segments


def fit(robot: Description, recording: Recording, starts: int) -> Identification:
    problem = problem_of(robot, [recording], 'least_squares', KEYS, window=1e3, step=0.05)
    return identify(problem, 'least_squares', Options(starts=starts))


def model_error(robot: Description, recording: Recording) -> Array:
    """Free-run rms error of both bends [deg]."""
    table = free_run(Robot(robot), recording, lambda part: None).table
    return np.degrees([table[k].rmse for k in BENDS])


def draw(robot: Description, recording: Recording, file: Path) -> None:
    """Measured and free-running bends over time."""
    from matplotlib import pyplot as plt

    found = free_run(Robot(robot), recording, lambda part: None)
    with plt.style.context(ROOT / 'docs' / 'figures' / 'style.mplstyle'):
        figure, axes = plt.subplots(figsize=(7, 3))
        for k, name in zip(BENDS, ('proximal', 'distal'), strict=True):
            (line,) = axes.plot(recording.t, np.degrees(recording.q[:, k]), label=f'{name}, measured')
            axes.plot(
                found.t, np.degrees(found.q[:, k]), '--', color=line.get_color(), label=f'{name}, model'
            )
        axes.set(xlabel='time [s]', ylabel='bend [deg]')
        axes.legend(ncols=4, loc='lower center', bbox_to_anchor=(0.5, 1.0), fontsize='small')
        figure.savefig(file)


def main(args: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--starts', type=int, default=3, help='of the search')
    parser.add_argument(
        '--check', type=Path, help='test this robot file on the whole recording instead of fitting'
    )
    parser.add_argument('--figure', type=Path, help='with --check: draw measured and modelled bends')
    parser.add_argument('--write', type=Path, help='robot file with what the whole recording says')
    options = parser.parse_args(args)
    robot = load(ROBOT)
    file = folder('asu_two_segment_arm') / 'apr_18_data_collect_1.txt.gz'
    whole = imported(file, 'asu_two_segment_arm', robot, rate=20.0, bandwidth=2.0)
    if options.check:
        given = load(options.check).description
        print('free-run rms error of v1, v2 [deg]:', *(f'{error:.2f}' for error in model_error(given, whole)))
        if options.figure:
            draw(given, whole, options.figure)
        return
    half = whole.duration / 2
    parts = {
        'first half': whole.part(0.0, half),
        'second half': whole.part(half, whole.duration),
        'whole': whole,
    }
    print('fitted to    tested on     model v1, v2 [deg]   gains and lag [deg]')
    for seen, test in (('first half', 'second half'), ('second half', 'first half'), ('whole', 'whole')):
        found = fit(robot.description, parts[seen], options.starts)
        ours, bar = (
            model_error(found.description, parts[test]),
            np.degrees(bar_error(parts[seen], parts[test], BENDS)),
        )
        print(f'{seen:12} {test:12}  {ours[0]:8.2f} {ours[1]:8.2f}   {bar[0]:9.2f} {bar[1]:8.2f}', flush=True)
    for parameter, value, std in zip(found.parameters, found.values, found.uncertainty.std, strict=True):
        print(f'{parameter.key:18} {value:11.4g} +- {std:.2g}')
    print('\n'.join(found.uncertainty.warnings))
    if options.write:
        head = (
            f'{robot.name} with the values that `python -m examples.real_data.asu_arm` found in {file.name}.'
        )
        write_description(options.write, found.description, head)


if __name__ == '__main__':
    main()
