"""What the file of a sensor declares, and where sensors are."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from soft_dynamics.array import Array
from soft_dynamics.description.sensors import Sensor
from soft_dynamics.geometry.se3 import pose_from_rpy
from soft_dynamics.robot import Robot


class SensorKind(NamedTuple):
    """A kind of sensor, as `kind` of a robot file names it: its messages and what they tell a filter.

    feed(filter, name, t, record) gives the filter what the sensor `name` measured at t [s]; it raises a ValueError for
    what it refuses, or returns the refused parts by name. record: what `ros.conversions.record` makes of the message;
    a message that it does not know, as it is.
    """

    message: str  # its type
    topic: str  # in which {sensor} stands for the name of the sensor
    feed: Callable[[Any, str, float, Any], Any]
    noise: Callable[[Any], tuple[float, float]]  # of a FilterConfig: standard deviations, angular and linear
    at_rest: Callable[
        [Robot, Sensor], Any
    ]  # the record of a robot at rest: compiles the filter before it is needed
    is_body: bool = False  # one message has all bodies of the kind, and the differentiator takes them too
    shows_shape: bool = True  # else the state is a guess with these sensors alone
    largest_message: int = 2_000  # [bytes]


@functools.lru_cache(maxsize=64)
def sensor_pose(sensor: Sensor) -> Array:
    """X_FS of a sensor on its frame; not to be written to."""
    return pose_from_rpy(sensor.position, sensor.rpy)


def sensor_of(robot: Robot, name: str, kind: str) -> Sensor:
    """The sensor of this name; ValueError if the robot has none of this kind."""
    of_kind = {sensor.name: sensor for sensor in robot.description.sensors if sensor.kind == kind}
    if name not in of_kind:
        raise ValueError(f'expected a sensor of kind {kind} ({", ".join(of_kind) or "none"}), got {name!r}')
    return of_kind[name]
