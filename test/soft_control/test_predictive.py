"""The predictive controller against the kinematic one, on the same runs."""

from __future__ import annotations

import numpy as np
import pytest
from closed_loop import Rig, perturbed, robot_of

from soft_control.load import LoadGains
from soft_control.loop import ControlLoop, Law
from soft_control.predictive import PredictiveGains, PredictiveLaw
from soft_control.references import PosePath
from soft_control.safety import Mode
from soft_control.task import TaskGains, TaskLaw

HONEYCOMB = robot_of('honeycomb_arm')


def star_error(law: Law, load: float) -> float:
    """RMS distance [m] of the tip from a star of 0.4 m, drawn at 0.16 m/s and 50 Hz with a load [kg]."""
    rig = Rig(perturbed(HONEYCOMB.name, load), ControlLoop(HONEYCOMB, law), 50.0)
    start = rig.loop.present(0.0).X_WT
    corners = []
    for angle in np.pi / 2 + 0.8 * np.pi * np.arange(6):
        corner = start.copy()
        corner[:3, 3] += [0.2 * np.cos(angle), 0.2 * np.sin(angle), -0.063]  # on a sphere of 0.35 m
        corners.append(corner)
    path = PosePath(0.0, start, corners, 0.16, 1.0)
    rig.loop.follow(0.0, path)
    seen = rig.run(
        13.0,
        lambda rig, memory: (
            np.linalg.norm(path.sample(rig.t).X_WT[:3, 3] - rig.plant.pose(rig.q, 'tip')[:3, 3]),
            memory.mode,
        ),
    )
    assert {mode for _, mode in seen} == {Mode.FOLLOWING}
    return float(np.sqrt(np.mean([distance**2 for distance, _ in seen[100:]])))


def test_it_halves_the_error_of_a_star_with_a_load() -> None:
    kinematic = star_error(TaskLaw(HONEYCOMB, TaskGains(orientation=0.0, proportional=2.0)), 0.5)
    assert star_error(PredictiveLaw(HONEYCOMB, PredictiveGains(orientation=0.0)), 0.5) < 0.5 * kinematic


def test_it_reaches_a_pose_with_an_unknown_load() -> None:
    X_WR = HONEYCOMB.pose(np.random.default_rng(5).uniform(-0.25, 0.25, 8), 'tip')
    rig = Rig(
        perturbed(HONEYCOMB.name, 0.5),
        ControlLoop(HONEYCOMB, PredictiveLaw(HONEYCOMB, PredictiveGains())),
        50.0,
    )
    rig.loop.follow(0.0, PosePath(0.0, rig.loop.present(0.0).X_WT, [X_WR], 0.1, 0.5))
    rig.run(8.0, lambda rig, memory: None)
    reached = rig.plant.pose(rig.q, 'tip')
    assert np.linalg.norm(reached[:3, 3] - X_WR[:3, 3]) <= 5e-3
    assert np.linalg.norm(reached[:3, 2] - X_WR[:3, 2]) <= np.radians(2.0)


def test_refusals() -> None:
    with pytest.raises(ValueError, match='steps must be 1 to 100'):
        PredictiveGains(steps=0)
    with pytest.raises(ValueError, match='drift must be > 0'):
        LoadGains(drift=0.0)
    with pytest.raises(ValueError, match='expected a fixed base'):
        PredictiveLaw(robot_of('floating_actuator'), PredictiveGains())
