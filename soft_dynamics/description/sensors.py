"""What a robot file says of its sensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..reader import NAME, TOPIC_NAME, quantity

Floats = tuple[float, ...]


@dataclass(frozen=True)
class Sensor:
    """A sensor and the frame it is mounted on."""

    name: str = quantity(form=TOPIC_NAME)
    kind: Literal['mocap', 'vive', 'fiber', 'ft'] = quantity()
    frame: str = quantity(form=NAME)
    position: Floats = quantity((0.0, 0.0, 0.0), unit='m', length=3)
    rpy: Floats = quantity((0.0, 0.0, 0.0), unit='rad', length=3)
