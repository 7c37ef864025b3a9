"""A sensor kind that the suite lacks: a resistive strip on a segment, which measures one of its bends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from soft_dynamics.array import Array, as_array
from soft_dynamics.description.sensors import Sensor
from soft_dynamics.robot import Robot
from soft_estimation.kalman.measurement import Correction, Reading
from soft_estimation.kalman.process_model import Belief, Process
from soft_estimation.kalman.sensors.sensor_kind import SensorKind, sensor_of

NOISE = 0.01  # [rad]


class BendSample(NamedTuple):
    """The first coordinate of a segment, (1,) [rad]."""

    t: float
    sensors: tuple[str, ...]
    bend: Array
    coordinate: int  # its index in q

    @property
    def showing(self) -> int:
        return 1

    @property
    def dof(self) -> int:
        return 1

    @property
    def content(self) -> Array:
        return self.bend

    def read(self, process: Process, x: Array, pressure: Array) -> Reading:
        """h = q of the coordinate."""
        H = np.zeros((1, process.size))
        H[0, self.coordinate] = 1.0
        return Reading.plain(self.bend - x[self.coordinate], H, np.array([NOISE**2]))

    def correct(self, process: Process, belief: Belief, pressure: Array, rule: Array) -> Correction:
        return self.read(process, belief.x, pressure).correct(belief, rule)

    def only(self, _k: int) -> BendSample:
        return self

    def behind(self, _k: int) -> BendSample:
        return self

    def without(self, _k: int) -> BendSample:
        return self._replace(sensors=())


def feed(estimator: Any, name: str, t: float, msg: Any) -> None:
    """Feed the angle of a JointState."""
    robot: Robot = estimator.process.robot
    bend, sensor = as_array('position', msg.position), sensor_of(robot, name, 'bend')
    if bend.shape != (1,):
        raise ValueError(f'position: expected 1 number, got {bend.size}')
    first = next(k for k, of in enumerate(robot.coordinate_names) if of.startswith(f'{sensor.frame}_'))
    estimator.feed(BendSample(t, (name,), bend, first))


def at_rest(_robot: Robot, _sensor: Sensor) -> Any:
    return SimpleNamespace(position=[0.0])


BEND = SensorKind(
    message='sensor_msgs/msg/JointState',
    topic='bend/{sensor}',
    feed=feed,
    noise=lambda _config: (NOISE, 0.0),
    at_rest=at_rest,
)
