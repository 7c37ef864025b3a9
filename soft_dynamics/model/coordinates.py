"""Map from public to joint coordinates: q_joint = T q + offset with constant T.

Mehl's length differences are a rotated and scaled bend (u, v), and Schultz' axis-angle gamma is the joint's plus alpha.
All other coordinates are joint coordinates.
"""

from __future__ import annotations

import numpy as np

from ..array import Array
from .assembly import Assembly


class SameCoordinates:
    """Identity map: the public coordinates are the joint coordinates."""

    trivial = True

    def position(self, q: Array) -> Array:
        return q

    def rate(self, qd: Array) -> Array:
        return qd

    def force(self, tau: Array) -> Array:
        return tau

    public_position = public_rate = public_force = position

    def public_matrix(self, M: Array) -> Array:
        return M

    def columns(self, J: Array) -> Array:
        return J

    def rows(self, A: Array) -> Array:
        return A

    def joint_matrix(self, D: Array) -> Array:
        return D

    def public_slopes(self, A: Array, B: Array) -> tuple[Array, Array]:
        return A, B


class ChangedCoordinates(SameCoordinates):
    """q_joint = T q + offset; the last axis of an array holds the coordinates."""

    trivial = False

    def __init__(self, T: Array, offset: Array) -> None:
        self.T, self.T_inverse, self.offset = T, np.linalg.inv(T), offset

    def position(self, q: Array) -> Array:
        return np.ascontiguousarray(q @ self.T.T + self.offset)

    def rate(self, qd: Array) -> Array:
        return np.ascontiguousarray(qd @ self.T.T)

    def force(self, tau: Array) -> Array:
        """Joint force of a public force: T^-T tau."""
        return np.ascontiguousarray(tau @ self.T_inverse)

    def public_position(self, x: Array) -> Array:
        return np.ascontiguousarray((x - self.offset) @ self.T_inverse.T)

    def public_rate(self, v: Array) -> Array:
        return np.ascontiguousarray(v @ self.T_inverse.T)

    def public_force(self, tau: Array) -> Array:
        return np.ascontiguousarray(tau @ self.T)

    def public_matrix(self, M: Array) -> Array:
        """T^T M T of a matrix that maps rates to forces."""
        return np.ascontiguousarray(self.T.T @ M @ self.T)

    def joint_matrix(self, D: Array) -> Array:
        """The inverse of `public_matrix`."""
        return np.ascontiguousarray(self.T_inverse.T @ D @ self.T_inverse)

    def columns(self, J: Array) -> Array:
        """J T of a Jacobian."""
        return np.ascontiguousarray(J @ self.T)

    def rows(self, A: Array) -> Array:
        """T^T A of a matrix with forces as columns."""
        return np.ascontiguousarray(self.T.T @ A)

    def public_slopes(self, A: Array, B: Array) -> tuple[Array, Array]:
        """Derivatives of (rates, accelerations) with respect to (coordinates, rates) and forces."""
        T, back = np.kron(np.eye(2), self.T), np.kron(np.eye(2), self.T_inverse)
        return back @ A @ T, back @ B @ self.T_inverse.T


def coordinate_change(build: Assembly) -> SameCoordinates:
    """The coordinate map of an assembled robot."""
    if not build.blocks:
        return SameCoordinates()
    T, offset = np.eye(build.nv), np.zeros(build.nv)
    for first, block, shift in build.blocks:
        where = slice(first, first + shift.size)
        T[where, where], offset[where] = block, shift
    return ChangedCoordinates(T, offset)
