"""arc        ARC (u, v[, h]); difference coordinates are a linear map of these          [Jensen] [Mehl]"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from ..array import Array, as_array
from ..kernels.chain import ARC, DISTRIBUTED, LUMPED, POINT
from ..reader import NAME, quantity
from .look import PLATE, STRAIGHT, Joint, Visual
from .material import Material
from .pose_fit import TINY, Fit
from .rig_parts import CutJoint, Pieces
from .segment import Coordinate, Segment

if TYPE_CHECKING:
    from ..model.assembly import Assembly

PLACEMENTS = {'lumped': LUMPED, 'point': POINT, 'distributed': DISTRIBUTED}
SLANT = 1e-7  # [-] below this slant of the tip an arc counts as straight
FOLDED = 1e-6  # [rad] this close to half a turn, twist and bend direction of an arc cannot be distinguished


@dataclass(frozen=True)
class Arc(Segment):
    """A constant-curvature segment: Jensen (`bend` coordinates) or Mehl (`difference` coordinates)."""

    slenderness: ClassVar[float] = 0.25
    works: ClassVar[tuple[str, ...]] = ('gain', 'volume', 'tip_wrench')

    type: Literal['arc']
    name: str = quantity(form=NAME)
    length: float = quantity(unit='m', above=0.0)
    mass: float = quantity(unit='kg', least=0.0)
    radius: float = quantity(0.0, unit='m', least=0.0, doc='of the cross-section; gives the rotary inertia')
    extensible: bool = False
    placement: Literal['lumped', 'point', 'distributed'] = 'lumped'
    quadrature_points: int = quantity(8, least=1, most=16)
    coordinates: Literal['bend', 'difference'] = 'bend'
    lever: float = quantity(0.0, unit='m', least=0.0, doc='d; required by difference coordinates')
    material: Material = Material()

    def __post_init__(self) -> None:
        if self.coordinates == 'difference' and self.lever == 0.0:
            raise ValueError('lever: expected > 0 [m] with difference coordinates, found 0')

    # ---- coordinates -------------------------------------------------------------------------------------------------

    def own_coordinates(self) -> tuple[Coordinate, ...]:
        if self.coordinates == 'difference':
            across = (Coordinate(name, 'bend', 'm', scale=self.lever) for name in ('dx', 'dy'))
            along = Coordinate('dl', 'length', 'm', 0.0, self.length)
        else:
            across = (Coordinate(name) for name in ('u', 'v'))
            along = Coordinate('h', 'length', 'm', self.length, self.length)
        return (*across, along) if self.extensible else tuple(across)

    # ---- dynamics ----------------------------------------------------------------------------------------------------

    def build(self, chain: Assembly) -> None:
        n = 3 if self.extensible else 2
        e = chain.element(
            ARC,
            n=n,
            length=self.length,
            arc_mass=self.mass,
            radius=self.radius,
            points=self.quadrature_points,
        )
        e['placement'] = PLACEMENTS[self.placement] if self.mass > 0.0 else 0
        k, k3, d, rest = self.material.lists(n)
        if self.coordinates == 'bend':
            if self.extensible and not self.material.rest:
                rest[2] = self.length
            chain.set_material(e, k, k3, d, rest)
            return
        # u = -Delta_y/d, v = Delta_x/d, h = L0 + delta_L: springs and dampers change with powers of the lever.
        T, offset = np.zeros((n, n)), np.zeros(n)
        T[0, 1], T[1, 0] = -1.0 / self.lever, 1.0 / self.lever
        if self.extensible:
            T[2, 2], offset[2] = 1.0, self.length
        chain.blocks.append((int(e['iq']), T, offset))
        order = [1, 0, 2][:n]
        power = np.array([self.lever, self.lever, 1.0])[:n]
        k, k3, d = (k * power**2)[order], (k3 * power**4)[order], (d * power**2)[order]
        chain.set_material(e, k, k3, d, T @ rest + offset)

    def volume_gain(self, area: float, position: tuple[float, ...]) -> Array:
        """Force per pressure on the coordinates: p dV of a chamber of length h + y u - x v."""
        x, y = position
        u, v = area * y, -area * x
        bend = (u, v) if self.coordinates == 'bend' else (v / self.lever, -u / self.lever)
        return np.array((*bend, area) if self.extensible else bend)

    def chamber_wrenches(self, area: float, position: tuple[float, ...]) -> tuple[Array, Array]:
        # [Mehl, eq. 18-21, the sign of m_y corrected]: the same components at tip and base, in different frames.
        x, y = position
        at_tip = area * np.array([y, -x, 0.0, 0.0, 0.0, 1.0])
        return at_tip, -at_tip

    def rig_parts(self) -> Pieces:
        """Rotate u about x and v about y, stretch to h; with difference coordinates u = -Delta_y/d, v = Delta_x/d."""
        if self.coordinates == 'bend':
            bends = CutJoint('u', 'revolute', 'x', 0), CutJoint('v', 'revolute', 'y', 1)
            slide = CutJoint('h', 'prismatic', 'z', 2, straight=self.length)
        else:
            bends = (
                CutJoint('v', 'revolute', 'y', 0, scale=1.0 / self.lever),
                CutJoint('u', 'revolute', 'x', 1, scale=-1.0 / self.lever),
            )
            slide = CutJoint('h', 'prismatic', 'z', 2)
        joints = (*bends, slide) if self.extensible else bends
        return Pieces(tuple(joint.of(self.material) for joint in joints), self.radius)

    # ---- pose --------------------------------------------------------------------------------------------------------

    def inverse(self, X_BT: Array, near: Array) -> Fit:
        if self.coordinates == 'difference':
            return differences_from_pose(X_BT, self.length, self.lever, self.extensible)
        return arc_from_pose(X_BT, None if self.extensible else self.length)

    # ---- look --------------------------------------------------------------------------------------------------------

    def urdf_joints(self, slices: int) -> list[Joint]:
        step, radius = self.length / slices, self.display_radius
        body = Visual(radius, step, (0.0, 0.0, 0.5 * step))
        if self.extensible:  # drawn behind the slide, towards the base
            body = Visual(radius, step, (0.0, 0.0, -0.5 * step))
        joints = [
            Joint(f'{self.name}_direction', 'revolute', f'{self.name}_plane'),
            Joint(
                f'{self.name}_bend',
                'revolute',
                f'{self.name}_cut0',
                'x',
                visuals=() if self.extensible else (body,),
            ),
        ]
        for k in range(1, slices + 1):
            last = k == slices
            if self.extensible:
                leader = f'{self.name}_slide' if k > 1 else ''
                name = f'{self.name}_slide{k}' if k > 1 else f'{self.name}_slide'
                joints.append(
                    Joint(name, 'prismatic', f'{self.name}_slice{k}', leader=leader, visuals=(body,))
                )
            joints.append(
                Joint(
                    f'{self.name}_bend{k}',
                    'revolute',
                    f'{self.name}_cut{k}',
                    'x',
                    xyz=(0.0, 0.0, 0.0 if self.extensible else step),
                    leader=f'{self.name}_bend',
                    multiplier=1.0 if last else 2.0,
                    visuals=() if last or self.extensible else (body,),
                )
            )
        back = Joint(
            f'{self.name}_back', 'revolute', self.name, leader=f'{self.name}_direction', multiplier=-1.0
        )
        return [*joints, back._replace(visuals=(Visual(1.03 * radius, 0.1 * radius, color=PLATE),))]

    def urdf_positions(self, x: Array, slices: int) -> dict[str, float]:
        u, v = float(x[0]), float(x[1])
        phi = float(np.hypot(u, v))
        cut = phi / (2.0 * slices)
        values = {
            f'{self.name}_direction': float(np.arctan2(v, u)) if phi > STRAIGHT else 0.0,
            f'{self.name}_bend': cut,
        }
        if self.extensible:
            values[f'{self.name}_slide'] = float(x[2]) / slices * float(np.sinc(cut / np.pi))
        return values


# ---- inverse: Jensen's (u, v) and Mehl's differences -----------------------------------------------------------------


def bend_from_rotation(R_BT: Any) -> Fit:
    """Return (u, v) of an arc from the rotation of its tip, R_BT = exp([(u, v, 0)]x) Rz(twist).     [Jensen, eq. 2]

    An arc has no twist; the twist is the rotation error. Limit: a bend below pi; R cannot tell phi from phi - 2 pi.
    """
    from ..geometry.se3 import as_rotation

    return _bend(as_rotation('R_BT', R_BT))


def _bend(R: Array) -> Fit:
    x, y, z = R[..., 0, 2], R[..., 1, 2], R[..., 2, 2]  # (v sin(phi)/phi, -u sin(phi)/phi, cos(phi))
    sine = np.hypot(x, y)
    phi, axis = np.arctan2(sine, z), np.array([-y, x]) / np.maximum(sine, TINY)
    twist = np.abs(np.arctan2(R[..., 1, 0] - R[..., 0, 1], R[..., 0, 0] + R[..., 1, 1]))
    back = (sine < FOLDED) & (z < 0.0)
    if np.any(back):  # assume no twist; R + R^T gives the axis
        angle = 0.5 * np.arctan2(R[..., 1, 0] + R[..., 0, 1], R[..., 0, 0] - R[..., 1, 1])
        way = np.array([np.cos(angle), np.sin(angle)])
        axis = np.where(back, np.where(np.sum(way * axis, 0) < 0.0, -way, way), axis)
        twist = np.where(back, 0.0, twist)
    return Fit(np.moveaxis(phi * axis, 0, -1), twist, np.full_like(twist, np.nan))


def arc_from_pose(X_BT: Any, length: float | None = None) -> Fit:
    """Return (u, v, h) of an arc from the pose of its tip; with a given length h [m], (u, v).      [Jensen, eq. 2, 3]

    The rotation gives the bend; the position gives the length and, beyond half a turn, the direction. Limit: a bend
    below 2 pi.
    """
    from ..geometry.se3 import as_pose  # compiled; a program that only reads robot files does not need it

    X = as_pose('X_BT', X_BT)
    bend, rotation_error, _ = _bend(X[..., :3, :3])
    phi = np.linalg.norm(bend, axis=-1, keepdims=True)
    short = _arc_through(bend, X[..., :3, 3], length)
    far = _arc_through((phi - 2.0 * np.pi) * bend / np.maximum(phi, TINY), X[..., :3, 3], length)
    better = np.asarray(far.position_error < short.position_error)
    if length is None:
        backwards, far_backwards = short.q[..., 2] <= 0.0, far.q[..., 2] <= 0.0
        better = np.where(backwards == far_backwards, better, backwards)
    better &= phi[..., 0] > SLANT  # a whole turn, which ends where it began, counts as none
    q = np.where(better[..., None], far.q, short.q)
    return Fit(q, rotation_error, np.where(better, far.position_error, short.position_error))


def arc_from_position(p_BT: Any, length: float | None = None) -> Fit:
    """Return (u, v, h) of an arc from the position of its tip alone; with a given length h [m], (u, v).   [Mehl, eq. 3]

    tan(phi/2) = |p_xy|/p_z,  h = |p| (phi/2)/sin(phi/2)      Limits: a bend below 2 pi, and a tip not at the base.
    """
    p = as_array('p_BT', p_BT)
    if p.shape[-1:] != (3,) or not np.all(np.any(p, axis=-1)):
        raise ValueError(f'p_BT: expected a position other than the base, got {p.tolist()}')
    x, y, z = np.moveaxis(p, -1, 0)
    across = np.hypot(x, y)
    half = np.arctan2(across, z)
    if np.any((across == 0.0) & (z < 0.0)):
        raise ValueError(f'p_BT: expected a tip within reach of an arc, got {p.tolist()} behind the base')
    bend = (2.0 * half / np.maximum(across, TINY))[..., None] * np.stack([-y, x], -1)
    if length is not None:
        return _arc_through(bend, p, length)
    reach = np.hypot(across, z) / np.sinc(half / np.pi)
    return Fit(np.concatenate([bend, reach[..., None]], -1), np.full_like(reach, np.nan), 0.0 * reach)


def differences_from_pose(X_BT: Any, rest_length: float, lever: float, extensible: bool = True) -> Fit:
    """Return (Delta_x, Delta_y[, delta_L]) from the tip's pose: d v, -d u, h - L0. Limits: `arc_from_pose`. [Mehl]"""
    return _to_differences(arc_from_pose(X_BT, None if extensible else rest_length), rest_length, lever)


def differences_from_position(p_BT: Any, rest_length: float, lever: float, extensible: bool = True) -> Fit:
    """Return (Delta_x, Delta_y[, delta_L]) from the tip's position. Limits: `arc_from_position`.     [Mehl, eq. 3]"""
    return _to_differences(arc_from_position(p_BT, None if extensible else rest_length), rest_length, lever)


def _to_differences(fit: Fit, rest_length: float, lever: float) -> Fit:
    u, v, *h = np.moveaxis(fit.q, -1, 0)
    return fit._replace(q=np.stack([lever * v, -lever * u, *(value - rest_length for value in h)], -1))


def _arc_through(bend: Array, p_BT: Array, length: float | None) -> Fit:
    """Return the arc of this bend that ends nearest to p: p = h g(u, v)."""
    phi = np.linalg.norm(bend, axis=-1)
    f1, f2 = np.sinc(phi / np.pi), 0.5 * np.sinc(0.5 * phi / np.pi) ** 2
    g = np.stack([f2 * bend[..., 1], -f2 * bend[..., 0], f1], -1)
    h = np.sum(p_BT * g, -1) / np.sum(g * g, -1) if length is None else np.full(phi.shape, length)
    q = np.concatenate([bend, h[..., None]], -1) if length is None else bend
    return Fit(q, np.full_like(phi, np.nan), np.linalg.norm(p_BT - h[..., None] * g, axis=-1))
