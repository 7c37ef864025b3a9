"""Compiles what a filter needs, so that the first samples do not wait."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from soft_dynamics.description.sensors import Sensor
from soft_dynamics.messages.body_frame import BodyFrame
from soft_dynamics.robot import Robot

from .model_filter import ModelFilter
from .sensors import SENSORS


def warm_up(estimator: Any, robot: Robot, sensors: Sequence[Sensor]) -> None:
    """Feed a throw-away filter with the robot at rest."""
    of_kind = {sensor: SENSORS[sensor.kind] for sensor in sensors}
    bodies = [kind.at_rest(robot, sensor) for sensor, kind in of_kind.items() if kind.is_body]
    frame = BodyFrame.of(0, [(f.names[0], f.p_WB[0], f.quat_WB[0]) for f in bodies])
    for t in (0.0, 0.01):
        estimator.feed_frame(t, frame)
        if isinstance(estimator, ModelFilter):
            estimator.feed_pressure(t, np.zeros(len(robot.chamber_names)))
            for sensor, kind in of_kind.items():
                if not kind.is_body:
                    kind.feed(estimator, sensor.name, t, kind.at_rest(robot, sensor))
    if estimator.started:
        estimator.estimate(0.02)
    estimator.bodies.look()
