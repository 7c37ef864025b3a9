"""Compiles what a filter needs, so that the first samples do not wait."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from soft_dynamics.description.sensors import Sensor
from soft_dynamics.geometry.se3 import pose_from_rpy
from soft_dynamics.robot import Robot

from ..inverse_kinematics.pose_tracking import frame_index
from ..inverse_kinematics.poses import poses_from_quaternions
from .model_filter import ModelFilter


def warm_up(estimator: Any, robot: Robot, sensors: Sequence[Sensor]) -> None:
    """Feed a throw-away filter with the robot at rest."""
    mount, X_MF = robot.description.mount, robot.forward_kinematics(robot.rest)
    X_WM = pose_from_rpy(mount.position, mount.rpy)
    poses = {
        sensor.name: X_WM @ X_MF[frame_index(robot, sensor)] @ pose_from_rpy(sensor.position, sensor.rpy)
        for sensor in sensors
        if sensor.kind in ('mocap', 'vive')
    }
    poses_from_quaternions(np.array([[0.0, 0.0, 0.0, 1.0]]), np.zeros((1, 3)))
    for t in (0.0, 0.01):
        estimator.feed_poses(t, poses)
        if isinstance(estimator, ModelFilter):
            estimator.feed_pressure(t, np.zeros(len(robot.chamber_names)))
            for sensor in sensors:
                if sensor.kind == 'ft':
                    estimator.feed_wrench(t, sensor.name, np.zeros(6))
                elif sensor.kind == 'fiber':
                    s = np.linspace(0.0, robot.length, 30)
                    estimator.feed_shape(t, sensor.name, s, np.stack([0.0 * s, 0.0 * s, s], 1))
    if estimator.started:
        estimator.estimate(0.02)
    estimator.bodies.look()
