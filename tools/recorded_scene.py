"""A recording as RViz shows it: measured and predicted body, path of the reference, force on the base."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import soft_dynamics as sd
from soft_dynamics.array import Array
from soft_dynamics.bags import Bag, open_bag
from soft_dynamics.geometry.tip_path import tip_path
from soft_dynamics.geometry.tube import frame_poses
from soft_estimation.commands.progress_bar import ProgressBar
from soft_estimation.commands.run_command import say
from soft_estimation.recordings.recording import Recording, read_recording
from soft_estimation.validation.free_run import validate

RATE = 100.0  # [Hz] of the grid
REFERENCES = ('reference/pose', 'reference/poses', 'reference/configuration')


class Moment(NamedTuple):
    """One picture of a recording; None: not recorded."""

    q: Array  # (nq,) measured
    pressure: Array  # (m,) [Pa]
    predicted: Array | None = None  # (nq,)
    path: Array | None = None  # (n, 3) [m] of the reference, in the world of ROS
    force: Array | None = None  # (3,) [N] on the base, in the world of ROS


class RecordedScene:
    """A bag as `validate` reads it, the free run of the model, and the recorded references."""

    def __init__(self, path: Path, robot: sd.Robot) -> None:
        self.robot = robot
        with open_bag(path, say):  # repairs the bag if needed, with a message
            pass
        with ProgressBar('reading') as bar:
            self.recording: Recording = read_recording(path, robot, RATE, 'auto', 10.0, bar)
        with ProgressBar('simulating') as bar:
            run = validate(robot, self.recording, progress=bar).free
        self._predicted = run.q
        if run.stopped:
            say(f'the prediction ends early: {run.stopped}')
        with open_bag(path) as bag:
            self._poses, self._plans = self._references(bag)

    def at(self, t: float) -> Moment:
        """Return the picture at a time [s] of the recording. Raises ValueError outside the recording."""
        recording = self.recording
        if not 0.0 <= t <= recording.duration:
            raise ValueError(f'--at: must be 0 to {recording.duration:g} s (the recording), got {t:g}')
        k = round(t * RATE)
        q = recording.q[k]
        predicted = self._predicted[k] if k < len(self._predicted) else None
        force = None
        if recording.wrench_B is not None:
            force = frame_poses(self.robot, q)[0, :3, :3] @ recording.wrench_B[k, 3:]
        return Moment(q, recording.pressure[k], predicted, self._path(t), force)

    def _path(self, t: float) -> Array | None:
        """Return the path of single poses until t, or the newest plan, whichever is newer."""
        went = [(when, point) for when, point in self._poses if when <= t]
        plans = [(when, points) for when, points in self._plans if when <= t]
        if plans and (not went or plans[-1][0] > went[-1][0]):
            return plans[-1][1]
        return np.array([point for _, point in went]) if len(went) > 1 else None

    def _references(self, bag: Bag) -> tuple[list[tuple[float, Array]], list[tuple[float, Array]]]:
        """Return (time, point) of single poses and (time, points) of lists and trajectories."""
        topics = [topic for topic in bag.topics if topic.lstrip('/').endswith(REFERENCES)]
        poses, plans = [], []
        for message in bag.messages(topics) if topics else ():
            t = (message.t_ns - bag.start_ns) * 1e-9 - self.recording.begin
            content = bag.decode(message)
            if message.topic.endswith('pose'):
                poses.append((t, self._placed(content.header, [content.pose])[0]))
            elif message.topic.endswith('poses'):
                plans.append((t, self._placed(content.header, content.poses)))
            else:
                plans += [(t, path) for path in self._of_trajectory(t, content)]
        return poses, plans

    def _placed(self, header: Any, poses: Any) -> Array:
        """Return positions (n, 3) in the world of ROS."""
        p = np.array([[pose.position.x, pose.position.y, pose.position.z] for pose in poses]).reshape(-1, 3)
        if header.frame_id != 'base_link':
            return p
        X_RB = frame_poses(self.robot, self.robot.rest)[0]
        return np.asarray(p @ X_RB[:3, :3].T + X_RB[:3, 3])

    def _of_trajectory(self, t: float, message: Any) -> list[Array]:
        """Return the path of the tip, or none if the trajectory does not fit this robot."""
        k = int(np.clip(round(t * RATE), 0, len(self.recording.t) - 1))
        times = [p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in message.points]
        try:
            points = np.array([point.positions for point in message.points], np.float64)
            return [tip_path(self.robot, self.recording.q[k], message.joint_names, times, points)]
        except ValueError as error:
            say(f'a reference at {t:.1f} s is not shown: {error}')
            return []
