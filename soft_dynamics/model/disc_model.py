"""Batch dynamics of robots of discs in their angles: arrays (count, nq), already checked."""

from __future__ import annotations

import numpy as np

from ..array import Array
from ..description.robot_description import Description
from ..kernels import disc_dynamics
from ..kernels.chain import SPRING, Elements
from ..kernels.disc_dynamics import Discs
from ..kernels.forward_dynamics import OK
from ..segments import Disc
from .assembly import assemble


class DiscModel:
    """Counterpart of `JointModel` for discs; `disc_dynamics` explains why it is more accurate."""

    def __init__(self, description: Description, frames: dict[str, int]) -> None:
        self.build = assemble(description, regular=True)
        # Wrenches refer to the elements of the other chain, which has the same frames.
        self.moved = [(frames[name], element) for name, element in self.build.frames.items()]
        self._zxz = np.array([isinstance(s, Disc) and s.angles == 'zxz' for s in description.segments], float)
        self._parts = {(g, k): self._without(g, k) for g in (False, True) for k in (False, True)}

    @staticmethod
    def suits(description: Description) -> bool:
        """Return whether the robot has discs on a fixed base."""
        return not description.base.moves and all(isinstance(s, Disc) for s in description.segments)

    def _without(self, gravity: bool, elastic: bool) -> Discs:
        """The chain without dampers, which act on the angles here, and without gravity or springs."""
        chain: Elements = self.build.elements
        chain['material'] = chain['d'] = 0
        if not gravity:
            chain['gx'] = chain['gy'] = chain['gz'] = 0.0
        springs = np.array(self.build.springs if elastic else [], SPRING)
        return Discs(chain, springs, 5 * (springs['iq'] // 8), self._zxz)

    def _wrenches(self, wrench: Array) -> Array:
        if not wrench.shape[1]:
            return wrench
        moved = np.zeros((len(wrench), len(self.build.rows), 6))
        for source, target in self.moved:
            moved[:, target] = wrench[:, source]
        return moved

    def inverse(
        self, states: dict[str, Array], wrench: Array, gravity: bool, elastic: bool
    ) -> tuple[Array, Array]:
        """(forces without dampers, wrench (n, f) of the ground about the world's origin)"""
        q, qd, qdd = states['q'], states['qd'], states['qdd']
        tau, ground, wrench = np.empty_like(q), np.empty((len(q), 6)), self._wrenches(wrench)
        part = self._parts[gravity, elastic]
        if len(q) == 1:
            n, f = disc_dynamics.inverse_discs(part, q[0], qd[0], qdd[0], wrench[0], tau[0])
            ground[0] = *n, *f
        else:
            disc_dynamics.inverse_discs_many(part, q, qd, qdd, wrench, tau, ground)
        return tau, ground

    def forward(
        self, states: dict[str, Array], wrench: Array, gravity: bool, elastic: bool, qdd: Array
    ) -> int:
        """Write the accelerations; return OK, or the first angle that moves no mass. The forces exclude dampers."""
        q, qd, tau, wrench = states['q'], states['qd'], states['tau'], self._wrenches(wrench)
        part, status = self._parts[gravity, elastic], np.full(len(q), OK)
        if len(q) == 1:
            status[0] = disc_dynamics.forward_discs(part, q[0], qd[0], tau[0], wrench[0], qdd[0])
        else:
            disc_dynamics.forward_discs_many(part, q, qd, tau, wrench, qdd, status)
        bad = status[status != OK]
        return int(bad[0]) if bad.size else OK
