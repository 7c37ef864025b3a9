"""Detects wrong samples that look right: frozen ones, and bodies in the wrong place."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from soft_dynamics.array import Array
from soft_dynamics.frozen_samples import FrozenSamples

from ..inverse_kinematics.pose_tracking import Tracking, frame_index
from .measurement import Measurement

MISPLACED = (
    0.02  # [m] distance from which a body counts as misplaced; models are off by less between neighbours
)
LOOK_PERIOD = 0.1  # [s] between two checks
LOOKS = 2  # consecutive checks in which a body must be misplaced
NEIGHBOURS = 2  # least number of neighbours for the comparison


class MisplacedBodies:
    """Finds tracked bodies that have slipped, or whose rigid body was defined elsewhere.

    It estimates the segments from the directions of the bodies alone. The model error of the places grows slowly from
    body to body; a body that differs from both neighbours has moved on its frame. A check costs as much as a state, so
    call `look` when there is time.
    """

    def __init__(self, tracking: Tracking) -> None:
        self._tracking = tracking
        self._waiting: dict[frozenset[str], Mapping[str, Any]] = {}  # the newest poses, by their bodies
        self._fed: dict[frozenset[str], float] = {}  # [s] their times
        self._open: set[frozenset[str]] = set()  # sets of bodies that do not determine all coordinates
        self._seen: dict[str, int] = {}  # consecutive checks that found a body misplaced
        self.found: dict[str, float] = {}  # [m] distance by body

    def feed(self, t: float, names: tuple[str, ...], X_WS: Array) -> None:
        """Take poses (k, 4, 4) of bodies that come together at time t [s]."""
        bodies = frozenset(names)
        is_due = abs(t - self._fed.get(bodies, -math.inf)) >= LOOK_PERIOD
        if is_due and len(names) >= NEIGHBOURS and bodies not in self._open:
            self._fed[bodies], self._waiting[bodies] = t, dict(zip(names, X_WS, strict=True))

    def look(self) -> None:
        """Check the waiting poses."""
        waiting, self._waiting = self._waiting, {}
        for X_WS in waiting.values():
            for body, off in self._offsets(X_WS).items():
                self._seen[body] = self._seen.get(body, 0) + 1 if off > MISPLACED else 0
                if self._seen[body] >= LOOKS:
                    self.found[body] = off
                else:
                    self.found.pop(body, None)

    def slipped(self, names: Collection[str]) -> set[str]:
        """Return the misplaced bodies among these; none if they are the majority, since the robot file may be wrong."""
        slipped = self.found.keys() & set(names)
        return slipped if 2 * len(slipped) < len(names) else set()

    def lines(self) -> list[str]:
        """Return a line about each misplaced body."""
        sensors = self._tracking.sensors
        return [
            f'{sensors[body].kind} body {body}: {100.0 * off:.1f} cm from where the model and the other bodies place it'
            for body, off in self.found.items()
        ]

    def _offsets(self, X_WS: Mapping[str, Any]) -> dict[str, float]:
        """Return the distance [m] of each body from where its neighbours place it; empty if undetermined."""
        tracking = self._tracking
        found = tracking.configuration(X_WS)
        index = {body: frame_index(tracking.robot, tracking.sensors[body]) for body in X_WS}
        if not found.observed[
            tracking.coordinates_before(0) : tracking.coordinates_before(max(index.values()))
        ].all():
            self._open.add(frozenset(X_WS))
            return {}
        X_M, off = tracking.robot.forward_kinematics(found.q), tracking.residuals(X_WS, found.q)
        bodies = sorted(X_WS, key=index.__getitem__)
        places = [X_M[index[body], :3, :3] @ off[body][:3, 3] for body in bodies]
        if index[bodies[0]] > 0 and tracking.robot.description.base.type == 'fixed':
            bodies, places = ['', *bodies], [np.zeros(3), *places]
        if len(bodies) <= NEIGHBOURS:
            return {}
        return {body: _apart(places, k) for k, body in enumerate(bodies) if body}


def _apart(places: list[Array], k: int) -> float:
    """Return the smaller distance from the nearest places on either side."""
    nearest = sorted((abs(j - k), j) for j in range(len(places)) if j != k)[:NEIGHBOURS]
    return min(math.dist(places[k], places[j]) for _, j in nearest)


class SampleWatch:
    """Detects frozen samples of a filter's sensors."""

    def __init__(self, tracking: Tracking) -> None:
        actuation = tracking.robot.description.actuation
        self.largest_pressure = max(actuation.pressure_max, -actuation.pressure_min)  # [Pa]
        self._frozen: dict[tuple[str, ...], FrozenSamples] = {}
        self.pressure: Array = np.empty(0)  # [Pa] last pressures; the first ones do not count as motion

    def check(self, measurement: Measurement) -> None:
        """Raise ValueError for a frozen sample."""
        sensors = measurement.sensors
        if sensors not in self._frozen:
            self._frozen[sensors] = FrozenSamples(self.largest_pressure)
        if self._frozen[sensors].feed(measurement.content.tobytes(), self.pressure):
            raise ValueError(f'{", ".join(sensors)}: frozen, bit-identical while the pressures move')
