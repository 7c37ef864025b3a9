"""Bags of motions that are known: simulated, then written as a rig would have measured them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from soft_dynamics import quaternion
from soft_dynamics.bags import BagWriter, SampleWriter
from soft_dynamics.robot import Robot
from soft_dynamics.simulate import Trajectory
from soft_estimation.configuration import frame_index
from soft_estimation.poses import inverse, pose_from_rpy

START_NS = 1_700_000_000_000_000_000


def driven(robot: Robot, duration: float, rate: float = 100.0) -> Trajectory:
    """The motion from rest under slow, different pressures in all chambers."""
    t = np.arange(round(duration * rate) + 1) / rate
    chambers = np.arange(len(robot.chamber_names))
    ramp = np.minimum(1.0, t)[:, None]
    share = 0.5 + 0.4 * np.sin(2.0 * np.pi * (0.2 + 0.07 * chambers) * t[:, None] + chambers)
    p = robot.description.actuation.pressure_max * ramp * share
    zero = np.zeros(robot.nq)
    return robot.simulate(robot.rest, zero, p, t)


def write_bag(
    path: Path, robot: Robot, motion: Trajectory, streams: Collection[str], namespace: str = ''
) -> Path:
    """Write the streams `state`, `pressure`, `poses`, `wrench`, `fiber` of a motion."""
    d, n = robot.description, f'{namespace}/'
    X_WM = pose_from_rpy(d.mount.position, d.mount.rpy)
    qdd = np.gradient(motion.qd, motion.t, axis=0)
    wrench_B = robot.base_wrench(motion.q, motion.qd, qdd)
    X_M = robot.forward_kinematics(motion.q)
    s = np.linspace(0.0, robot.length, 60)
    with BagWriter(path) as bag:
        out = SampleWriter(bag)
        for k, t_ns in enumerate((START_NS + np.round(motion.t * 1e9).astype(np.int64)).tolist()):
            if 'pressure' in streams:
                out.pressures(f'{n}pressure/measured', t_ns, robot.chamber_names, motion.inputs[k])
            if 'state' in streams:
                out.state(
                    f'{n}state', t_ns, robot.name, robot.coordinate_names, (motion.q[k], motion.qd[k], qdd[k])
                )
            if 'wrench' in streams:
                out.wrench(f'{n}ft/wrench', t_ns, wrench_B[k])
            if 'fiber' in streams:
                points = robot.centerline(motion.q[k], s)
                out.shape(f'{n}fiber/shape', t_ns, s, _in_sensor(robot, points, X_M[k, 0]))
            for sensor in d.sensors if 'poses' in streams else ():
                if sensor.kind in ('mocap', 'vive'):
                    X_MF = X_M[k, frame_index(robot, sensor)]
                    X_WS = X_WM @ X_MF @ pose_from_rpy(sensor.position, sensor.rpy)
                    quat = quaternion.from_rotation(X_WS[:3, :3])
                    out.pose(
                        f'{n}{sensor.kind}/{sensor.name}/pose', t_ns, quat.tolist(), X_WS[:3, 3].tolist()
                    )
    return path


def _in_sensor(robot: Robot, points_M: Any, X_MB: Any) -> Any:
    (sensor,) = [x for x in robot.description.sensors if x.kind == 'fiber']
    X_SM = inverse(X_MB @ pose_from_rpy(sensor.position, sensor.rpy))
    return points_M @ X_SM[:3, :3].T + X_SM[:3, 3]
