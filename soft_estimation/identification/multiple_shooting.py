"""Residuals of free runs in windows, with the start of every window as an unknown, and their exact gradients.

A measured start is noisy, especially its rate. If the fit took it as true, springs and dampers would compensate for the
noise. So each window has its own start, estimated with the unknowns of the robot: multiple shooting without continuity
between windows, because a continuous run would hide where the model is wrong.
"""

from __future__ import annotations

import numpy as np

from soft_dynamics.array import Array
from soft_dynamics.errors import SoftRobotError
from soft_dynamics.robot import Robot

from .problem import Problem, Run
from .sensitivity import Slopes, slopes

FAR = 1e3  # residual of a model that cannot run


class Shooting:
    """Function and Jacobian for `scipy.optimize.least_squares`, of z = (x, starts of the windows)."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.p = len(problem.parameters)
        rates = np.concatenate([recording.qd for recording in problem.recordings])
        rate_spread = np.maximum(np.std(rates, axis=0), problem.spread)
        moving = problem.moving
        self._units = np.concatenate([problem.spread[moving], rate_spread[moving]])
        self._z: Array | None = None
        self._runs: list[Run] = []

    @property
    def per_window(self) -> int:
        return 2 * self.problem.moving.size

    def begin(self, x: Array) -> Array:
        """Return z with the measured starts."""
        return np.concatenate([x, np.zeros(self.per_window * len(self.problem.windows))])

    def residuals(self, z: Array) -> Array:
        """Return scaled model minus measurement, for all samples of all windows."""
        problem, parts = self.problem, []
        try:
            self._simulate(z)
        except SoftRobotError:
            rows = sum(window.rows.stop - window.rows.start for window in problem.windows)
            return np.full(rows * problem.moving.size, FAR)
        for window, run in zip(problem.windows, self._runs, strict=True):
            q = problem.at_samples(window, run.every, run.q)
            deviation = q - problem.recordings[window.recording].q[window.rows]
            parts.append((deviation / problem.spread)[:, problem.moving].ravel())
        return np.concatenate(parts)

    def jacobian(self, z: Array) -> Array:
        """Return d residuals / dz; zero where the model cannot run."""
        try:
            blocks = self.blocks(z)
        except SoftRobotError:
            problem, moving = self.problem, self.problem.moving
            rows = [moving.size * (window.rows.stop - window.rows.start) for window in problem.windows]
            blocks = [(np.zeros((count, self.p)), np.zeros((count, self.per_window))) for count in rows]
        total = sum(by_x.shape[0] for by_x, _ in blocks)
        J = np.zeros((total, z.size))
        row, column = 0, self.p
        for by_x, by_start in blocks:
            J[row : row + len(by_x), : self.p] = by_x
            J[row : row + len(by_x), column : column + self.per_window] = by_start
            row, column = row + len(by_x), column + self.per_window
        return J

    def blocks(self, z: Array) -> list[tuple[Array, Array]]:
        """Return for every window the gradients of its residuals with respect to x and to its own start.

        Raises SoftRobotError if the model cannot run, or has no derivatives along a run.
        """
        problem, moving = self.problem, self.problem.moving
        x = z[: self.p]
        blocks: list[tuple[Array, Array]] = []
        robot = self._simulate(z)
        for window, run in zip(problem.windows, self._runs, strict=True):
            found = Slopes(
                *(problem.at_samples(window, 1, of) for of in slopes(problem, x, robot, window, run))
            )
            scale = 1.0 / problem.spread[moving][None, :, None]
            starts = np.concatenate([moving, robot.nq + moving])
            by_start = (found.start[:, moving][:, :, starts] * scale) * self._units
            by_x = found.parameters[:, moving] * scale
            blocks.append((by_x.reshape(-1, self.p), by_start.reshape(-1, starts.size)))
        return blocks

    def _simulate(self, z: Array) -> Robot:
        """Run all windows unless this was done for this z; return the robot."""
        problem, x = self.problem, z[: self.p]
        robot = problem.robot(x)
        if self._z is not None and np.array_equal(z, self._z):
            return robot
        pressures, runs = problem.pressures(x), []
        offsets = z[self.p :].reshape(len(problem.windows), 2, -1) * self._units.reshape(2, -1)
        for window, (dq, dqd) in zip(problem.windows, offsets, strict=True):
            recording, first = problem.recordings[window.recording], window.rows.start
            q0, qd0 = recording.q[first].copy(), recording.qd[first].copy()
            q0[problem.moving] += dq
            qd0[problem.moving] += dqd
            runs.append(problem.run(robot, window, pressures[window.recording], (q0, qd0)))
        self._z, self._runs = z.copy(), runs
        return robot
