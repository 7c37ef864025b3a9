"""base       PRISMATIC x, y, z, REVOLUTE x, y, z before all others                        [Mehl, eq. 6, 7]"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ..array import Array
from ..description.inertia import check_inertia
from ..kernels.chain import PRISMATIC, REVOLUTE
from ..reader import quantity
from .look import Joint, Visual
from .pose_fit import ROUNDING
from .segment import Coordinate

if TYPE_CHECKING:
    from ..model.assembly import Assembly

Floats = tuple[float, ...]


@dataclass(frozen=True)
class Base:
    """The base of the robot: fixed, moved by a prescribed motion, or free."""

    type: Literal['fixed', 'prescribed', 'free'] = 'fixed'
    position: Floats = quantity(
        (0.0, 0.0, 0.0),
        unit='m',
        length=3,
        doc='of the base; prescribed, free: of the origin of its coordinates',
    )
    rpy: Floats = quantity((0.0, 0.0, 0.0), unit='rad', length=3, doc='fixed-axis roll, pitch, yaw')
    mass: float = quantity(0.0, unit='kg', least=0.0)
    inertia: Floats = quantity((0.0, 0.0, 0.0), unit='kg m^2', length=3, least=0.0)

    def __post_init__(self) -> None:
        check_inertia(self.inertia)
        if self.type == 'free' and not (self.mass > 0.0 and min(self.inertia) > 0.0):
            raise ValueError(
                'mass: a free base needs mass and inertia, or its acceleration is not determined'
            )

    @property
    def moves(self) -> bool:
        return self.type != 'fixed'

    def own_coordinates(self) -> tuple[Coordinate, ...]:
        """None of a fixed base; else the place and the angles Rx Ry Rz."""
        if not self.moves:
            return ()
        places = (Coordinate(name, 'length', 'm') for name in 'xyz')
        return (*places, *(Coordinate(name) for name in ('alpha', 'beta', 'gamma')))

    def build(self, chain: Assembly) -> None:
        if not self.moves:
            return
        for kind in (PRISMATIC, REVOLUTE):
            for axis in range(3):
                chain.element(kind, axis=axis, prescribed=int(self.type == 'prescribed'))
        chain.add_mass(chain.rows[-1], self.mass, (0.0, 0.0, 0.0), self.inertia)

    def urdf_joints(self, xyz: Floats, rpy: Floats, stand: Visual) -> list[Joint]:
        """The pose of the base in the world of ROS, then its six coordinates if it moves, with a plate at the end."""
        (x, y, z), (roll, pitch, yaw) = xyz, rpy
        mount = Joint('mount', 'fixed', 'base_link', 'z', (x, y, z), (roll, pitch, yaw), visuals=(stand,))
        if not self.moves:
            return [mount]
        joints = [mount._replace(child='base_mount', visuals=())]
        for coordinate, axis in zip(self.own_coordinates(), 'xyzxyz', strict=True):
            name, kind = f'base_{coordinate.name}', 'prismatic' if coordinate.unit == 'm' else 'revolute'
            joints.append(Joint(name, kind, f'{name}_link', axis))
        joints[-1] = joints[-1]._replace(child='base_link', visuals=(stand,))
        return joints


def base_angles(R_0B: Array, near: Array) -> Array:
    """Return (n, 3) angles of R = Rx Ry Rz over time, the first near `near`, each near the last.   [Mehl, eq. 7]

    At a second angle of +-pi/2 the third keeps its value and the first takes up the rest.
    """
    from ..geometry import disc_angles  # imports scipy's rotations, which takes time

    cyclic = [1, 2, 0]  # y, z, x as x, y, z
    return disc_angles.zxy_angles(R_0B[:, cyclic][:, :, cyclic], near, ROUNDING)
