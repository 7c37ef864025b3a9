"""What every segment type offers; the suite asks a segment for these and never for its type.

A type is a frozen dataclass, the schema of its block in the robot file, with `own_coordinates`, `build` and
`urdf_joints`. Everything else has a default.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import numpy as np

from ..array import Array
from ..reader import NAME, quantity

if TYPE_CHECKING:
    from ..model.assembly import Assembly
    from .look import Joint
    from .pose_fit import Fit
    from .rig_parts import RigParts

Vector = tuple[float, float, float]


class Coordinate(NamedTuple):
    """One coordinate of a segment: its name, what it measures, and how far it plausibly goes."""

    name: str  # in `coordinate_names` it follows the segment's name and an underscore
    kind: Literal['bend', 'turn', 'length'] = 'bend'  # a turn goes round and round
    unit: Literal['rad', 'm'] = 'rad'
    rest: float = 0.0  # its value in the unloaded body, if the material says nothing else
    scale: float = 1.0  # of a bend: its value per radian; of a length: that at rest [m]
    listed: bool = True  # has an entry in the lists of `material` and in the `gain` of a chamber


@dataclass(frozen=True)
class Segment:
    """A piece of the robot from one frame to the next."""

    type: str
    name: str = quantity(form=NAME)

    if TYPE_CHECKING:  # every type has these two, as fields or properties in their own place

        @property
        def length(self) -> float:
            """Along the body at rest [m]."""

        @property
        def mass(self) -> float:
            """Of the whole segment [kg]."""

    slenderness: ClassVar[float] = (
        0.3  # radius per length to draw a segment with that has no radius of its own
    )
    works: ClassVar[tuple[str, ...]] = ('gain',)  # what a chamber may do to it: `work` in the robot file
    smooth: ClassVar[bool] = True  # a fiber along it has the directions of its frames at both ends
    splined: ClassVar[bool] = False  # a robot of such segments only is drawn as a spline through their frames
    # Some pose leaves a coordinate without inertia: a robot of such segments has no other ones, is integrated in its
    # regular form, and is refused where coordinates must have inertia.
    singular: ClassVar[bool] = False

    # ---- coordinates -------------------------------------------------------------------------------------------------

    def own_coordinates(self) -> tuple[Coordinate, ...]:
        """Its coordinates, base to tip; a rigid segment has none."""
        raise NotImplementedError(f'{type(self).__name__}.own_coordinates')

    @property
    def moves(self) -> bool:
        return bool(self.own_coordinates())

    @property
    def entries(self) -> int:
        """How many entries the lists of its material and gains have."""
        return sum(coordinate.listed for coordinate in self.own_coordinates())

    def in_order(self, entries: Array) -> Array:
        """A list of the file with one entry per listed coordinate, in the order of these coordinates."""
        return entries

    def spread(self, entries: Array) -> Array:
        """A list of the file as one number per coordinate, 0 for those that are not listed."""
        values = np.zeros(len(self.own_coordinates()))
        values[[coordinate.listed for coordinate in self.own_coordinates()]] = self.in_order(entries)
        return values

    # ---- dynamics ----------------------------------------------------------------------------------------------------

    def build(self, chain: Assembly) -> None:
        """Append the elements that the segment is made of; the last one carries its end frame."""
        raise NotImplementedError(f'{type(self).__name__}.build')

    def build_regular(self, chain: Assembly) -> None:
        """The same of elements that no pose makes singular."""
        self.build(chain)

    def to_regular(self, x: Array, v: Array) -> tuple[Array, Array]:
        """Joint coordinates and rates (k, n) as those of the elements of `build_regular`."""
        return x, v

    def from_regular(self, t: Array, x: Array, v: Array, start: Array) -> tuple[Array, Array]:
        """The other way, of a motion over the times t (k,) that begins near the joint coordinates `start` (n,)."""
        return x, v

    def volume_gain(self, area: float, position: tuple[float, ...]) -> Array:
        """Force per pressure on each coordinate, p dV, of a chamber [m^2] at a place of the cross-section [m]."""
        raise NotImplementedError(f'{type(self).__name__}.volume_gain')

    def chamber_wrenches(self, area: float, position: tuple[float, ...]) -> tuple[Array, Array]:
        """Wrenches per pressure of a chamber at the end and the start of the segment, in the axes of these frames."""
        raise NotImplementedError(f'{type(self).__name__}.chamber_wrenches')

    def rig_parts(self) -> RigParts:
        """The parts that the virtual rig builds its model of the segment from."""
        raise ValueError(f'segment {self.name!r}: the virtual rig has no parts for the type {self.type}')

    # ---- pose --------------------------------------------------------------------------------------------------------

    def rigid_pose(self) -> Array:
        """X_BT (4, 4) from start to end of a segment without coordinates."""
        X_BT = np.eye(4)
        X_BT[2, 3] = self.length
        return X_BT

    def inverse(self, X_BT: Array, near: Array) -> Fit | None:
        """Coordinates from the pose of the end in the start's frame, one (4, 4) or many; of several the nearest ones.

        None: without a closed form, callers use a least-squares fit.
        """
        return None

    # ---- look --------------------------------------------------------------------------------------------------------

    @property
    def display_radius(self) -> float:
        """Radius for drawing the segment [m]: its own, or a default for its length."""
        own = getattr(self, 'radius', 0.0)
        return float(own or self.slenderness * self.length)

    @property
    def plate(self) -> tuple[Vector, Vector]:
        """Where the plate that the segment stands on is drawn in its start frame: (xyz, rpy)."""
        return (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)

    def curve(self, X_W0: Array, X_W1: Array, share: Array) -> Array | None:
        """Points of the drawn body between its two frames; None: those of `Robot.centerline`."""
        return None

    def urdf_joints(self, slices: int) -> list[Joint]:
        """Joints from its start frame to a link of its name; a bent body is cut into `slices`."""
        raise NotImplementedError(f'{type(self).__name__}.urdf_joints')

    def urdf_positions(self, x: Array, slices: int) -> dict[str, float]:
        """Positions of those joints that are not coordinates themselves, from the joint coordinates x."""
        return {}
