"""What the virtual rig makes of a segment: parts in words of mechanics, from which it builds its own, finer model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from .material import Material

if TYPE_CHECKING:
    from .disc import Spring

Floats = tuple[float, ...]


class CutJoint(NamedTuple):
    """A joint in every piece of a cut segment; all together turn or stretch by scale * (q - straight).

    q is a coordinate, with the force k (q - rest) + k3 (q - rest)^3 + d qd.
    """

    name: str
    kind: Literal['revolute', 'prismatic']
    axis: Literal['x', 'y', 'z']
    entry: int | None  # of q in the lists of the file; None: not listed
    k: float = 0.0
    k3: float = 0.0
    d: float = 0.0
    rest: float = 0.0
    scale: float = 1.0
    straight: float = 0.0

    def of(self, material: Material) -> CutJoint:
        """The same with the springs and dampers of its entry."""
        given = (material.stiffness, material.cubic_stiffness, material.damping, material.rest)
        left_out = (0.0, 0.0, 0.0, self.straight)
        j = self.entry or 0
        k, k3, d, rest = (
            values[j] if values else default for values, default in zip(given, left_out, strict=True)
        )
        return self._replace(k=k, k3=k3, d=d, rest=rest)


class Pieces(NamedTuple):
    """A body along z that is cut into equal pieces, with these joints in the middle of each."""

    joints: tuple[CutJoint, ...]
    radius: float = 0.0  # [m] 0: the rig chooses one


class Hinges(NamedTuple):
    """A body along y that is cut into equal pieces, each behind a hinge about z; unloaded it turns by `offset`."""

    joint: CutJoint
    offset: float  # [rad]


class RigidBody(NamedTuple):
    """A body along z that is not cut."""

    com: Floats  # [m] from its start
    inertia: Floats  # [kg m^2] about the com: xx, yy, zz[, xy, xz, yz]


class DiscOnThread(NamedTuple):
    """A disc that hangs on a thread by a point of its rim, with springs to the rim of the previous disc."""

    radius: float  # [m]
    inner_radius: float | None  # [m] of the previous disc; None: the last one's
    inertia: Floats  # [kg m^2] about its centre
    damping: Floats  # [N m s/rad] of alpha, beta, gamma, psi, phi
    springs: tuple[Spring, ...]


RigParts = Pieces | Hinges | RigidBody | DiscOnThread
