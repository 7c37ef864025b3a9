"""The types of segments: one file each, with everything that belongs to the type, and one line in TYPES."""

from .arc import Arc
from .base import Base
from .disc import Disc, Spring
from .hinge import Hinge
from .link import Link
from .material import Material
from .segment import Coordinate, Segment
from .universal import Universal

__all__ = [
    'TYPES',
    'Arc',
    'Base',
    'Coordinate',
    'Disc',
    'Hinge',
    'Link',
    'Material',
    'Segment',
    'Spring',
    'Universal',
]

TYPES: dict[str, type[Segment]] = {  # by `type` in the robot file
    'arc': Arc,
    'link': Link,
    'universal': Universal,
    'hinge': Hinge,
    'disc': Disc,
}
