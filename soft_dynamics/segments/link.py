"""link       FIXED"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from ..description.inertia import check_inertia
from ..errors import shown
from ..kernels.chain import FIXED
from ..reader import NAME, quantity
from .look import RIGID, Joint, Visual
from .rig_parts import RigidBody
from .segment import Coordinate, Segment

if TYPE_CHECKING:
    from ..model.assembly import Assembly

Floats = tuple[float, ...]


@dataclass(frozen=True)
class Link(Segment):
    """A rigid link along z of the frame it starts from."""

    slenderness: ClassVar[float] = 0.45

    type: Literal['link']
    name: str = quantity(form=NAME)
    length: float = quantity(unit='m', least=0.0)
    mass: float = quantity(0.0, unit='kg', least=0.0)
    com: Floats | None = quantity(
        None, unit='m', length=3, doc='measured from the start of the link; default: its midpoint'
    )
    inertia: Floats = quantity(
        (0.0, 0.0, 0.0), unit='kg m^2', doc='about the centre of mass: xx, yy, zz[, xy, xz, yz]'
    )

    def __post_init__(self) -> None:
        if len(self.inertia) not in (3, 6) or min(self.inertia[:3]) < 0.0:
            raise ValueError(
                f'inertia: expected xx, yy, zz >= 0 [kg m^2] and maybe xy, xz, yz, found {shown(self.inertia)}'
            )
        check_inertia(self.inertia)

    def own_coordinates(self) -> tuple[Coordinate, ...]:
        return ()

    def build(self, chain: Assembly) -> None:
        e = chain.element(FIXED, shift=(0.0, 0.0, self.length))
        x, y, z = self.com if self.com is not None else (0.0, 0.0, 0.5 * self.length)
        chain.add_mass(e, self.mass, (x, y, z - self.length), self.inertia)

    def rig_parts(self) -> RigidBody:
        com = self.com if self.com is not None else (0.0, 0.0, 0.5 * self.length)
        return RigidBody(com, self.inertia)

    def urdf_joints(self, slices: int) -> list[Joint]:
        look = Visual(self.display_radius, self.length, (0.0, 0.0, -0.5 * self.length), color=RIGID)
        visuals = (look,) if self.length > 0.0 else ()
        return [Joint(f'{self.name}_fixed', 'fixed', self.name, xyz=(0.0, 0.0, self.length), visuals=visuals)]
