"""Node that follows `reference/configuration` (way-points of the coordinates) by `pressure/command`."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from trajectory_msgs.msg import JointTrajectory

from soft_control.control_loop import Law
from soft_control.laws import CONFIGURATION_LAWS
from soft_control.laws.configuration_space import ConfigurationGains
from soft_control.nodes.controller_base import ControllerConfig, ControllerNode
from soft_control.references import JointPath
from soft_dynamics.array import Array
from soft_dynamics.errors import shown
from soft_dynamics.ros.conversions import time_to_ns
from soft_dynamics.ros.node_main import run_node
from soft_dynamics.timing.boot_time import boot_time


@dataclass(frozen=True)
class Config(ControllerConfig):
    """Parameters of the node."""

    law: str = field(
        default='feedback', metadata={'doc': 'control law: feedback (Wang, eq. 9) or predictive'}
    )
    gains: ConfigurationGains = ConfigurationGains()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.law not in CONFIGURATION_LAWS:
            raise ValueError(f'law must be {" or ".join(CONFIGURATION_LAWS)}, got {self.law!r}')


class ConfigurationController(ControllerNode):
    """Follows a spline through the way-points of a JointTrajectory; coordinates that it does not name stay."""

    config: Config

    def __init__(self) -> None:
        super().__init__('configuration_controller', Config)
        self.hear_references(JointTrajectory, 'reference/configuration', self._follow)

    def make_law(self, config: Config) -> Law:
        return CONFIGURATION_LAWS[config.law](self.robot, config, self.get_logger().info)

    def hold(self, t: float) -> JointPath:
        present = self.loop.present(t)
        path = JointPath(t, present, [1.0], [present.q])
        path.check(self.loop.limits)  # compile it before the first reference
        return path

    def _follow(self, t: float, message: JointTrajectory) -> None:
        stamp_ns, passed = time_to_ns(message.header.stamp), boot_time() - t
        delay = (stamp_ns - self.get_clock().now().nanoseconds) * 1e-9 + passed if stamp_ns else 0.0
        present = self.present(t)
        columns = _columns(message, self.robot.coordinate_names)
        times = delay + np.array([time_to_ns(p.time_from_start) * 1e-9 for p in message.points])
        ahead = times > 0.0 if stamp_ns else times >= 0.0
        if not np.any(ahead):
            raise ValueError('way-points: all are in the past')
        filled = [
            None if given is None else _filled(given, columns, start)[ahead]
            for given, start in zip(_points(message), present, strict=True)
        ]
        path = JointPath(t, present, times[ahead], *filled)
        path.check(self.loop.limits)
        self.loop.follow(t, path)


def _columns(message: JointTrajectory, names: tuple[str, ...]) -> list[int]:
    """Return the index of every named joint among the coordinates."""
    strangers = [name for name in message.joint_names if name not in names]
    if strangers or not message.joint_names or len(set(message.joint_names)) != len(message.joint_names):
        what = shown(strangers[0]) if strangers else f'{len(message.joint_names)} names'
        raise ValueError(f'joint_names: expected some of {", ".join(names)}, each once, got {what}')
    return [names.index(name) for name in message.joint_names]


def _points(message: JointTrajectory) -> list[Array | None]:
    """Return positions, rates and accelerations (points, joints); rates and accelerations are None if not given."""
    width = len(message.joint_names)
    given: list[Array | None] = []
    for key in ('positions', 'velocities', 'accelerations'):
        rows = [getattr(point, key) for point in message.points]
        if key != 'positions' and not any(len(row) for row in rows):
            given.append(None)
            continue
        if not rows or any(len(row) != width for row in rows):
            raise ValueError(f'{key}: expected {width} numbers in every way-point')
        given.append(np.frombuffer(b''.join(rows)).reshape(-1, width))
    if given[1] is None and given[2] is not None:
        raise ValueError('accelerations: need velocities as well')
    return given


def _filled(given: Array, columns: list[int], start: Array) -> Array:
    """Return one column per coordinate, constant for joints without values."""
    values = np.tile(start, (len(given), 1))
    values[:, columns] = given
    return values


def main(args: list[str] | None = None) -> int:
    return run_node(ConfigurationController, args)
