"""hinge      REVOLUTE z, then FIXED along y                                               [Godage, eq. 1]"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from ..array import Array
from ..kernels.chain import FIXED, REVOLUTE
from ..reader import NAME, quantity
from .look import Joint, Visual
from .material import Material
from .pose_fit import Fit, continued
from .rig_parts import CutJoint, Hinges
from .segment import Coordinate, Segment, Vector

if TYPE_CHECKING:
    from ..model.assembly import Assembly

Z = 2


@dataclass(frozen=True)
class Hinge(Segment):
    """A planar segment of Godage: a hinge about z, then a rigid link along y."""

    smooth: ClassVar[bool] = False
    splined: ClassVar[bool] = True

    type: Literal['hinge']
    name: str = quantity(form=NAME)
    length: float = quantity(unit='m', above=0.0)
    mass: float = quantity(unit='kg', least=0.0)
    com_distance: float | None = quantity(
        None, unit='m', doc='from the hinge to the centre of mass; default: half the length'
    )
    inertia: float | None = quantity(
        None, unit='kg m^2', least=0.0, doc='about z through the centre of mass; default: m l^2/12'
    )
    offset: float = quantity(0.0, unit='rad', doc='angle of this hinge in the unloaded actuator')
    material: Material = Material()

    def own_coordinates(self) -> tuple[Coordinate, ...]:
        return (Coordinate('theta'),)

    def build(self, chain: Assembly) -> None:
        e = chain.element(REVOLUTE, axis=Z)
        if self.offset:
            c, s = np.cos(self.offset), np.sin(self.offset)
            e['turned'], e['R'] = 1, (c, -s, 0.0, s, c, 0.0, 0.0, 0.0, 1.0)
        chain.set_material(e, *self.material.lists(1))
        com = self.com_distance if self.com_distance is not None else 0.5 * self.length
        inertia = self.inertia if self.inertia is not None else self.mass * self.length**2 / 12.0
        chain.add_mass(e, self.mass, (0.0, com, 0.0), (0.0, 0.0, inertia))
        chain.element(FIXED, shift=(0.0, self.length, 0.0))

    def rig_parts(self) -> Hinges:
        return Hinges(CutJoint('theta', 'revolute', 'z', 0).of(self.material), self.offset)

    def inverse(self, X_BT: Array, near: Array) -> Fit:
        return hinge_from_pose(X_BT, self.length, self.offset, float(near[0]))

    @property
    def plate(self) -> tuple[Vector, Vector]:
        return (0.0, 0.0, 0.0), (np.pi / 2, 0.0, 0.0)

    def urdf_joints(self, slices: int) -> list[Joint]:
        look = Visual(self.display_radius, self.length, (0.0, 0.5 * self.length, 0.0), (np.pi / 2, 0.0, 0.0))
        turn = (0.0, 0.0, self.offset)
        return [
            Joint(f'{self.name}_theta', 'revolute', f'{self.name}_hinge', rpy=turn, visuals=(look,)),
            Joint(f'{self.name}_fixed', 'fixed', self.name, xyz=(0.0, self.length, 0.0)),
        ]


def hinge_from_pose(X_BT: Any, length: float, offset: float = 0.0, near: float = 0.0) -> Fit:
    """Return theta of a hinge about z followed by a link along y, the turn nearest to `near` [rad]. [Godage, eq. 1]"""
    from ..geometry import so3  # compiled; a program that only reads robot files does not need them
    from ..geometry.se3 import as_pose

    X = as_pose('X_BT', X_BT)
    R = X[..., :3, :3]
    angle = np.arctan2(R[..., 1, 0] - R[..., 0, 1], R[..., 0, 0] + R[..., 1, 1])
    c, s, o = np.cos(angle), np.sin(angle), 0.0 * angle
    R_fit = np.moveaxis(np.array([[c, -s, o], [s, c, o], [o, o, o + 1.0]]), (0, 1), (-2, -1))
    missed: Array = np.linalg.norm(X[..., :3, 3] - length * R_fit[..., 1], axis=-1)
    theta = continued((angle - offset)[..., None], np.array([near]))
    return Fit(theta, so3.angle(np.swapaxes(R_fit, -1, -2) @ R), missed)
