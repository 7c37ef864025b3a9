"""universal  [PRISMATIC z] REVOLUTE y, REVOLUTE x [PRISMATIC z]                            [Wang, eq. 3]"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ..array import Array
from ..kernels.chain import FIXED, PRISMATIC, REVOLUTE
from ..reader import NAME, quantity
from .look import PLATE, Joint, Visual, between_plates
from .material import Material
from .pose_fit import ROUNDING, Fit
from .rig_parts import CutJoint, Pieces
from .segment import Coordinate, Segment

if TYPE_CHECKING:
    from ..model.assembly import Assembly

X, Y, Z = 0, 1, 2
FOLDED = 1e-7  # [-] nearer to half a turn the end is folded back onto the start


@dataclass(frozen=True)
class Universal(Segment):
    """A segment of Wang: two straight links and a universal joint, theta1 about y, then theta2 about x."""

    type: Literal['universal']
    name: str = quantity(form=NAME)
    length: float = quantity(
        unit='m', above=0.0, doc='of the straight segment; each link has half of it at rest'
    )
    mass: float = quantity(unit='kg', least=0.0)
    joint_mass_fraction: float = quantity(
        0.0, least=0.0, most=1.0, doc='fraction of the mass located at the universal joint'
    )
    lengths: Literal['fixed', 'free'] = 'fixed'
    axis_order: Literal['yx', 'xy'] = 'yx'  # of the lists in material and gain; q is always in the order yx
    material: Material = Material()
    link_stiffness: float = quantity(
        0.0, unit='N/m', least=0.0, doc='of each link; used with `lengths: free`'
    )
    link_damping: float = quantity(
        0.0, unit='N s/m', least=0.0, doc='of each link; used with `lengths: free`'
    )

    # ---- coordinates -------------------------------------------------------------------------------------------------

    def own_coordinates(self) -> tuple[Coordinate, ...]:
        turns = Coordinate('theta1'), Coordinate('theta2')
        if self.lengths == 'fixed':
            return turns
        half = 0.5 * self.length
        first, last = (Coordinate(name, 'length', 'm', half, half, listed=False) for name in ('d1', 'd2'))
        return (first, *turns, last)

    def in_order(self, entries: Array) -> Array:
        return entries if self.axis_order == 'yx' else entries[::-1]

    # ---- dynamics ----------------------------------------------------------------------------------------------------

    def build(self, chain: Assembly) -> None:
        half = 0.5 * self.length
        k, k3, d, rest = (self.in_order(values) for values in self.material.lists(2))
        middle = self.joint_mass_fraction * self.mass
        end = 0.5 * (1.0 - self.joint_mass_fraction) * self.mass
        free = self.lengths == 'free'
        chain.add_mass(chain.rows[-1], end, (0.0, 0.0, 0.0))
        if free:
            e = chain.element(PRISMATIC, axis=Z)
            chain.set_material(e, [self.link_stiffness], [0.0], [self.link_damping], [half])
        for axis, j in ((Y, 0), (X, 1)):
            e = chain.element(REVOLUTE, axis=axis, shift=None if free or j else (0.0, 0.0, half))
            chain.set_material(e, [k[j]], [k3[j]], [d[j]], [rest[j]])
        chain.add_mass(e, middle, (0.0, 0.0, 0.0))
        if free:
            e = chain.element(PRISMATIC, axis=Z)
            chain.set_material(e, [self.link_stiffness], [0.0], [self.link_damping], [half])
        else:
            e = chain.element(FIXED, shift=(0.0, 0.0, half))
        chain.add_mass(e, end, (0.0, 0.0, 0.0))

    def rig_parts(self) -> Pieces:
        first, second = (0, 1) if self.axis_order == 'yx' else (1, 0)
        turns = CutJoint('theta1', 'revolute', 'y', first), CutJoint('theta2', 'revolute', 'x', second)
        joints = tuple(joint.of(self.material) for joint in turns)
        if self.lengths == 'fixed':
            return Pieces(joints)
        # Both links in series have half the stiffness of one.
        k, d = self.link_stiffness / 2, self.link_damping / 2
        return Pieces((*joints, CutJoint('d', 'prismatic', 'z', None, k=k, d=d)))

    # ---- pose --------------------------------------------------------------------------------------------------------

    def inverse(self, X_BT: Array, near: Array) -> Fit:
        return universal_from_pose(X_BT, self.length, self.lengths == 'free')

    # ---- look --------------------------------------------------------------------------------------------------------

    def curve(self, X_W0: Array, X_W1: Array, share: Array) -> Array:
        return between_plates(X_W0, X_W1, 0.0, share)

    def urdf_joints(self, slices: int) -> list[Joint]:
        half, radius, free = 0.5 * self.length, self.display_radius, self.lengths == 'free'
        before, after = (Visual(radius, half, (0.0, 0.0, z)) for z in (-0.5 * half, 0.5 * half))
        name, start = self.name, (0.0, 0.0, 0.0 if free else half)
        joints = [Joint(f'{name}_d1', 'prismatic', f'{name}_slide', visuals=(before,))] if free else []
        joints += [
            Joint(f'{name}_theta1', 'revolute', f'{name}_cross', 'y', start),
            Joint(f'{name}_theta2', 'revolute', f'{name}_middle', 'x', visuals=(after,)),
        ]
        end = Joint(f'{name}_d2', 'prismatic', name) if free else Joint(f'{name}_fixed', 'fixed', name)
        plate = Visual(1.06 * radius, 0.1 * radius, color=PLATE)
        return [*joints, end._replace(xyz=(0.0, 0.0, 0.0 if free else half), visuals=(plate,))]


def universal_from_pose(X_BT: Any, rest_length: float, free: bool = True) -> Fit:
    """Return (d1, theta1, theta2, d2) of a universal segment, or (theta1, theta2) of fixed links.     [Wang, eq. 4]

    theta1 = atan2(-R31, R11), theta2 = atan2(-R23, R22), right in every quadrant. With e the base's and n the tip's
    z axis, p = d1 e + d2 n = s (n + e) + r (n - e): two orthogonal directions, so no branch and no small sine,
        s = p.(n + e)/|n + e|^2     r = p.(n - e)/(|n - e|^2 + ROUNDING^2)     d1 = s - r,  d2 = s + r
    The straight pose determines only the sum; both links get half. Near it, an error of the pose enters their
    difference multiplied by 1/bend; |r| <= |s| keeps lengths from becoming negative. Limit: not folded back (n = -e).
    """
    from ..geometry import so3  # compiled; a program that only reads robot files does not need them
    from ..geometry.se3 import as_pose

    X = as_pose('X_BT', X_BT)
    R, p, e = X[..., :3, :3], X[..., :3, 3], np.array([0.0, 0.0, 1.0])
    theta1, theta2 = np.arctan2(-R[..., 2, 0], R[..., 0, 0]), np.arctan2(-R[..., 1, 2], R[..., 1, 1])
    s1, c1, s2, c2 = np.sin(theta1), np.cos(theta1), np.sin(theta2), np.cos(theta2)
    rows = [c1, s1 * s2, s1 * c2], [0.0 * c1, c2, -s2], [-s1, c1 * s2, c1 * c2]
    R_fit = np.moveaxis(np.array(rows), (0, 1), (-2, -1))
    n = R_fit[..., 2]
    d1 = d2 = np.full(theta1.shape, 0.5 * rest_length)
    if free:
        along, across = n + e, n - e
        small = np.sum(n[..., :2] ** 2, -1) / (1.0 + np.abs(n[..., 2]))  # 1 - |n_z|, to the last digit
        along[..., 2] = np.where(n[..., 2] < 0.0, small, along[..., 2])
        across[..., 2] = np.where(n[..., 2] > 0.0, -small, across[..., 2])
        folded = np.sum(along**2, -1)
        if np.any(folded < FOLDED**2):
            raise ValueError('X_BT: expected a tip that is not folded back onto its base')
        s, r = np.sum(p * along, -1) / folded, np.sum(p * across, -1) / (np.sum(across**2, -1) + ROUNDING**2)
        r = np.clip(r, -np.abs(s), np.abs(s))
        d1, d2 = s - r, s + r
    q = np.stack([d1, theta1, theta2, d2] if free else [theta1, theta2], -1)
    missed = p - d1[..., None] * e - d2[..., None] * n
    return Fit(q, so3.angle(np.swapaxes(R_fit, -1, -2) @ R), np.linalg.norm(missed, axis=-1))


# ---- from an arc [Wang, lemma 1] -------------------------------------------------------------------------------------


class UniversalPose(NamedTuple):
    d: float  # length of each of the two links [m]
    theta1: float  # about y [rad]
    theta2: float  # about x [rad]
    twist: float  # R_arc = R_universal Rz(twist) [rad]


def from_constant_curvature(phi: float, psi: float, length: float) -> UniversalPose:
    """Universal joint of an arc bent by psi [rad] in the direction phi [rad] with a length [m].      [Wang, lemma 1]

    Position and z axis of the tip are the same. The frames differ by a twist about that axis, which affects the
    following segments (the paper's "same orientation" holds for the axis only).

    d = l tan(psi/2)/psi; theta1 = atan2(cos phi sin psi, cos psi), also valid for psi beyond pi/2; theta2 as printed.

    Raises ValueError for |psi| >= pi, where the links become infinitely long.
    """
    if not (abs(psi) < math.pi and length > 0.0 and math.isfinite(phi)):
        raise ValueError(
            f'expected |psi| < pi, length > 0 and a finite phi, got psi {psi}, length {length}, phi {phi}'
        )
    half = float(np.sinc(0.5 * psi / np.pi)) / (2.0 * math.cos(0.5 * psi))  # tan(psi/2)/psi
    theta1 = math.atan2(math.cos(phi) * math.sin(psi), math.cos(psi))
    theta2 = -math.asin(math.sin(phi) * math.sin(psi))
    # The first columns of Ry(theta1) Rx(theta2) and of exp(psi (-sin phi, cos phi, 0)) differ by the twist.
    x_axis = (math.cos(theta1), 0.0, -math.sin(theta1))
    s1, c1, s2, c2 = math.sin(theta1), math.cos(theta1), math.sin(theta2), math.cos(theta2)
    y_axis = (s1 * s2, c2, c1 * s2)
    turn = 1.0 - math.cos(psi)
    arc_x = (
        1.0 - turn * math.cos(phi) ** 2,
        -turn * math.sin(phi) * math.cos(phi),
        -math.sin(psi) * math.cos(phi),
    )
    along = sum(a * b for a, b in zip(x_axis, arc_x, strict=True))
    across = sum(a * b for a, b in zip(y_axis, arc_x, strict=True))
    return UniversalPose(length * half, theta1, theta2, math.atan2(across, along))
