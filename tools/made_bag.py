"""Make a bag of a known motion: simulate it and write it as a rig would record it.

python -m tools.made_bag honeycomb_arm run --seconds 600                       all topics
python -m tools.made_bag honeycomb_arm run --streams poses pressure --noise 1e-3
"""

from __future__ import annotations

import argparse
import heapq
import shutil
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.interpolate import CubicHermiteSpline
from scipy.spatial.transform import Rotation

import soft_dynamics as sd
from soft_dynamics.array import Array
from soft_dynamics.bags import BagWriter, SampleWriter
from soft_dynamics.commands.arguments import number
from soft_dynamics.description.sensors import Sensor
from soft_dynamics.geometry.se3 import inverse, pose_from_rpy
from soft_dynamics.simulation.simulate import Trajectory
from soft_estimation.commands.progress_bar import ProgressBar
from soft_estimation.commands.run_command import run_command
from soft_estimation.inverse_kinematics.pose_tracking import frame_index

START_NS = 1_700_000_000_000_000_000
RATES = dict.fromkeys(('pressure', 'poses', 'frames', 'fiber'), 100.0) | {
    'state': 200.0,
    'wrench': 500.0,
}  # [Hz]
FIBER_POINTS = 213
Rows = Iterator[tuple[int, str, str, tuple[Any, ...]]]  # time, method of SampleWriter, topic, fields


def driven(robot: sd.Robot, duration: float, rate: float = 100.0) -> Trajectory:
    """Simulate from rest under smooth pressures that differ from chamber to chamber."""
    t = np.arange(round(duration * rate) + 1) / rate
    chamber = np.arange(len(robot.chamber_names))
    share = 0.5 + 0.4 * np.sin(2.0 * np.pi * (0.2 + 0.07 * chamber) * t[:, None] + chamber)
    pressure = robot.description.actuation.pressure_max * np.minimum(1.0, t)[:, None] * share
    return robot.simulate(robot.rest, np.zeros(robot.nq), pressure, t)


class Rig:
    """Sensors of a robot in a known motion, with white noise on coordinates [rad or m] and wrenches [N m, N].

    seed: of the noise; use another seed for another run.
    """

    def __init__(
        self,
        robot: sd.Robot,
        motion: Trajectory,
        namespace: str = '',
        noise: float = 0.0,
        wrench_noise: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.robot, self.motion, self.namespace = robot, motion, namespace
        self._q = CubicHermiteSpline(motion.t, motion.q, motion.qd)
        self._qdd = np.gradient(motion.qd, motion.t, axis=0)
        self._noise, self._wrench_noise, self._random = noise, wrench_noise, np.random.default_rng(seed)
        mount = robot.description.mount
        self._X_WM = pose_from_rpy(mount.position, mount.rpy)

    def rows(self, stream: str, rate: float) -> Rows:
        """Yield all messages of a stream."""
        t = np.arange(int(self.motion.t[-1] * rate + 1e-9) + 1) / rate
        stamps = (START_NS + np.round(t * 1e9).astype(np.int64)).tolist()
        made = getattr(self, f'_{stream}')(t)
        for k, t_ns in enumerate(stamps):
            for kind, topic, fields in made(k):
                yield t_ns, kind, f'{self.namespace}/{topic}', fields

    def _at(self, t: Array, values: Array) -> Array:
        return np.stack([np.interp(t, self.motion.t, column) for column in values.T], 1)

    def _noisy(self, values: Array) -> Array:
        return values + self._noise * self._random.normal(size=values.shape)

    def _state(self, t: Array) -> Any:
        q, qd, qdd = self._noisy(self._q(t)), self._at(t, self.motion.qd), self._at(t, self._qdd)
        names = self.robot.coordinate_names
        return lambda k: [('state', 'state', (self.robot.name, names, (q[k], qd[k], qdd[k])))]

    def _pressure(self, t: Array) -> Any:
        p, names = self._at(t, self.motion.inputs), self.robot.chamber_names
        return lambda k: [
            ('pressures', f'pressure/{what}', (names, p[k])) for what in ('measured', 'command')
        ]

    def _wrench(self, t: Array) -> Any:
        wrench_B = self.robot.base_wrench(self.motion.q, self.motion.qd, self._qdd)
        (sensor, *_) = self._sensors('ft')
        X_BS = pose_from_rpy(sensor.position, sensor.rpy)
        force = self._at(t, wrench_B[:, 3:]) @ X_BS[:3, :3]
        torque = (self._at(t, wrench_B[:, :3]) - np.cross(X_BS[:3, 3], self._at(t, wrench_B[:, 3:]))) @ X_BS[
            :3, :3
        ]
        noise = self._wrench_noise * self._random.normal(size=(t.size, 6))
        return lambda k: [('wrench', 'ft/wrench', (np.array([*torque[k], *force[k]]) + noise[k],))]

    def _poses(self, t: Array) -> Any:
        bodies = self._bodies(t)
        return lambda k: [
            ('pose', f'{s.kind}/{s.name}/pose', (quat[k], p[k])) for s, (quat, p) in bodies.items()
        ]

    def _frames(self, t: Array) -> Any:
        bodies = self._bodies(t)
        frames = []
        for kind in {sensor.kind for sensor in bodies}:
            names = [sensor.name for sensor in bodies if sensor.kind == kind]
            poses = [pose for sensor, pose in bodies.items() if sensor.kind == kind]
            quat, p = (np.stack(values, 1) for values in zip(*poses, strict=True))
            frames.append((f'{kind}/frame', names, quat, p))
        return lambda k: [('bodies', topic, (names, quat[k], p[k])) for topic, names, quat, p in frames]

    def _bodies(self, t: Array) -> dict[Sensor, tuple[Array, Array]]:
        """Return quaternions (n, 4) and positions (n, 3) of the tracked bodies in the world of ROS."""
        X_M = self.robot.forward_kinematics(self._noisy(self._q(t)))
        bodies = {}
        for sensor in self._sensors('mocap', 'vive'):
            X_FS = pose_from_rpy(sensor.position, sensor.rpy)
            X_WS = self._X_WM @ X_M[:, frame_index(self.robot, sensor)] @ X_FS
            bodies[sensor] = Rotation.from_matrix(X_WS[:, :3, :3]).as_quat(), X_WS[:, :3, 3]
        return bodies

    def _fiber(self, t: Array) -> Any:
        q, s = self._noisy(self._q(t)), np.linspace(0.0, self.robot.length, FIBER_POINTS)
        X_MB = self.robot.pose(self.robot.rest, 'base')
        sensors = self._sensors('fiber')
        X_BS = pose_from_rpy(sensors[0].position, sensors[0].rpy) if sensors else np.eye(4)
        X_SM = inverse(X_MB @ X_BS)

        def made(k: int) -> Any:
            points = self.robot.centerline(q[k], s) @ X_SM[:3, :3].T + X_SM[:3, 3]
            return [('shape', 'fiber/shape', (s, points))]

        return made

    def _sensors(self, *kinds: str) -> list[Sensor]:
        return [sensor for sensor in self.robot.description.sensors if sensor.kind in kinds]


def write_bag(
    path: Path, rig: Rig, streams: Collection[str], rates: dict[str, float] = RATES, **options: Any
) -> Path:
    """Write the streams of a rig in time order; options: storage, progress."""
    merged = heapq.merge(*(rig.rows(stream, rates[stream]) for stream in streams), key=lambda row: row[0])
    length, progress = rig.motion.t[-1] * 1e9, options.get('progress', lambda _: None)
    with BagWriter(path, options.get('storage', 'mcap')) as bag:
        writer = SampleWriter(bag)
        for k, (t_ns, kind, topic, fields) in enumerate(merged):
            getattr(writer, kind)(topic, t_ns, *fields)
            if k % 1000 == 0:
                progress((t_ns - START_NS) / length)
    return path


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog='python -m tools.made_bag',
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument('robot', help='shipped robot or path of a robot file')
    made.add_argument('out', type=Path, help='folder of the new bag')
    made.add_argument('--seconds', type=number(0.1, 1e5), default=30.0)
    made.add_argument('--streams', nargs='+', choices=RATES, default=list(RATES))
    made.add_argument(
        '--noise', type=float, default=0.0, help='standard deviation on the coordinates [rad or m]'
    )
    return made


def command(options: argparse.Namespace) -> int:
    robot = sd.load(options.robot)
    streams = options.streams
    if not any(sensor.kind == 'ft' for sensor in robot.description.sensors):
        streams = [stream for stream in streams if stream != 'wrench']
    if options.out.exists():
        raise FileExistsError(f'bag {options.out}: exists already')
    rig = Rig(robot, driven(robot, options.seconds, 200.0), noise=options.noise)
    try:
        with ProgressBar('writing') as bar:
            write_bag(options.out, rig, streams, progress=bar)
    except BaseException:  # also on Ctrl-C: leave no partial bag
        shutil.rmtree(options.out, ignore_errors=True)
        raise
    size = sum(file.stat().st_size for file in options.out.iterdir())
    print(f'{options.out}: {options.seconds:g} s of {robot.name}, {", ".join(streams)}, {size / 1e6:.0f} MB')
    return 0


def main(args: list[str] | None = None) -> int:
    return run_command('tools.made_bag', parser(), command, args)


if __name__ == '__main__':
    sys.exit(main())
