"""Why identified springs and dampers of the virtual rig differ from its file: python -m benchmarks.recovery_causes

The plant of the rig is released from three poses in lock-step, without noise, and Wang's method identifies springs and
dampers. The table compares plants with three cuts and one cut per segment, and models with a segment's mass at its end,
as in the paper and the file, or with half of it at the joint, closer to the uniform mass of the plant.
"""

from __future__ import annotations

import dataclasses
from unittest.mock import patch

import numpy as np

from soft_dynamics.description.robot_description import Description, load_description
from soft_dynamics.robot import Robot
from soft_estimation.differentiate.smoothing_spline import smoothing_spline
from soft_estimation.identification import METHODS, Options, problem_of
from soft_estimation.identification.budget import Checkpoint
from soft_estimation.identification.methods.wang import keys
from soft_estimation.inverse_kinematics.pose_tracking import Tracking
from soft_estimation.recordings.recording import Recording
from soft_hw_bridge.rig import mujoco_model, plant

SECONDS, RATE, BANDWIDTH = 3.0, 100.0, 20.0  # [s], [Hz]
SIZE = 0.15  # [rad] bend of the poses


def swings(robot: Robot, cuts: int) -> list[Recording]:
    """Return swings of a plant whose segments have `cuts` cuts."""
    t, recordings = np.arange(0.0, SECONDS, 1.0 / RATE), []
    tracking = Tracking(robot)
    names = [sensor.name for sensor in robot.description.sensors if sensor.kind == 'mocap']
    none = np.zeros((t.size, len(robot.chamber_names)))
    with patch.object(mujoco_model, 'CUTS', cuts), patch.object(plant, 'CUTS', cuts):
        for q0 in SIZE * np.random.default_rng(1).standard_normal((3, robot.nq)):
            made, q = plant.Plant(robot.description), [q0]
            made.place(q0)
            for _ in t:
                X_WS = dict(zip(names, made.poses(), strict=True))
                q.append(tracking.configuration(X_WS, near=q[-1]).q)
                made.advance(1.0 / RATE)
            smooth = smoothing_spline(t, np.array(q[1:]), BANDWIDTH)
            motion = smooth(t), smooth(t, 1), smooth(t, 2)
            recordings.append(Recording(robot.name, t, *motion, none, bandwidth=BANDWIDTH))
    return recordings


def deviations(model: Description, recordings: list[Recording]) -> dict[str, float]:
    """Return the deviation of springs and dampers from the file [%]."""
    problem = problem_of(model, recordings, 'wang', [key for key in keys(model) if 'gain' not in key])
    x = METHODS['wang'].search(problem, Options(), lambda *_: None, Checkpoint(None, ''))
    return {p.key: 100.0 * (p.value(v) / p.shown - 1.0) for p, v in zip(problem.parameters, x, strict=True)}


def main() -> None:
    file = load_description('honeycomb_arm')
    segments = tuple(dataclasses.replace(s, joint_mass_fraction=0.5) for s in file.segments)
    halved = dataclasses.replace(file, segments=segments)
    columns = {}
    for cuts in (3, 1):
        recordings = swings(Robot(file), cuts)
        for name, model in (('at the end', file), ('half at the joint', halved)):
            columns[f'{cuts} cut{"s" * (cuts > 1)}, mass {name}'] = deviations(model, recordings)
    print(f'| deviation [%] | {" | ".join(columns)} |\n|---|{"---|" * len(columns)}')
    for key in next(iter(columns.values())):
        print(f'| `{key}` | {" | ".join(f"{column[key]:+.1f}" for column in columns.values())} |')


if __name__ == '__main__':
    main()
