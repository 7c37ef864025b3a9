"""Dampers of discs in the five angles: on the angles, or on the body rates of thread and disc.

angles  b qd                                                                             [Schultz, sec. IV]
rates   b w as in `simulate`, from a Rayleigh function that is regular in every pose

        2 R = b_beta (beta'^2 + sin^2 beta alpha'^2) + b_psi w_x^2 + b_phi w_y^2 + b_gamma w_z^2

with w = b (s + gamma') + a psi' + e_y phi', symbols as in `disc_dynamics`. In planar motion both laws are the same.
"""

from __future__ import annotations

import numpy as np

from ..array import Array
from ..description.robot_description import Description
from ..segments import Disc
from .assembly import Assembly


class Dampers:
    """Forces of the dampers that act on several joints, in public coordinates; `any` is False if there are none."""

    def __init__(self, description: Description, build: Assembly) -> None:
        discs = [s for s in description.segments if isinstance(s, Disc) and any(s.damping)]
        self.any = bool(discs)
        self._of_angles = np.zeros(build.nv)
        self._of_rates: list[tuple[slice, Array, bool]] = []
        for s in discs:
            where = build.rates_of[s.name]
            if s.damping_on == 'angles':
                self._of_angles[where] = s.damping
            else:
                _, beta, gamma, psi, phi = s.damping
                self._of_rates.append((where, np.array([beta, beta, psi, phi, gamma]), s.angles == 'zxz'))

    def force(self, q: Array, qd: Array) -> Array:
        """(count, nq)"""
        force = self._of_angles * qd
        for where, b, zxz in self._of_rates:
            A = _rates(q[:, where], zxz)[0]
            force[:, where] = np.einsum('kij,i,kil,kl->kj', A, b, A, qd[:, where])
        return force

    def slopes(self, q: Array, qd: Array) -> tuple[Array, Array]:
        """Derivatives of `force` with respect to q and qd, (count, nq, nq) each."""
        dq, dqd = (
            np.zeros((len(q), *self._of_angles.shape * 2)),
            np.tile(np.diag(self._of_angles), (len(q), 1, 1)),
        )
        for where, b, zxz in self._of_rates:
            A, changes = _rates(q[:, where], zxz)
            v, block = qd[:, where], np.zeros((len(q), 5, 5))
            for j, dA in changes.items():
                block[:, :, j] = np.einsum('kij,i,kil,kl->kj', dA, b, A, v)
                block[:, :, j] += np.einsum('kij,i,kil,kl->kj', A, b, dA, v)
            dq[:, where, where], dqd[:, where, where] = block, np.einsum('kij,i,kil->kjl', A, b, A)
        return dq, dqd


def _rates(angles: Array, zxz: bool) -> tuple[Array, dict[int, Array]]:
    """The matrix (count, 5, 5) from rates of the angles to beta', sin beta alpha', w, and its slopes by angle."""
    (_, sb, _, s_psi, s_phi), (_, cb, _, c_psi, c_phi) = np.sin(angles).T, np.cos(angles).T
    zero, one = np.zeros_like(sb), np.ones_like(sb)
    a, a_phi = np.stack([c_phi, zero, s_phi], 1), np.stack([-s_phi, zero, c_phi], 1)
    b = np.stack([-s_phi * c_psi, s_psi, c_phi * c_psi], 1)
    b_psi = np.stack([s_phi * s_psi, c_psi, -c_phi * s_psi], 1)
    b_phi = np.stack([-c_phi * c_psi, zero, -s_phi * c_psi], 1)
    spin = (cb if zxz else cb - 1.0)[:, None]
    A, by_beta, by_psi, by_phi = np.zeros((4, len(angles), 5, 5))
    A[:, 0, 1], A[:, 1, 0], A[:, 3, 4] = one, sb, one
    A[:, 2:, 0], A[:, 2:, 2], A[:, 2:, 3] = spin * b, b, a
    by_beta[:, 1, 0], by_beta[:, 2:, 0] = cb, -sb[:, None] * b
    by_psi[:, 2:, 0], by_psi[:, 2:, 2] = spin * b_psi, b_psi
    by_phi[:, 2:, 0], by_phi[:, 2:, 2], by_phi[:, 2:, 3] = spin * b_phi, b_phi, a_phi
    return A, {1: by_beta, 3: by_psi, 4: by_phi}
