"""References of the demo, their tracking errors, and the picture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseArray
from scipy.spatial.transform import Rotation
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import soft_dynamics as sd
from soft_control.nodes.task_controller import Config
from soft_control.references import JointPath, JointSample, PosePath
from soft_dynamics.array import Array
from soft_dynamics.ros.conversions import pose_from_matrix
from tools.demo_client import Log, ros_time

STYLE = Path(__file__).resolve().parent.parent / 'docs' / 'figures' / 'style.mplstyle'
POINTS = 80  # way-points of the eight
RAMP = 0.12  # fraction of the time for speeding up, and for slowing down
STAR_WIDTH = 0.32  # [m]
PER_EDGE = 8  # poses on an edge of the star
_USUAL = Config()  # of the task controller


class Eight:
    """Wang's figure of eight: both angles of every segment, 0.3 sin(phi) and 0.2 sin(2 phi).      [Wang, sec. IV-C]"""

    name, law = 'figure of eight', 'configuration'

    def __init__(self, robot: sd.Robot, seconds: float) -> None:
        self.robot, self.seconds = robot, seconds
        u = np.linspace(0.0, 1.0, POINTS + 1)
        speed = np.sin(0.5 * np.pi * np.clip(np.minimum(u, 1.0 - u) / RAMP, 0.0, 1.0)) ** 2
        phi = np.concatenate([[0.0], np.cumsum(speed[1:] + speed[:-1])])
        phi *= 2.0 * np.pi / phi[-1]
        angles = np.stack([0.3 * np.sin(phi), 0.2 * np.sin(2.0 * phi)], 1)
        self._times, self._q = seconds * u[1:], np.tile(angles, robot.nq // 2)[1:]

    def message(self, start: float) -> JointTrajectory:
        """Return the reference that starts at this time [s, ROS]."""
        message = JointTrajectory(joint_names=list(self.robot.coordinate_names))
        message.header.stamp.sec, message.header.stamp.nanosec = ros_time(start).values()
        for t, q in zip(self._times, self._q, strict=True):
            point = JointTrajectoryPoint(positions=q.tolist())
            point.time_from_start.sec, point.time_from_start.nanosec = ros_time(t).values()
            message.points.append(point)
        return message

    def tips(self, t: Array) -> tuple[Array, Rotation]:
        """Position and orientation of the model's tip in `world`, t seconds after the start."""
        return _in_world(self.robot, [self.robot.pose(q, 'tip') for q in self.coordinates(t)])

    def coordinates(self, t: Array) -> Array:
        rest = JointSample(*np.zeros((3, self.robot.nq)))
        path = JointPath(0.0, rest, self._times, self._q)
        return np.array([path.sample(s).q for s in t])


class Star:
    """A five-pointed star of the tip; all segments bend equally in each pose.                     [Wang, sec. IV-C]"""

    name, law = 'star', 'task'

    def __init__(self, robot: sd.Robot, part: float = 1.0) -> None:
        self.robot = robot
        angle = 0.5 * np.pi + 0.8 * np.pi * np.arange(6)
        corners = 0.5 * STAR_WIDTH / np.sin(0.4 * np.pi) * np.stack([np.cos(angle), np.sin(angle)], 1)
        bend, self._poses = np.zeros(2), []
        for s in np.linspace(0.0, 5.0 * part, max(2, round(5 * part * PER_EDGE)) + 1):
            k = min(int(s), 4)
            bend = _bend_to(robot, corners[k] + (s - k) * (corners[k + 1] - corners[k]), bend)
            self._poses.append(robot.pose(np.tile(bend, robot.nq // 2), 'tip'))
        self._path = PosePath(0.0, self._poses[0], self._poses[1:], _USUAL.speed, _USUAL.angular_speed)
        self.seconds = next(t for t in np.arange(0.0, 600.0, 0.01) if not np.any(self._path.sample(t).V_WT))

    def approach(self) -> PoseArray:
        """Return the reference that leads to the first corner."""
        return _pose_array(self._poses[:1])

    def message(self) -> PoseArray:
        """Return the reference of the star, starting at its first corner."""
        return _pose_array(self._poses[1:])

    def tips(self, t: Array) -> tuple[Array, Rotation]:
        """Wanted position and orientation of the tip in `world`, t seconds after the start."""
        return _in_world(self.robot, [self._path.sample(s).X_WT for s in t])


def _bend_to(robot: sd.Robot, xy: Array, bend: Array) -> Array:
    """Two angles, equal for all segments, that bring the model's tip to x, y: Newton's method."""
    for _ in range(10):
        q = np.tile(bend, robot.nq // 2)
        J = robot.jacobian(q, 'tip')[3:5].reshape(2, -1, 2).sum(1)
        bend = bend + np.linalg.solve(J, xy - robot.pose(q, 'tip')[:2, 3])
    return bend


def _pose_array(poses: list[Array]) -> PoseArray:
    message = PoseArray()
    message.header.frame_id = 'base_link'
    for X in poses:
        message.poses.append(pose_from_matrix(X))
    return message


def _in_world(robot: sd.Robot, poses: list[Array]) -> tuple[Array, Rotation]:
    mount, X = robot.description.mount, np.array(poses)
    R_WF = Rotation.from_euler('xyz', mount.rpy)
    return R_WF.apply(X[:, :3, 3]) + mount.position, R_WF * Rotation.from_matrix(X[:, :3, :3])


@dataclass
class Drawn:
    """A drawn figure."""

    name: str
    law: str
    load: float  # [kg]
    t: Array  # [s] since the start
    tip: Array  # (n, 3) [m] measured
    wanted: Array  # (n, 3) [m]
    turn: Array  # (n,) [rad] orientation error
    q_rms: float | None  # [rad] error of the estimated coordinates, if the reference has coordinates
    command_t: Array
    command: Array  # (m, chambers) [Pa]

    @property
    def error(self) -> Array:
        """Return the distance of the tip from its reference [m]."""
        return np.linalg.norm(self.tip - self.wanted, axis=1)

    @property
    def rms(self) -> float:
        return float(np.sqrt(np.mean(self.error**2)))

    def row(self) -> list[str]:
        """Return a row of the table."""
        return [
            self.name,
            self.law,
            f'{1e3 * self.load:.0f} g',
            f'{1e3 * self.rms:.1f} mm',
            f'{1e3 * float(self.error.max()):.1f} mm',
            f'{np.degrees(np.sqrt(np.mean(self.turn**2))):.2f} deg',
            '-' if self.q_rms is None else f'{self.q_rms:.4f} rad',
        ]


HEADER = ['figure', 'controller', 'load', 'tip RMS', 'largest', 'orientation RMS', 'coordinates RMS']


def drawn(figure: Eight | Star, log: Log, start: float, load: float) -> Drawn:
    """Compare the samples received since the start of a figure [s, ROS] with the reference."""
    inside = [k for k, sample in enumerate(log.tip) if 0.0 <= sample.t - start <= figure.seconds]
    t = np.array([log.tip[k].t - start for k in inside])
    wanted, turn = figure.tips(t)
    measured = Rotation.from_quat([log.turn[k] for k in inside])
    q_rms = None
    if isinstance(figure, Eight):
        states = [sample for sample in log.q if 0.0 <= sample.t - start <= figure.seconds]
        wanted_q = figure.coordinates(np.array([sample.t - start for sample in states]))
        q_rms = float(np.sqrt(np.mean((np.array([s.value for s in states]) - wanted_q) ** 2)))
    return Drawn(
        figure.name,
        figure.law,
        load,
        t,
        np.array([log.tip[k].value for k in inside]),
        wanted,
        (measured * turn.inv()).magnitude(),
        q_rms,
        np.array([sample.t - start for sample in log.command]),
        np.array([sample.value for sample in log.command]),
    )


def table(rows: list[list[str]]) -> list[str]:
    """Return lines with aligned columns."""
    lines = [HEADER, *rows]
    widths = [max(len(line[k]) for line in lines) for k in range(len(HEADER))]
    return ['  '.join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines]


def picture(figures: list[Drawn], file: Path) -> None:
    """Draw both figures from above, with tip error and pressures below, and replace the file in one step."""
    import matplotlib as mpl

    mpl.use('Agg')
    import matplotlib.pyplot as plt

    with plt.style.context(STYLE):
        canvas, axes = plt.subplots(
            3, len(figures), figsize=(8.0, 8.0), height_ratios=(3.2, 1.0, 1.0), squeeze=False
        )
        for (above, off, air), figure in zip(axes.T, figures, strict=True):
            _draw(above, off, air, figure)
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_name(f'.{file.name}.{id(figures)}.part')
        canvas.savefig(part, format='png', dpi=110)
        part.replace(file)
        plt.close(canvas)


def _draw(above: Any, off: Any, air: Any, figure: Drawn) -> None:
    above.plot(*(1e3 * figure.wanted[:, :2].T), color='0.6', lw=3.0, label='reference')
    above.plot(*(1e3 * figure.tip[:, :2].T), lw=1.2, label='tip, by motion capture')
    load = f', {1e3 * figure.load:.0f} g unknown load' if figure.load else ''
    above.set(title=f'{figure.name}: {figure.law} controller{load}', xlabel='x [mm]', ylabel='y [mm]')
    above.axis('equal')
    above.legend(loc='lower right')
    off.plot(figure.t, 1e3 * figure.error)
    off.set(ylabel='tip off [mm]', ylim=(0.0, None))
    inside = (figure.command_t >= 0.0) & (figure.command_t <= figure.t[-1])
    air.plot(figure.command_t[inside], 1e-3 * figure.command[inside], lw=0.6)
    air.set(xlabel='time [s]', ylabel='pressures [kPa]')
