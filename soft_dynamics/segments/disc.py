"""disc       REVOLUTE z, x (thread), z, x, y (disc): the five angles, gamma minus alpha if axis_angle

and, for integration, SWING (thread) and BALL (disc), without singular poses                  [Schultz, sec. II]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from ..array import Array, as_array
from ..description.inertia import check_inertia
from ..kernels.chain import BALL, REVOLUTE, SPRING, SWING
from ..reader import NAME, quantity
from .look import RIGID, Joint, Visual, between_plates
from .pose_fit import ROUNDING, Fit
from .rig_parts import DiscOnThread
from .segment import Coordinate, Segment, Vector

if TYPE_CHECKING:
    from ..model.assembly import Assembly

Floats = tuple[float, ...]
X, Y, Z = 0, 1, 2


@dataclass(frozen=True)
class Spring:
    """A spring between the rim of a disc and the rim of the previous disc."""

    angle: float = quantity(
        unit='rad', doc='place on the rim: angle about +z from the thread, seen from the centre'
    )
    stiffness: float = quantity(unit='N/m', least=0.0)
    rest_length: float = quantity(unit='m', least=0.0)


@dataclass(frozen=True)
class Disc(Segment):
    """A disc of Schultz on an inextensible thread, with coordinates alpha, beta, gamma, psi, phi."""

    works: ClassVar[tuple[str, ...]] = ('gain', 'end_force')
    smooth: ClassVar[bool] = False
    singular: ClassVar[bool] = True

    type: Literal['disc']
    name: str = quantity(form=NAME)
    thread_length: float = quantity(unit='m', above=0.0)
    radius: float = quantity(unit='m', above=0.0)
    mass: float = quantity(unit='kg', above=0.0)
    inertia: Floats | None = quantity(
        None, unit='kg m^2', length=3, above=0.0, doc='about the centre; default: that of a hoop'
    )
    inner_radius: float | None = quantity(
        None,
        unit='m',
        above=0.0,
        doc='radius of the previous disc, where the springs start; default: its `radius`',
    )
    springs: tuple[Spring, ...] = ()
    angles: Literal['axis_angle', 'zxz'] = 'axis_angle'
    damping: Floats = quantity((0.0,) * 5, unit='N m s/rad', length=5, least=0.0)
    damping_on: Literal['angles', 'rates'] = quantity(
        'angles',
        doc='angles: b qd, as in the paper; rates: b w on the body rates. `simulate` always uses rates: '
        '[Schultz](theory/schultz.md)',
    )

    def __post_init__(self) -> None:
        if self.inertia is not None:
            check_inertia(self.inertia)

    @property
    def length(self) -> float:
        """The thread's: the body runs along it."""
        return self.thread_length

    # ---- coordinates -------------------------------------------------------------------------------------------------

    def own_coordinates(self) -> tuple[Coordinate, ...]:
        names = ('alpha', 'beta', 'gamma', 'psi', 'phi')
        return tuple(Coordinate(name, 'bend' if name in ('beta', 'psi') else 'turn') for name in names)

    # ---- dynamics ----------------------------------------------------------------------------------------------------

    def build(self, chain: Assembly) -> None:
        first = chain.nq, chain.nv
        for j, axis in enumerate((Z, X, Z, X, Y)):
            shift = (0.0, 0.0, self.thread_length) if j == 2 else None
            e = chain.element(REVOLUTE, axis=axis, shift=shift)
        self._add_body(chain, e)
        self._add_springs(chain, first)
        if self.angles == 'axis_angle':
            T = np.eye(5)
            T[2, 0] = -1.0
            chain.blocks.append((first[0], T, np.zeros(5)))

    def build_regular(self, chain: Assembly) -> None:
        first = chain.nq, chain.nv
        _, beta, gamma, psi, phi = self.damping  # one damper serves both rates of the swing
        swing = chain.element(SWING)
        chain.set_material(swing, [0.0] * 2, [0.0] * 2, [beta, beta], [0.0] * 2)
        ball = chain.element(BALL, shift=(0.0, 0.0, self.thread_length))
        chain.set_material(ball, [0.0] * 3, [0.0] * 3, [psi, phi, gamma], [0.0] * 3)
        self._add_body(chain, ball)
        self._add_springs(chain, first)

    @property
    def _inertia(self) -> Floats:
        hoop = self.mass * self.radius**2
        return self.inertia if self.inertia is not None else (hoop / 2, hoop / 2, hoop)

    def _add_body(self, chain: Assembly, e: Any) -> None:
        chain.add_mass(e, self.mass, (0.0, self.radius, 0.0), self._inertia)

    def _add_springs(self, chain: Assembly, first: tuple[int, int]) -> None:
        inner = self.inner_radius or chain.disc_radius or self.radius
        chain.disc_radius = self.radius
        for spring in self.springs:
            record = np.zeros((), SPRING)
            rim = np.array([np.sin(spring.angle), 1.0 - np.cos(spring.angle), 0.0])
            record['iq'], record['length'] = first[0], self.thread_length
            record['k'], record['rest'] = spring.stiffness, spring.rest_length
            record['inner'], record['outer'] = inner * rim, self.radius * rim
            chain.springs.append(record)
            chain.spring_rates.append(first[1])

    def to_regular(self, x: Array, v: Array) -> tuple[Array, Array]:
        from ..geometry import disc_angles  # takes scipy's rotations along, which are slow to import

        quaternions = disc_angles.to_quaternions(x)
        return quaternions, np.einsum('kij,kj->ki', disc_angles.rate_matrix(x, quaternions), v)

    def from_regular(self, t: Array, x: Array, v: Array, start: Array) -> tuple[Array, Array]:
        """Joint angles and their rates; at a singular pose of the angles the smallest rates."""
        from ..geometry import disc_angles

        angles = disc_angles.angles_of_motion(t, x, v, start)
        A = disc_angles.rate_matrix(angles, x)
        return angles, np.einsum('kij,kj->ki', np.linalg.pinv(A, rcond=1e-9), v)

    def chamber_wrenches(self, area: float, position: tuple[float, ...]) -> tuple[Array, Array]:
        return area * np.array([self.radius, 0.0, 0.0, 0.0, 0.0, 1.0]), np.zeros(6)

    def rig_parts(self) -> DiscOnThread:
        return DiscOnThread(self.radius, self.inner_radius, self._inertia, self.damping, self.springs)

    # ---- pose --------------------------------------------------------------------------------------------------------

    def inverse(self, X_BT: Array, near: Array) -> Fit:
        return disc_from_pose(X_BT, self.thread_length, near, self.angles == 'axis_angle')

    # ---- look --------------------------------------------------------------------------------------------------------

    @property
    def plate(self) -> tuple[Vector, Vector]:
        return (0.0, self.radius, 0.0), (0.0, 0.0, 0.0)

    def curve(self, X_W0: Array, X_W1: Array, share: Array) -> Array:
        return between_plates(X_W0, X_W1, self.radius, share)

    def urdf_joints(self, slices: int) -> list[Joint]:
        names = ('alpha', 'beta', 'gamma', 'psi', 'phi')
        middle = (0.0, 0.0, 0.5 * self.thread_length)
        thread = Visual(0.03 * self.radius, self.thread_length, middle, color=RIGID)
        disc = Visual(self.radius, 0.08 * self.radius, (0.0, self.radius, 0.0))
        joints = [
            Joint(f'{self.name}_{name}', 'revolute', f'{self.name}_{name}_link', axis)
            for name, axis in zip(names, 'zxzxy', strict=True)
        ]
        joints[1] = joints[1]._replace(visuals=(thread,))
        joints[2] = joints[2]._replace(xyz=(0.0, 0.0, self.thread_length))
        joints[4] = joints[4]._replace(child=self.name, visuals=(disc,))
        return joints


def disc_from_pose(X_BT: Any, thread_length: float, near: Any = None, axis_angle: bool = True) -> Fit:
    """Return (alpha, beta, gamma, psi, phi) of a disc at its thread's end, the solution nearest to `near`. [Schultz]

    The direction of the thread gives alpha and beta, the rotation of the disc relative to it the others. There are
    always several solutions: (alpha + pi, -beta) is the same thread. Straight (beta = 0) alpha, at psi = +-pi/2 phi,
    keep the value of `near` and gamma takes up the rest; the pose stays exact. Limit: a disc not at its root.
    """
    from ..geometry import disc_angles  # takes scipy's rotations along, which are slow to import
    from ..geometry.se3 import as_pose

    X = as_pose('X_BT', X_BT)
    p = X[..., :3, 3].reshape(-1, 3)
    reach = np.linalg.norm(p, axis=-1)
    if not np.all(reach > 0.0):
        raise ValueError('X_BT: expected a disc away from its root, got position 0')
    shear = np.eye(5)
    shear[2, 0] = -1.0 if axis_angle else 0.0  # the joint's gamma is the public one minus alpha
    start = shear @ (np.zeros(5) if near is None else as_array('near', near))
    joints = disc_angles.of_poses(p / reach[:, None], X[..., :3, :3].reshape(-1, 3, 3), start, ROUNDING)
    q = np.asarray(np.linalg.solve(shear, joints.T).T, np.float64)
    missed = np.abs(reach - thread_length).reshape(X.shape[:-2])
    return Fit(q.reshape(*X.shape[:-2], 5), 0.0 * missed, missed)
