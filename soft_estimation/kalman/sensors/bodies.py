"""Tracked bodies of motion capture and Vive trackers: the poses of all that are seen at one time."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from soft_dynamics.array import Array
from soft_dynamics.description.sensors import Sensor
from soft_dynamics.geometry.quaternion import from_rotation
from soft_dynamics.geometry.se3 import pose_from_rpy
from soft_dynamics.messages.body_frame import BodyFrame
from soft_dynamics.reader import quantity
from soft_dynamics.robot import Robot

from ...inverse_kinematics.pose_tracking import Tracking, frame_index
from ..measurement import Correction, Reading
from ..pose_kernels import correct_by_poses, pose_reading
from ..process_model import Belief, Process
from .sensor_kind import SensorKind

OPEN_PLACE = 1.0  # [m] noise of an uninformative position


@dataclass(frozen=True)
class BodyNoise:
    """Parameters: noise of tracked bodies, and what the model misses of the segments between them."""

    mocap_rotation_noise: float = quantity(2e-3, unit='rad', doc='rotation noise of a body in motion capture')
    mocap_position_noise: float = quantity(3e-4, unit='m', doc='position noise of a body in motion capture')
    vive_rotation_noise: float = quantity(5e-3, unit='rad', doc='rotation noise of a Vive tracker')
    vive_position_noise: float = quantity(1.5e-3, unit='m', doc='position noise of a Vive tracker')
    place_misfit: float = quantity(
        0.05,
        unit='1/rad',
        doc="model error of the place of a bent segment's end, relative to its length",
    )
    twist_misfit: float = quantity(
        0.1,
        unit='1/rad',
        doc='model error of the twist of a bent segment, relative to its squared bend',
    )
    misfit_samples: float = quantity(
        36.0, doc='poses of a body that share a misfit, which lasts as long as the bend'
    )


class Places(NamedTuple):
    """Places of k tracked frames, base to tip.

    frames (k, 4): index of the frame and number of coordinates before it, then the same of its reference frame
    (-1, 0: the world). parent (k,): which of the k is the reference, negative if none.
    """

    frames: npt.NDArray[np.int64]
    parent: npt.NDArray[np.int64]
    p_FS: Array  # [m] position of each sensor on its frame
    p_ref: Array  # [m] the same for its reference sensor
    starts: npt.NDArray[np.int64]  # number of coordinates before each frame of the robot


class PoseSet(NamedTuple):
    """Poses X_MF (k, 4, 4) of frames at one time, in the world of the robot file.

    Each refers to the seen frame before it, so that a model error of one segment (twist, length) does not look like a
    bend of all segments behind it.
    """

    t: float
    sensors: tuple[str, ...]
    X_WS: Array  # as measured
    X_MF: Array
    X_ref: Array  # poses of the reference frames
    place: Places
    variance: Array  # (k, 4) of rotation and position, of the pose and of its reference
    misfit: Array  # (2,) see pose_kernels.add_misfit
    samples: float  # samples that share a misfit

    @property
    def doubt(self) -> tuple[Array, Array, float]:
        return self.variance, self.misfit, self.samples

    @property
    def showing(self) -> int:
        """Number of bodies behind the base."""
        return int(np.count_nonzero(self.place.frames[:, 1] > self.place.starts[0]))

    @property
    def dof(self) -> int:
        return 6

    @property
    def content(self) -> Array:
        return self.X_WS

    def read(self, process: Process, x: Array, pressure: Array) -> Reading:
        """Return white innovations (log R_meas R^T, p_MS_meas - p_MS), world axes: see pose_kernels.pose_reading."""
        X_M, J_tip = process.robot.frames_and_jacobian(x[: process.n])
        measured = self.X_MF, self.X_ref
        white, white_H, *check = pose_reading(X_M, J_tip, measured, self.place, self.doubt, process.size)
        return Reading(white, white_H, np.ones(white.size), tuple(check))

    def correct(self, process: Process, belief: Belief, _pressure: Array, rule: Array) -> Correction:
        """Read and correct in one call."""
        frames, measured = process.robot.frames_and_jacobian(belief.x[: process.n]), (self.X_MF, self.X_ref)
        after = np.empty_like(belief.x), np.empty_like(belief.P), np.empty(len(self.sensors))
        let_in = correct_by_poses(belief[1:], frames, measured, self.place, self.doubt, rule, after)
        return Correction(*after, let_in)

    def with_open_places(self, bodies: Collection[str]) -> PoseSet:
        """Return the same set, with only the directions of these bodies."""
        variance = self.variance.copy()
        for k, (sensor, parent) in enumerate(zip(self.sensors, self.place.parent, strict=True)):
            if sensor in bodies:
                variance[k, 1] = OPEN_PLACE**2
            if parent >= 0 and self.sensors[parent] in bodies:
                variance[k, 3] = OPEN_PLACE**2
        return self._replace(variance=variance)

    def only(self, k: int) -> PoseSet:
        return self._part(np.array([k]))

    def behind(self, k: int) -> PoseSet:
        return self._part(np.arange(k, len(self.sensors))) if k else self

    def without(self, k: int) -> PoseSet:
        """Return the set without k; what referred to k then refers to k's reference."""
        frames, parent, p_ref = self.place.frames.copy(), self.place.parent.copy(), self.place.p_ref.copy()
        X_ref, variance, orphan = self.X_ref.copy(), self.variance.copy(), parent == k
        frames[orphan, 2:], parent[orphan], p_ref[orphan] = frames[k, 2:], parent[k], p_ref[k]
        X_ref[orphan], variance[orphan, 2:] = X_ref[k], variance[k, 2:]
        place = self.place._replace(frames=frames, parent=parent, p_ref=p_ref)
        whole = self._replace(place=place, X_ref=X_ref, variance=variance)
        return whole._part(np.delete(np.arange(len(parent)), k))

    def _part(self, rows: npt.NDArray[np.int64]) -> PoseSet:
        """Return a part of the set. A pose whose reference is not in it no longer shares its noise."""
        index = np.full(len(self.sensors) + 1, -1)  # the last entry stands for no parent
        index[rows] = np.arange(rows.size)
        frames, parent, p_FS, p_ref, starts = self.place
        place = Places(frames[rows], index[parent[rows]], p_FS[rows], p_ref[rows], starts)
        arrays = self.X_WS[rows], self.X_MF[rows], self.X_ref[rows], place, self.variance[rows]
        return PoseSet(self.t, tuple(self.sensors[k] for k in rows), *arrays, self.misfit, self.samples)


class _Bodies(NamedTuple):
    """Tracked bodies that come together, base to tip: places, names, and variances as in PoseSet."""

    order: list[int]  # order in which they arrive, or None if it is this one
    place: Places
    sensors: tuple[str, ...]
    variance: Array


class PoseNoise(NamedTuple):
    """Standard deviations of rotation [rad] and position [m] by kind of sensor, and the model misfit."""

    of_kind: Mapping[str, tuple[float, float]]  # of a fiber: of its direction, and of each point
    misfit: tuple[float, float]  # see pose_kernels.add_misfit
    samples: float = 1.0  # samples that share a misfit


NO_NOISE = PoseNoise({'mocap': (0.0, 0.0), 'vive': (0.0, 0.0), 'fiber': (0.0, 0.0)}, (0.0, 0.0))


class TrackedBodies:
    """Places of a robot's tracked bodies, for transforming their poses into the world M of its file."""

    def __init__(self, tracking: Tracking, noise: PoseNoise = NO_NOISE) -> None:
        self._tracking = tracking
        self._variance = {kind: (turn**2, place**2) for kind, (turn, place) in noise.of_kind.items()}
        self._misfit, self._samples = np.array(noise.misfit), noise.samples
        self._places: dict[tuple[str, ...], _Bodies] = {}

    def poses(self, t: float, names: tuple[str, ...], X_WS: Array, variance: Array | None = None) -> PoseSet:
        """Return the set of checked poses X_WS of one time; variance (k, 2) overrides that of the kind."""
        X_MF = self._tracking.frame_poses(names, X_WS)
        if names not in self._places:
            self._places[names] = self._bodies(names)
        order, place, sensors, usual = self._places[names]
        if order:
            X_WS, X_MF = X_WS[order], X_MF[order]
        if variance is not None:
            variance = variance[order] if order else variance
            usual = np.concatenate([variance, variance[place.parent]], 1)
        X_ref = X_MF[place.parent]
        return PoseSet(t, sensors, X_WS, X_MF, X_ref, place, usual, self._misfit, self._samples)

    def _bodies(self, names: tuple[str, ...]) -> _Bodies:
        tracking, sensors = self._tracking, [self._tracking.sensors[name] for name in names]
        indices = [frame_index(tracking.robot, sensor) for sensor in sensors]
        order = sorted(range(len(names)), key=indices.__getitem__)
        moves = tracking.robot.description.base.moves
        frames, parent = np.full((len(names), 4), [0, 0, -1, 0]), np.full(len(names), -1)
        last = -1
        for k, i in enumerate(order):
            frames[k, :2] = indices[i], tracking.coordinates_before(indices[i])
            if k and indices[i] > indices[order[k - 1]]:
                last = k - 1
            if last >= 0 and (
                moves or frames[last, 0] > 0
            ):  # a fixed base is known better than it is measured
                frames[k, 2:], parent[k] = frames[last, :2], last
        p_FS = np.array([sensors[i].position for i in order])
        starts = np.array([tracking.coordinates_before(k) for k in range(len(tracking.robot.frame_names))])
        place = Places(frames, parent, p_FS, p_FS[parent], starts)
        variance = np.array([self._variance[sensors[i].kind] for i in order])
        usual = np.concatenate([variance, variance[parent]], 1)
        in_order = tuple(names[i] for i in order)
        return _Bodies([] if in_order == names else order, place, in_order, usual)


def at_rest(robot: Robot, sensor: Sensor) -> BodyFrame:
    """The frame of one body on the robot at rest."""
    mount, frame = robot.description.mount, frame_index(robot, sensor)
    X_WF = pose_from_rpy(mount.position, mount.rpy) @ robot.forward_kinematics(robot.rest)[frame]
    X_WS = X_WF @ pose_from_rpy(sensor.position, sensor.rpy)
    return BodyFrame.of(0, [(sensor.name, X_WS[:3, 3], from_rotation(X_WS[:3, :3]))])


def feed(estimator: Any, _name: str, t: float, frame: BodyFrame) -> dict[str, ValueError]:
    """Feed the bodies of a frame; return those that are refused, and why."""
    return dict(estimator.feed_frame(t, frame))


MOCAP = SensorKind(
    message='soft_robot_suite/msg/BodyPoses',
    topic='mocap/frame',
    feed=feed,
    noise=lambda config: (config.mocap_rotation_noise, config.mocap_position_noise),
    at_rest=at_rest,
    is_body=True,
)
VIVE = MOCAP._replace(
    topic='vive/frame',
    noise=lambda config: (config.vive_rotation_noise, config.vive_position_noise),
)
