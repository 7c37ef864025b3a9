"""A force/torque sensor at the base: the wrench that carries the robot."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from soft_dynamics.array import Array, as_array
from soft_dynamics.description.sensors import Sensor
from soft_dynamics.reader import quantity
from soft_dynamics.robot import Robot

from ..measurement import Correction, Reading
from ..process_model import Belief, Process
from .sensor_kind import SensorKind, sensor_of, sensor_pose

LARGEST_WRENCH = 1e5  # [N m], [N] no sensor reads more


@dataclass(frozen=True)
class WrenchNoise:
    """Parameters: noise of the base force/torque sensor."""

    torque_noise: float = quantity(
        2.0,
        unit='N m',
        doc='torque noise of the base force/torque sensor; enlarged, since model errors last',
    )
    force_noise: float = quantity(6.0, unit='N', doc='force noise of the base force/torque sensor')


class WrenchSample(NamedTuple):
    """Wrench (torque, force) on the robot at its base, in its axes."""

    t: float
    sensors: tuple[str, ...]
    wrench: Array
    noise: tuple[float, float]  # [N m], [N]

    @property
    def showing(self) -> int:
        return 0

    @property
    def dof(self) -> int:
        return 6

    @property
    def content(self) -> Array:
        return self.wrench

    def read(self, process: Process, x: Array, pressure: Array) -> Reading:
        """Return the reading: the base carries what moves, h = W(q, qd, qdd), qdd from the model.   [Mehl, eq. 28]"""
        wrench, H = process.base_wrench(x, pressure)
        return Reading.plain(self.wrench - wrench, H, np.repeat(np.square(self.noise), 3))

    def correct(self, process: Process, belief: Belief, pressure: Array, rule: Array) -> Correction:
        return self.read(process, belief.x, pressure).correct(belief, rule)

    def only(self, _k: int) -> WrenchSample:
        return self

    def behind(self, _k: int) -> WrenchSample:
        return self

    def without(self, _k: int) -> WrenchSample:
        return self._replace(sensors=())


@functools.lru_cache(maxsize=64)
def _wrench_map(sensor: Sensor) -> Array:
    """Return the matrix (6, 6) from torque and force about a sensor to those about its frame; read-only."""
    X_FS = sensor_pose(sensor)
    out = np.zeros((6, 6))
    out[:3, :3] = out[3:, 3:] = X_FS[:3, :3]
    out[:3, 3:] = np.cross(X_FS[:3, 3], X_FS[:3, :3].T).T
    return out


def wrench_at_base(sensor: Sensor, wrench_S: Array) -> Array:
    """Return torque and force about the base and in its axes, from those about a sensor on it, in the sensor's axes."""
    return np.asarray(_wrench_map(sensor) @ wrench_S)


def wrench_sample(
    robot: Robot, t: float, name: str, wrench_S: Any, noise: tuple[float, float]
) -> WrenchSample:
    """Return the measurement of a wrench about the sensor `name`, in its axes."""
    sensor = sensor_of(robot, name, 'ft')
    w = as_array('wrench', wrench_S)
    if w.shape != (6,):
        raise ValueError(f'wrench: expected shape (6,), got {w.shape}')
    if np.abs(w).max() > LARGEST_WRENCH:
        raise ValueError(f'wrench: expected at most {LARGEST_WRENCH:g} N m and N, got {np.abs(w).max():.3g}')
    return WrenchSample(t, (name,), wrench_at_base(sensor, w), noise)


def at_rest(_robot: Robot, _sensor: Sensor) -> Array:
    """No load."""
    return np.zeros(6)


def feed(estimator: Any, name: str, t: float, wrench_S: Array) -> None:
    """Feed a wrench (torque, force) about the sensor, in its axes."""
    estimator.feed_wrench(t, name, wrench_S)


WRENCH = SensorKind(
    message='geometry_msgs/msg/WrenchStamped',
    topic='ft/wrench',
    feed=feed,
    noise=lambda config: (config.torque_noise, config.force_noise),
    at_rest=at_rest,
    shows_shape=False,
)
