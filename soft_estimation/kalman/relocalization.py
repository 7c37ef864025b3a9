"""Locates a robot whose state is lost or not known yet, from consistent poses."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from soft_dynamics.array import Array
from soft_dynamics.geometry import so3

from ..inverse_kinematics.pose_tracking import MISFIT, MISTURN, Configuration, Tracking
from .process_model import Belief, Process
from .sensors.bodies import PoseSet

RUN, ENOUGH = 5, 3  # sets of poses considered, and needed to abandon a known state
RUN_TIME = 0.1  # [s] if ENOUGH sets take longer, they are too rare to be compared
EXPLAINED = 0.5  # largest fraction of the misfit that may remain at a restart
TOLERANCE = 0.05  # [rad or m] largest deviation of poses from one motion
SIGMAS = (
    3.0,
    5.0,
)  # limits in standard deviations: of the rates at the start, and of the noise


class Snapshot(NamedTuple):
    """The newest pose of every body at time t [s]."""

    t: float
    X_WS: dict[str, Array]


class Relocation:
    """Finds coordinates and rates from poses alone, by inverse kinematics."""

    def __init__(
        self,
        process: Process,
        tracking: Tracking,
        spreads: tuple[float, float],
        noise: Mapping[str, tuple[float, float]],
    ) -> None:
        """spreads: of coordinates and rates at the start; noise [rad], [m]: of a pose, by kind of sensor."""
        self._process, self._tracking, self._spreads = process, tracking, spreads
        self._fastest = SIGMAS[0] * spreads[1]
        self._noise = noise
        bases = [s.name for s in tracking.sensors.values() if s.frame == 'base']
        self._base = bases[0] if bases and process.robot.description.base.type == 'fixed' else None

    def from_rest(self, t: float, x: Array | None = None) -> Belief:
        """Return a belief as uncertain as at the start, around the coordinates of x or at rest."""
        start = self._process.start(t, *self._spreads)
        if x is not None:
            start.x[: self._process.n] = x[: self._process.n]
        return start

    def from_poses(self, sets: Sequence[PoseSet], x: Array, pressure: Array, is_known: bool) -> Belief | None:
        """Return a belief at the time of the last set, as uncertain as at the start, or None if the poses disagree.

        The unknown force is the one that holds the robot there, with an uncertainty of the same size: the model need
        not explain the pose. is_known: there is a state to abandon, which needs more than one set, unless sets are rare
        and the robot may go anywhere between them. The first set may contain one wrong body.
        """
        run = snapshots(sets)[-RUN:]
        if not is_known or _are_rare(run):
            run = run[-1:]
        if not is_known:
            strangers = self.strangers(sets, x)
            run = [s._replace(X_WS={n: X for n, X in s.X_WS.items() if n not in strangers}) for s in run]
        if not run or not run[-1].X_WS:
            return None
        q, found = x[: self._process.n], []
        for snapshot in run:
            found.append(self._tracking.configuration(snapshot.X_WS, near=q))
            q = found[-1].q
        if max(map(self._misfit, found)) > 1.0 or (is_known and not self._explains(run[-1], found[-1], x)):
            return None
        times = np.array([snapshot.t for snapshot in run])
        line = _line(times - times[-1], np.array([c.q for c in found]))
        if line is None or np.abs(line[1]).max() > self._fastest:
            return None
        self._find_base(run)
        return self._belief(float(times[-1]), *line, found[-1], pressure)

    def _explains(self, snapshot: Snapshot, found: Configuration, x: Array) -> bool:
        """Return whether the poses fit much better elsewhere than at x; a single slipped body fits nowhere."""
        at_x = self._tracking.residuals(snapshot.X_WS, x[: self._process.n]).values()
        worst = max(max(math.hypot(*X[:3, 3]) / MISFIT, float(so3.angle(X[:3, :3])) / MISTURN) for X in at_x)
        return self._misfit(found) < EXPLAINED * worst

    def strangers(self, sets: Sequence[PoseSet], x: Array) -> set[str]:
        """Return bodies whose newest poses do not fit the robot: none, the one without which all others fit, or all."""
        X_WS, q = snapshots(sets)[-1].X_WS, x[: self._process.n]
        if self._misfit(self._tracking.configuration(X_WS, q)) <= 1.0:
            return set()
        without: dict[str, float] = {}
        for name in X_WS if len(X_WS) > ENOUGH - 1 else ():
            others = {other: X for other, X in X_WS.items() if other != name}
            without[name] = self._misfit(self._tracking.configuration(others, q))
        best = min(without, key=without.__getitem__, default='')
        return {best} if without.get(best, math.inf) <= 1.0 else set(X_WS)

    def strays(self, sets: Sequence[PoseSet], bodies: Iterable[str]) -> set[str]:
        """Return those bodies whose last ENOUGH poses are too fast for one motion of the robot."""
        if _are_rare(sets):
            return set()
        return {body for body in bodies if not self._moves(_poses_of(sets, body), self._limits(body))}

    def _misfit(self, found: Configuration) -> float:
        """Return the distance of the worst pose from what the kinematics can reach; up to 1 it fits."""
        of_robot = (r for name, r in found.residuals.items() if name != self._base)
        return max((float(max(r.position / MISFIT, r.rotation / MISTURN)) for r in of_robot), default=0.0)

    def _limits(self, body: str) -> tuple[float, float]:
        """Return the range [rad], [m] of the noise of a body's pose."""
        turn, place = self._noise[self._tracking.sensors[body].kind]
        return SIGMAS[1] * turn, SIGMAS[1] * place

    def _moves(self, seen: list[tuple[float, Array]], limits: tuple[float, float]) -> bool:
        if len(seen) < ENOUGH:
            return False
        reach = self._process.robot.length
        for (t_before, X_before), (t, X) in itertools.pairwise(seen):
            turned = so3.angle(X[:3, :3] @ X_before[:3, :3].T)
            far = np.linalg.norm((X - X_before)[:3, 3])
            arc = self._fastest * (t - t_before)
            if turned > arc + 2.0 * limits[0] or far > reach * arc + 2.0 * limits[1]:
                return False
        return True

    def _find_base(self, run: list[Snapshot]) -> None:
        """Set the pose of a fixed base from its sensor, if that says that it has moved."""
        if self._base is None or self._base not in run[-1].X_WS:
            return
        seen = np.array([self._tracking.frame_pose(self._base, s.X_WS[self._base]) for s in run])
        X_MB, before = np.eye(4), self._process.robot.pose(self._process.robot.rest, 'base')
        X_MB[:3, :3] = Rotation.from_matrix(seen[:, :3, :3]).mean().as_matrix()
        X_MB[:3, 3] = seen[:, :3, 3].mean(0)
        turned = so3.angle(X_MB[:3, :3] @ before[:3, :3].T)
        turn_limit, place_limit = self._limits(self._base)
        if turned > turn_limit or np.linalg.norm((X_MB - before)[:3, 3]) > place_limit:
            self._tracking.move_base(X_MB)

    def _belief(self, t: float, q: Array, qd: Array, found: Configuration, pressure: Array) -> Belief:
        n, start = self._process.n, self._process.start(t, *self._spreads)
        start.x[:n], start.x[n : 2 * n] = q, np.where(found.observed, qd, 0.0)
        if self._process.size > 2 * n:
            held = self._process.robot.inverse_dynamics(q, np.zeros(n), np.zeros(n))
            held -= self._process.force(start.x, pressure)
            held[~found.observed], held[self._process.given] = 0.0, 0.0
            start.x[2 * n :] = held
            places = np.arange(2 * n, 3 * n)
            start.P[places, places] += held**2
        return start


def _are_rare(sets: Sequence[PoseSet | Snapshot]) -> bool:
    return len(sets) < ENOUGH or sets[-1].t - sets[-ENOUGH].t > RUN_TIME


def _poses_of(sets: Sequence[PoseSet], body: str) -> list[tuple[float, Array]]:
    """Return the last ENOUGH poses of a body, with their times."""
    seen = ((s.t, s.X_WS[s.sensors.index(body)]) for s in reversed(sets) if body in s.sensors)
    return list(itertools.islice(seen, ENOUGH))[::-1]


def snapshots(sets: Iterable[PoseSet]) -> list[Snapshot]:
    """Return for each time the newest poses of all bodies, from when all of them have been seen."""
    sets = list(sets)
    everyone = {name for s in sets for name in s.sensors}
    newest: dict[str, Array] = {}
    out: list[Snapshot] = []
    for s in sets:
        newest.update(zip(s.sensors, s.X_WS, strict=True))
        if len(newest) == len(everyone):
            if out and out[-1].t == s.t:
                out.pop()
            out.append(Snapshot(s.t, dict(newest)))
    return out


def _line(t: Array, q: Array) -> tuple[Array, Array] | None:
    """Return value at t = 0 and slope of the line through the rows of q; None if a row is far from it."""
    if len(t) < ENOUGH:
        return q[-1], np.zeros_like(q[-1])
    basis = np.stack([np.ones_like(t), t], 1)
    line = np.linalg.lstsq(basis, q, rcond=None)[0]
    return (line[0], line[1]) if np.abs(basis @ line - q).max() < TOLERANCE else None
