"""The sensors of the filter: one file each, and one line each in this table.

A kind further up leads those below: when it is heard, the state is published with its samples.
"""

from dataclasses import dataclass

from .bodies import MOCAP, VIVE, BodyNoise
from .fiber import FIBER, FiberNoise
from .sensor_kind import SensorKind
from .wrench import WRENCH, WrenchNoise

__all__ = ['SENSORS', 'SensorKind', 'SensorNoise']

SENSORS: dict[str, SensorKind] = {
    'mocap': MOCAP,
    'vive': VIVE,
    'fiber': FIBER,
    'ft': WRENCH,
}


@dataclass(frozen=True)
class SensorNoise(WrenchNoise, FiberNoise, BodyNoise):
    """Parameters of all sensors."""
