"""A star 0.6 m wide, drawn by the tip with unmodelled loads, at 20 Hz, on the plant of the virtual rig.

Problem: follow 500 poses, one per 50 ms, that the tip reached while slow inflation drew a star, with unmodelled loads
of 0, 100, 200 and 500 g. Find the tracking error under the task law and the predictive law. Symbols: e distance [mm]
and angle [deg] from the tip of the plant to the current pose, RMS over the star. Source: [Wang, sec. IV-C.2, Fig. 16],
which shows curves without numbers; the error grows with the load, most at the vertices.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from examples.wang.bench_arm import BenchArm
from examples.wang.pictures import panels
from examples.wang.point_to_point import LAWS, LOADS, RATE
from examples.wang.references import star
from soft_control.control_loop import Actuate
from soft_control.references import PosePath
from soft_dynamics.commands.arguments import file_to_write, number
from soft_dynamics.geometry.se3 import pose_error

APPROACH = 8.0  # [s] from rest to the first pose
UNBOUND = 100.0  # [m/s or rad/s] the poses set the speed: one per cycle


def draw(
    law: Any, poses: Sequence[np.ndarray], load: float, actuate: Actuate | None = None
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the path of the tip (samples, 3) [m], errors [mm], [deg] (samples, 2), CPU time of a control cycle [s]."""
    arm = BenchArm(law, RATE, load, actuate)
    arm.loop.follow(arm.t, PosePath(arm.t, arm.loop.present(arm.t).X_WT, [poses[0]], 0.15, 1.0))
    arm.run(APPROACH)
    path = PosePath(arm.t, poses[0], poses[1:], UNBOUND, UNBOUND, 1.0 / RATE)
    arm.loop.follow(arm.t, path)
    first, clock = len(arm.log.t), Clock(arm.loop)
    log = arm.run((len(poses) - 1) / RATE)
    e = np.array([pose_error(path.sample(t).X_WT, X) for t, X in zip(log.t, log.X, strict=True)])[first:]
    off = np.stack([1e3 * np.linalg.norm(e[:, 3:], axis=1), np.degrees(np.linalg.norm(e[:, :3], axis=1))], 1)
    return np.array(log.X)[first:, :3, 3], off, float(np.median(clock.taken))


class Clock:
    """Measures the CPU time of each step of a control loop."""

    def __init__(self, loop: Any) -> None:
        self.taken: list[float] = []
        self._step = loop.step
        loop.step = self.step

    def step(self, t: float) -> Any:
        begin = time.thread_time()
        memory = self._step(t)
        self.taken.append(time.thread_time() - begin)
        return memory


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description='A star with unmodelled loads.')
    parser.add_argument('--loads', type=number(0.0, 5.0), nargs='+', default=LOADS, help='[kg]')
    parser.add_argument('--poses', type=number(2, 1e4, int), default=500, help='number of poses of the star')
    parser.add_argument('--laws', nargs='+', default=list(LAWS), choices=LAWS)
    parser.add_argument('--figure', type=file_to_write, help='PNG of the result')
    options = parser.parse_args(argv)

    print(f'paper: {RATE:.0f} Hz, 500 poses, 0.6 m, curves only (Fig. 16)')
    poses = star(options.poses)
    wanted = 1e3 * np.array(poses)[:, :2, 3]
    shape = len(options.laws), len(options.loads)
    with panels(options.figure, shape, (1.8 * shape[1], 1.9 * shape[0])) as axes:
        for k, law in enumerate(options.laws):
            for load, axis in zip(options.loads, axes[k * shape[1] :], strict=False):
                tip, off, cycle = draw(LAWS[law](), poses, load)
                rms = np.sqrt(np.mean(off**2, axis=0))
                print(
                    f'{law:12s}{1e3 * load:3.0f} g: RMS {rms[1]:.2f} deg, largest {off[:, 0].max():.1f} mm, '
                    f'cycle {1e3 * cycle:.1f} ms, RMS {rms[0]:.1f} mm'
                )
                if axis is not None:
                    axis.plot(*wanted.T, '--', color='0.6', lw=0.8)
                    axis.plot(*(1e3 * tip[:, :2].T), lw=0.9, color=f'C{k}')
                    axis.set(aspect='equal')
                    axis.set_title(f'{law}, {1e3 * load:.0f} g: {rms[0]:.1f} mm', fontsize=7)
                    axis.tick_params(labelsize=6)


if __name__ == '__main__':
    main()
