"""Batch calls in joint coordinates: arrays (count, nv), already checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..array import Array
from ..description.robot_description import Description
from ..kernels import batch_calls, disc_springs, energy, kinematics
from ..kernels.chain import SPRING, Elements
from ..kernels.derivatives import inverse_derivatives
from ..kernels.forward_dynamics import OK, forward_dynamics
from ..kernels.inverse_dynamics import inverse_dynamics
from .actuation import actuators
from .assembly import assemble
from .compilation import announce_compilations
from .coordinates import coordinate_change

NO_STIFFNESS = np.zeros((0, 0))
NO_WRENCH = np.zeros((0, 6))

announce_compilations()


class JointModel:
    """A chain with its springs and chambers. Methods that can fail return OK or the coordinate that moves no mass."""

    def __init__(self, description: Description) -> None:
        self.build = build = assemble(description)
        self.chain: Elements = build.elements
        self.nv = build.nv
        self.change = coordinate_change(build)
        self.springs = np.array(build.springs, SPRING)
        self.actuators = actuators(description, build, self.change)
        self.prescribed = np.sort(self.chain['iv'][self.chain['prescribed'] == 1])
        self._variants: dict[tuple[bool, bool, bool], Elements] = {}

    def with_chain(self, chain: Elements) -> JointModel:
        """Return this model with another chain."""
        other = object.__new__(JointModel)
        other.__dict__.update(self.__dict__, chain=chain, _variants={})
        return other

    def variant(self, gravity: bool, elastic: bool, damping: bool) -> Elements:
        """The chain with some terms left out."""
        key = (gravity, elastic, damping)
        if all(key):
            return self.chain
        if key not in self._variants:
            chain = self.chain.copy()
            if not gravity:
                chain['gx'] = chain['gy'] = chain['gz'] = 0.0
            if not elastic:
                chain['k'] = chain['k3'] = 0.0
            if not damping:
                chain['d'] = 0.0
            chain['material'] = (
                np.any(chain['k'] != 0, 1) | np.any(chain['k3'] != 0, 1) | np.any(chain['d'] != 0, 1)
            )
            self._variants[key] = chain
        return self._variants[key]

    def inverse(self, chain: Elements, x: Array, v: Array, vd: Array, wrench: Array) -> tuple[Array, Array]:
        """(forces, wrench (n, f) of the ground about the world's origin), without the springs between discs."""
        tau, ground = np.empty_like(x), np.empty((x.shape[0], 6))
        if x.shape[0] == 1:
            n, f = inverse_dynamics(chain, x[0], v[0], vd[0], wrench[0], tau[0])
            ground[0] = *n, *f
        else:
            batch_calls.inverse_many(chain, x, v, vd, wrench, tau, ground)
        return tau, ground

    def forward(self, chain: Elements, x: Array, v: Array, tau: Array, wrench: Array, vd: Array) -> int:
        """Write the accelerations to vd, which contains those of prescribed coordinates."""
        status = np.full(x.shape[0], OK)
        if x.shape[0] == 1:
            status[0] = forward_dynamics(chain, x[0], v[0], tau[0], wrench[0], vd[0])
        else:
            batch_calls.forward_many(chain, x, v, tau, wrench, vd, status)
        bad = status[status != OK]
        return int(chain[bad[0]]['iv']) if bad.size else OK

    def derivatives(self, chain: Elements, x: Array, v: Array, vd: Array) -> tuple[Array, Array, Array]:
        """(dtau/dq, dtau/dqd, M), without the springs between discs."""
        count, n = x.shape
        dq, dv, M = np.empty((3, count, n, n))
        if count == 1:
            inverse_derivatives(chain, x[0], v[0], vd[0], NO_WRENCH, dq[0], dv[0], M[0])
        else:
            batch_calls.derivatives_many(chain, x, v, vd, np.zeros((count, 0, 6)), dq, dv, M)
        return dq, dv, M

    def linearize(
        self, x: Array, v: Array, tau: Array, slopes: Sequence[Array] = ()
    ) -> tuple[Array, Array, int]:
        """(A, B, status) with the springs between discs and further forces, both already in tau.

        slopes: derivatives of the further forces with respect to x and v, (count, nv, nv) each, or none.
        """
        count, n = x.shape
        A, B, vd = np.empty((count, 2 * n, 2 * n)), np.empty((count, 2 * n, n)), np.zeros((count, n))
        status = self.forward(self.chain, x, v, tau, np.zeros((count, 0, 6)), vd)
        if status != OK:
            return A, B, status
        dq, dv, M = self.derivatives(self.chain, x, v, vd)
        for own, further in zip((dq, dv), slopes, strict=False):
            own += further
        for i in range(count):
            if self.springs.size:
                disc_springs.spring_forces(self.springs, x[i], np.zeros(n), dq[i])
            bad = batch_calls.state_matrices(dq[i], dv[i], M[i], self.prescribed, A[i], B[i])
            if bad != OK:
                return A, B, int(bad)
        return A, B, OK

    def material(self, x: Array, v: Array) -> tuple[Array, Array, Array]:
        """(spring forces, damper forces, stored energy) of the coordinates and of the springs between discs."""
        elastic, damping, stored = np.empty_like(x), np.empty_like(x), np.empty(x.shape[0])
        for i in range(x.shape[0]):
            stored[i] = energy.material(self.chain, x[i], v[i], elastic[i], damping[i])
            if self.springs.size:
                stored[i] += disc_springs.spring_forces(self.springs, x[i], elastic[i], NO_STIFFNESS)
        return elastic, damping, stored

    def spring_force(self, x: Array) -> Array:
        """Forces of the springs between discs only."""
        force = np.zeros_like(x)
        if self.springs.size:
            for i in range(x.shape[0]):
                disc_springs.spring_forces(self.springs, x[i], force[i], NO_STIFFNESS)
        return force

    def gravity_energy(self, x: Array) -> Array:
        return np.array([energy.gravity_energy(self.chain, row) for row in x])

    def poses(self, x: Array) -> Array:
        """Pose of the frame behind every element (count, N, 4, 4)."""
        X = np.empty((x.shape[0], self.chain.size, 4, 4))
        if x.shape[0] == 1:
            kinematics.poses(self.chain, x[0], X[0])
        else:
            batch_calls.poses_many(self.chain, x, X)
        return X

    def jacobian(self, x: Array, element: int) -> Array:
        J = np.empty((x.shape[0], 6, self.nv))
        for i in range(x.shape[0]):
            kinematics.jacobian(self.chain, x[i], element, J[i])
        return J

    def actuation(self, x: Array) -> Array:
        """Matrices (count, nv, chambers) from pressures to forces."""
        count, chain = x.shape[0], self.variant(False, False, False)
        A, zero = np.repeat(self.actuators.columns[None], count, axis=0), np.zeros((count, self.nv))
        for k in np.flatnonzero(np.any(self.actuators.wrenches, axis=(1, 2))):
            wrench = np.repeat(self.actuators.wrenches[k][None], count, axis=0)
            A[:, :, k] -= self.inverse(chain, x, zero, zero, wrench)[0]
        return A

    def wrenches(self, x: Array, external: Mapping[int, Array]) -> Array:
        """Transform wrenches from world axes to the axes of their frames, (count, N, 6); (count, 0, 6) for none."""
        count = x.shape[0]
        if not external:
            return np.zeros((count, 0, 6))
        X, local = self.poses(x), np.zeros((count, self.chain.size, 6))
        for element, w in external.items():
            both = np.broadcast_to(w, (count, 6)).reshape(count, 2, 3)
            local[:, element] += np.einsum('kji,kaj->kai', X[:, element, :3, :3], both).reshape(count, 6)
        return local
