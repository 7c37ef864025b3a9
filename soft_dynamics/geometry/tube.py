"""The body as a tube for viewers, in the ROS world (z up, after the mount of the robot file).

Arcs and links have their exact shape, hinges the spline of the model. Between the plates of a universal segment and
between two discs, the tube is a curve perpendicular to both.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..array import Array
from ..description.robot_description import Description
from ..robot import Robot
from .se3 import pose_from_rpy


class Tube(NamedTuple):
    """A curve with a thickness, sample after sample from base to tip; segments share no samples."""

    points: Array  # (n, 3) [m]
    tangents: Array  # (n, 3)
    radius: Array  # (n,) [m]
    curvature: Array  # (n,) [1/m], mean over the segment
    segment: npt.NDArray[np.int64]  # (n,) index of the segment in the description


def mount_pose(description: Description) -> Array:
    """X_RW (4, 4): the world of the robot file in the ROS world."""
    return pose_from_rpy(description.mount.position, description.mount.rpy)


def frame_poses(robot: Robot, q: Array) -> Array:
    """X_RF (n_frames, 4, 4) of all frames, base to tip, in the ROS world."""
    return np.asarray(mount_pose(robot.description) @ robot.forward_kinematics(q))


def tube(robot: Robot, q: Array, per_segment: int = 12) -> Tube:
    """Tube of a robot in pose q (nq,), with `per_segment` samples (3 or more) for each segment that bends."""
    X_WF, start, pieces = robot.forward_kinematics(q), 0.0, []
    X_RW = mount_pose(robot.description)
    for k, segment in enumerate(robot.description.segments):
        length = segment.length
        if length == 0.0:
            continue
        count = per_segment if segment.moves else 3
        share: Array = np.linspace(0.0, 1.0, count, dtype=np.float64)
        p_W = segment.curve(X_WF[k], X_WF[k + 1], share)
        if p_W is None:
            p_W = robot.centerline(q, np.minimum(start + share * length, robot.length))
        start += length
        p_R = p_W @ X_RW[:3, :3].T + X_RW[:3, 3]
        pieces.append(_piece(p_R, segment.display_radius, k))
    return Tube(*(np.concatenate(parts) for parts in zip(*pieces, strict=True)))


def _piece(points: Array, radius: float, segment: int) -> Tube:
    slope = np.gradient(points, axis=0, edge_order=2)
    speed = np.linalg.norm(slope, axis=1, keepdims=True)
    tangents = slope / np.maximum(speed, np.finfo(float).tiny)
    cosines = np.clip(np.sum(tangents[1:] * tangents[:-1], axis=1), -1.0, 1.0)
    bend, length = np.arccos(cosines).sum(), np.linalg.norm(np.diff(points, axis=0), axis=1).sum()
    n = len(points)
    return Tube(points, tangents, np.full(n, radius), np.full(n, bend / length), np.full(n, segment))


def rings(body: Tube, sides: int = 16) -> Array:
    """Points (n, sides, 3) on the surface, ring by ring, without twist along the body."""
    angle = np.linspace(0.0, 2.0 * np.pi, sides, endpoint=False)
    normals = np.empty_like(body.tangents)
    normal = np.eye(3)[np.argmin(np.abs(body.tangents[0]))]
    for k, t in enumerate(body.tangents):
        normal = normal - (normal @ t) * t
        normal /= np.sqrt(normal @ normal)
        normals[k] = normal
    across = np.cross(body.tangents, normals)
    around = np.cos(angle)[:, None] * normals[:, None] + np.sin(angle)[:, None] * across[:, None]
    return np.asarray(body.points[:, None] + body.radius[:, None, None] * around)


def segment_pressures(description: Description, pressure: Array) -> Array:
    """Mean pressure of each segment's chambers as a fraction of the largest allowed; 0 without chambers."""
    shares = np.zeros(len(description.segments))
    for k, segment in enumerate(description.segments):
        own = [
            p
            for p, c in zip(pressure, description.actuation.chambers, strict=True)
            if c.segment in ('all', segment.name)
        ]
        if own:
            shares[k] = np.mean(own) / description.actuation.pressure_max
    return np.clip(shares, 0.0, 1.0)
