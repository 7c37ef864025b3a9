"""Node that follows `reference/pose` (a stream) or `reference/poses` (a list) by `pressure/command`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

from geometry_msgs.msg import Pose, PoseArray, PoseStamped
from std_msgs.msg import Header

from soft_control.control_loop import Law
from soft_control.laws import TASK_LAWS
from soft_control.laws.task_space import TaskGains
from soft_control.nodes.controller_base import LATEST, ControllerConfig, ControllerNode
from soft_control.references import PosePath
from soft_control.safety.state_machine import pose_reference_fault
from soft_dynamics.array import Array
from soft_dynamics.errors import shown
from soft_dynamics.geometry.se3 import inverse, pose_from_rpy
from soft_dynamics.ros.conversions import pose_to_matrix, time_to_ns
from soft_dynamics.ros.executor import in_passing
from soft_dynamics.ros.message_guard import SMALL, subscribe
from soft_dynamics.ros.node_main import run_node

_MOCAP_LASTS = 0.5  # [s] after this silence of motion capture, use the trackers
_MOST_POSES = 500  # in one list; checking more would delay the commands
_LONGEST_PERIOD = 0.5  # [s] poses further apart in time do not form a stream
_OLDEST = 1.0  # [s] older stamps come from a played bag or a computer with another time


@dataclass(frozen=True)
class Config(ControllerConfig):
    """Parameters of the node."""

    speed: float = field(default=0.1, metadata={'doc': 'speed of the tip towards a pose', 'unit': 'm/s'})
    angular_speed: float = field(
        default=0.5, metadata={'doc': 'angular speed of the tip towards a pose', 'unit': 'rad/s'}
    )
    reference_timeout: float = field(
        default=1.0,
        metadata={
            'doc': 'a reference stream counts as lost after this silence; 0: hold its last pose',
            'unit': 's',
        },
    )
    law: str = field(
        default='kinematic', metadata={'doc': 'control law: kinematic (Wang, eq. 19) or predictive'}
    )
    gains: TaskGains = TaskGains()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.law not in TASK_LAWS:
            raise ValueError(f'law must be {" or ".join(TASK_LAWS)}, got {self.law!r}')
        for name in ('speed', 'angular_speed'):
            if not 0.0 < getattr(self, name) < math.inf:
                raise ValueError(f'{name} must be > 0 and finite, got {getattr(self, name)}')
        if not 0.0 <= self.reference_timeout < math.inf:
            raise ValueError(f'reference_timeout must be >= 0 and finite, got {self.reference_timeout}')


class TaskController(ControllerNode):
    """Moves the tip from pose to pose at the given speeds. Poses are in `world` or `base_link`."""

    config: Config

    def __init__(self) -> None:
        super().__init__('task_controller', Config)
        self._pose_t = -math.inf  # [s] last pose of a stream
        self.hear_references(PoseStamped, 'reference/pose', self._follow_stream)
        self.hear_references(PoseArray, 'reference/poses', self._follow_list)
        self._mocap_t = -math.inf  # [s] last motion-capture pose of the tip
        for sensor in self.robot.description.sensors:
            if sensor.kind in ('mocap', 'vive') and sensor.frame in ('tip', self.robot.frame_names[-1]):
                X_ST = inverse(pose_from_rpy(sensor.position, sensor.rpy))
                topic, hear = f'{sensor.kind}/{sensor.name}/pose', partial(self._on_tip, sensor.kind, X_ST)
                in_passing(subscribe(self, PoseStamped, topic, hear, LATEST, self.refusals.add, SMALL))

    def make_law(self, config: Config) -> Law:
        return TASK_LAWS[config.law](self.robot, config, self.get_logger().info)

    def hold(self, t: float) -> PosePath:
        X_WT = self.loop.present(t).X_WT
        return PosePath(t, X_WT, [X_WT], self.config.speed, self.config.angular_speed)

    def _on_tip(self, kind: str, X_ST: Array, message: PoseStamped) -> None:
        """Pass the measured tip to the loop. Trackers count only while motion capture is silent.

        The world of a tracking system is taken for `world`, as in the estimator.
        """
        t, frame = self.look(), message.header.frame_id
        if kind == 'mocap':
            self._mocap_t = t
        elif t - self._mocap_t < _MOCAP_LASTS:
            return
        stamp_ns = time_to_ns(message.header.stamp)
        X_WF = self._from_frame('world' if frame == f'{kind}_world' else frame)
        self.loop.feed_tip(self.stamps.time_of(stamp_ns), X_WF @ pose_to_matrix(message.pose) @ X_ST)

    def _follow_stream(self, t: float, message: PoseStamped) -> None:
        period, timeout = t - self._pose_t, self.config.reference_timeout or math.inf
        self._pose_t = t
        self._follow(t, message.header, [message.pose], period if period < _LONGEST_PERIOD else 0.0, timeout)

    def _follow_list(self, t: float, message: PoseArray) -> None:
        if len(message.poses) > _MOST_POSES:
            raise ValueError(f'poses: expected at most {_MOST_POSES}, got {len(message.poses)}')
        self._follow(t, message.header, message.poses, 0.0, math.inf)

    def _follow(
        self, t: float, header: Header, poses: Iterable[Pose], least_time: float, timeout: float
    ) -> None:
        stamp_ns = time_to_ns(header.stamp)
        if stamp_ns and not t - self.stamps.time_of(stamp_ns) <= _OLDEST:
            raise ValueError(f'stamp must be zero or at most {_OLDEST:g} s old')
        start, state, limits = self.present(t).X_WT, self.loop.state, self.loop.limits
        X_WF, q = self._from_frame(header.frame_id), self.robot.rest if state is None else state.q
        targets = [X_WF @ pose_to_matrix(pose) for pose in poses]
        for fault in (pose_reference_fault(limits, q, X_WT, None, 0.0) for X_WT in targets):
            if fault:
                raise ValueError(fault)
        speeds = self.config.speed, self.config.angular_speed
        self.loop.follow(t, PosePath(t, start, targets, *speeds, least_time, timeout))

    def _from_frame(self, frame: str) -> Array:
        """Return the pose of a ROS frame in the world of the robot file."""
        if frame == 'base_link' and self.loop.state is not None:
            return self.robot.forward_kinematics(self.loop.state.q)[0]
        if frame == 'world':
            mount = self.robot.description.mount
            return inverse(pose_from_rpy(mount.position, mount.rpy))
        raise ValueError(f'frame_id must be world or base_link, got {shown(frame)}')


def main(args: list[str] | None = None) -> int:
    return run_node(TaskController, args)
