"""Poses of tracked bodies to coordinates of a robot: by segment, or by least squares across unseen bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from soft_dynamics.array import Array, as_array
from soft_dynamics.description.sensors import Sensor
from soft_dynamics.geometry.se3 import as_pose, inverse, pose_error, pose_from_rpy
from soft_dynamics.geometry.so3 import angle
from soft_dynamics.robot import Robot
from soft_dynamics.segments import Segment
from soft_dynamics.segments.base import base_angles

from .kernels import carry_poses
from .poses import as_poses

ITERATIONS, STEP_TOLERANCE = 50, 1e-13  # of the least squares over several segments
RANK_TOLERANCE = 1e-6  # [-] smaller singular values do not determine a coordinate
MISFIT = 0.1  # [m] limit of a plausible residual; a long, strongly bent arm reaches half of it
MISTURN = 0.5  # [rad] likewise; a segment that bends by 1.5 rad twists by half of it
NUMBERS = 6  # numbers of a pose; it does not determine as many coordinates uniquely
MOVING_BASE = 6  # coordinates of a moving base


class Residual(NamedTuple):
    """Distance of a measured pose, or of each of many, from the model's at the estimated coordinates."""

    rotation: Array  # [rad]
    position: Array  # [m]


@dataclass(frozen=True)
class Configuration:
    """Coordinates (nq,), or (n, nq) for n sets of poses, with the observed coordinates and the residuals.

    Coordinates that the poses do not determine are near `near`.
    """

    q: Array
    observed: npt.NDArray[np.bool_]  # (nq,)
    residuals: dict[str, Residual]  # by sensor


class Tracked(NamedTuple):
    """A measured frame F of the robot in the world M of its file, n times."""

    frame: int  # frame index, base first
    X_MF: Array  # (n, 4, 4)


class Tracking:
    """Converts poses X_WS of sensors in the ROS world W to coordinates of a robot.

    Takes into account the mount of the robot, the place of each sensor on its frame, and unseen bodies. A sensor on a
    fixed base overrides the base pose of the file, so a rig that was moved as a whole does not bend the robot.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        description = robot.description
        self.sensors = {s.name: s for s in description.sensors if s.kind in ('mocap', 'vive')}
        self._X_MW = inverse(pose_from_rpy(description.mount.position, description.mount.rpy))
        self._X_SF = {name: inverse(pose_from_rpy(s.position, s.rpy)) for name, s in self.sensors.items()}
        self._X_SFs: dict[tuple[str, ...], Array] = {}  # by the bodies that come together
        self._base_moves = description.base.moves
        self._X_M0 = pose_from_rpy(description.base.position, description.base.rpy)
        self._slices = _coordinate_slices(robot)

    def configuration(self, poses: Mapping[str, Any], near: Any = None) -> Configuration:
        """Return the coordinates from {sensor name: X_WS (4, 4)}.

        near: choose the solution close to these where poses leave a choice (whole turns, unseen segments); default
        rest. Raises ValueError for an unknown sensor and for a matrix that is not a pose.
        """
        found = self.configurations({name: np.asarray(X_WS)[None] for name, X_WS in poses.items()}, near)
        residuals = {name: Residual(r.rotation[0], r.position[0]) for name, r in found.residuals.items()}
        return Configuration(found.q[0], found.observed, residuals)

    def configurations(self, poses: Mapping[str, Any], near: Any = None) -> Configuration:
        """As `configuration`, for n sets {sensor name: X_WS (n, 4, 4)} in order of time, each near the previous one."""
        start_q = np.array(self.robot.rest if near is None else as_array('near', near))
        if start_q.shape != (self.robot.nq,):
            raise ValueError(f'near: expected shape ({self.robot.nq},), got {start_q.shape}')
        measured = {name: self._frame_poses(name, X_WS) for name, X_WS in poses.items()}
        q = np.tile(start_q, (len(next(iter(measured.values()), [0])), 1))
        tracked = self._tracked(measured)
        observed = np.zeros(self.robot.nq, dtype=bool)
        start = self._base(tracked, q, observed)
        for end in tracked:
            if end.frame > start.frame:
                self._between(start, end, q, observed)
                start = end
        return Configuration(q, observed, self._residuals(measured, q, tracked))

    def residuals(self, poses: Mapping[str, Any], q: Array) -> dict[str, Array]:
        """Return by body the measured frame relative to the model's at q: the identity if it fits."""
        X_M = self.robot.forward_kinematics(q)
        X_MF = self.frame_poses(*self.checked(poses))
        index = [frame_index(self.robot, self.sensors[name]) for name in poses]
        return dict(zip(poses, inverse(X_M[index]) @ X_MF, strict=True))

    def frame_pose(self, name: str, X_WS: Any) -> Array:
        """Return X_MF of the frame that carries a sensor, from the sensor's pose."""
        return self.frame_poses(*self.checked({name: X_WS}))[0]

    def checked(self, poses: Mapping[str, Any]) -> tuple[tuple[str, ...], Array]:
        """Return names and X_WS (k, 4, 4) from {name: X_WS}; ValueError for unknown sensors and invalid poses."""
        names = tuple(poses)
        self.offsets(names)
        return names, as_poses(names, list(poses.values()))

    def frame_poses(self, names: tuple[str, ...], X_WS: Array) -> Array:
        """Return X_MF (k, 4, 4) of the frames that carry the sensors, from checked poses (k, 4, 4)."""
        X_MF = np.empty_like(X_WS)
        carry_poses(self._X_MW, X_WS, self.offsets(names), X_MF)
        return X_MF

    def offsets(self, names: tuple[str, ...]) -> Array:
        """Return X_SF (k, 4, 4) of sensors; ValueError for an unknown sensor and for one named twice."""
        if names not in self._X_SFs:
            for name in names:
                self._check_known(name)
            if len(set(names)) < len(names):
                raise ValueError(f'poses: expected each sensor once, got {", ".join(names)}')
            self._X_SFs[names] = np.array([self._X_SF[name] for name in names])
        return self._X_SFs[names]

    def add_body(self, sensor: Sensor) -> None:
        """Add a body whose pose another sensor provides."""
        self.sensors[sensor.name] = sensor
        self._X_SF[sensor.name] = inverse(pose_from_rpy(sensor.position, sensor.rpy))

    def world_poses(self, X_MF: Array) -> Array:
        """Return X_WF (k, 4, 4) of frames given in the world of the robot file."""
        return inverse(self._X_MW) @ X_MF

    def move_base(self, X_MB: Array) -> None:
        """Set the pose of a fixed base to X_MB, as seen by a sensor, instead of the base pose of the file."""
        self._X_MW = self._X_M0 @ inverse(X_MB) @ self._X_MW

    def coordinates_before(self, frame: int) -> int:
        """Return how many coordinates move the frame of this index."""
        first = MOVING_BASE if self._base_moves else 0
        return first if frame == 0 else self._slices[frame - 1].stop

    def _frame_poses(self, name: str, X_WS: Any) -> Array:
        """Return X_MF (n, 4, 4) of one sensor over time."""
        self._check_known(name)
        return self._X_MW @ as_pose(f'poses[{name!r}]', X_WS) @ self._X_SF[name]

    def _check_known(self, name: str) -> None:
        if name not in self.sensors:
            known = ', '.join(self.sensors) or 'none'
            raise ValueError(f'poses: expected sensors of {self.robot.name} ({known}), got {name!r}')

    def _tracked(self, measured: Mapping[str, Array]) -> list[Tracked]:
        found = {frame_index(self.robot, self.sensors[name]): X_MF for name, X_MF in measured.items()}
        return [Tracked(index, found[index]) for index in sorted(found)]

    def _base(self, tracked: list[Tracked], q: Array, observed: npt.NDArray[np.bool_]) -> Tracked:
        """Return the first frame; for a moving base that is seen, also write its coordinates [Mehl, eq. 6, 7]."""
        if tracked and tracked[0].frame == 0:
            if self._base_moves:
                X_0B = inverse(self._X_M0) @ tracked[0].X_MF
                q[:, :3] = X_0B[:, :3, 3]
                q[:, 3:6] = base_angles(X_0B[:, :3, :3], q[0, 3:6])
                observed[:MOVING_BASE] = True
            return tracked[0]
        return Tracked(0, self.robot.pose(q[0], 'base')[None])

    def _between(self, start: Tracked, end: Tracked, q: Array, observed: npt.NDArray[np.bool_]) -> None:
        """Write the coordinates of the segments between two measured frames."""
        chain = self.robot.description.segments[start.frame : end.frame]
        X_AB = inverse(start.X_MF) @ end.X_MF
        soft = [k for k, segment in enumerate(chain) if segment.moves]
        if len(soft) == 1:
            (k,) = soft
            before, after = _rigid(chain[:k]), _rigid(chain[k + 1 :])
            where = self._slices[start.frame + k]
            fit = chain[k].inverse(inverse(before) @ X_AB @ inverse(after), q[0, where])
            if fit is not None:
                q[:, where], observed[where] = fit.q, True
                return
        if soft:
            where = slice(self._slices[start.frame].start, self._slices[end.frame - 1].stop)
            observed[where] = where.stop - where.start < NUMBERS
            for k in range(len(q)):
                q[k, where] = q[max(k - 1, 0), where]
                observed[where] &= self._least_squares((start.frame, end.frame), X_AB[k], q[k], where)

    def _least_squares(
        self, frames: tuple[int, int], X_AB: Array, q: Array, where: slice
    ) -> npt.NDArray[np.bool_]:
        """Solve for several segments by Gauss-Newton with the shortest step and Levenberg damping.

        Writes the coordinates into q and returns which of them the pose determines.
        """
        damping = 1e-2
        error, J = self._mismatch(frames, X_AB, q, where)
        for _ in range(ITERATIONS):
            n = J.shape[1]
            stacked, target = np.vstack([J, damping * np.eye(n)]), np.concatenate([error, np.zeros(n)])
            step = np.linalg.lstsq(stacked, target, rcond=None)[0]
            trial = q.copy()
            trial[where] += step
            error_trial, J_trial = self._mismatch(frames, X_AB, trial, where)
            if error_trial @ error_trial < error @ error:
                q[:], error, J, damping = trial, error_trial, J_trial, max(0.1 * damping, 1e-8)
            else:
                damping *= 10.0
            if np.max(np.abs(step)) < STEP_TOLERANCE:
                break
        _, sizes, V = np.linalg.svd(J)
        free = V[np.count_nonzero(sizes > RANK_TOLERANCE * sizes[0]) :]
        return np.linalg.norm(free, axis=0) < RANK_TOLERANCE

    def _mismatch(self, frames: tuple[int, int], X_AB: Array, q: Array, where: slice) -> tuple[Array, Array]:
        """Return (error (6,), Jacobian) of the end's pose relative to the start, in its axes, rotation first."""
        start, end = frames
        X_M = self.robot.forward_kinematics(q)
        R_AM, X_fit = X_M[start, :3, :3].T, inverse(X_M[start]) @ X_M[end]
        error = pose_error(X_AB, X_fit)
        J_M = self.robot.jacobian(q, self.robot.frame_names[end])[:, where]
        return error, np.concatenate([R_AM @ J_M[:3], R_AM @ J_M[3:]])

    def _residuals(
        self, measured: Mapping[str, Array], q: Array, tracked: list[Tracked]
    ) -> dict[str, Residual]:
        X_M = self.robot.forward_kinematics(q)
        X_moved = np.eye(4)  # displacement of the whole rig, seen by the sensor on a fixed base
        if tracked and tracked[0].frame == 0 and not self._base_moves:
            X_moved = tracked[0].X_MF @ inverse(X_M[:, 0])
        out = {}
        for name, X_MF in measured.items():
            index = frame_index(self.robot, self.sensors[name])
            X_fit = X_M[:, index] if index == 0 else X_moved @ X_M[:, index]
            X = inverse(X_fit) @ X_MF
            out[name] = Residual(angle(X[:, :3, :3]), np.linalg.norm(X[:, :3, 3], axis=1))
        return out


def configuration_from_poses(robot: Robot, poses: Mapping[str, Any], near: Any = None) -> Configuration:
    """As `Tracking.configuration`, for once."""
    return Tracking(robot).configuration(poses, near)


def frame_index(robot: Robot, sensor: Sensor) -> int:
    """Return the index in `robot.frame_names` of the frame that carries a sensor."""
    return len(robot.frame_names) - 1 if sensor.frame == 'tip' else robot.frame_names.index(sensor.frame)


def _coordinate_slices(robot: Robot) -> list[slice]:
    """Return the coordinates of each segment, in the order of the file."""
    first = len(robot.description.base.own_coordinates())
    slices = []
    for segment in robot.description.segments:
        count = len(segment.own_coordinates())
        slices.append(slice(first, first + count))
        first += count
    return slices


def _rigid(segments: Sequence[Segment]) -> Array:
    """X_AB (4, 4) across segments that do not move."""
    X = np.eye(4)
    for segment in segments:
        X = X @ segment.rigid_pose()
    return X
