"""The problem of every method: a robot with unknowns, its recordings, and free runs of the model."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter

from soft_dynamics.array import Array
from soft_dynamics.description.robot_description import Description
from soft_dynamics.errors import NotConverged
from soft_dynamics.robot import Robot
from soft_dynamics.simulation.first_order_lag import follow

from ..differentiate.smoothing_spline import smoothing_spline
from ..recordings.recording import Recording
from .unknowns import LAGS, Parameter, apply

TINY = 1e-30
SHORT = 3  # samples that a filter needs
LEAST_SPREAD = (
    0.05  # a coordinate counts as if it had moved at least this fraction of the one that moved most
)


class Window(NamedTuple):
    """Rows of a recording for one free run."""

    recording: int
    rows: slice


class Run(NamedTuple):
    """A free run under pressures u at its own times t; each `every`-th sample (even) belongs to the recording."""

    t: Array
    q: Array
    qd: Array
    u: Array
    every: int


@dataclass(frozen=True)
class Problem:
    """Unknowns x (p,) of a robot and the recordings to find them from.

    window [s]: length of a free run before the next one starts from the measurement; longer than the recordings means
    from start to end. step [s]: largest step of the simulation.

    A filtered recording is compared with a run that passes the same filter; otherwise the filter would look like
    damping.

    Recorded pressures are those of the sensors, which the chambers follow with fill_lag and vent_lag. If `valve_lag` is
    an unknown, they are commands or pressures in the lines, and the others follow with that lag.  [Mehl, sec. V]
    """

    description: Description
    parameters: tuple[Parameter, ...]
    recordings: tuple[Recording, ...]
    window: float = 10.0
    step: float = 5e-3

    def __post_init__(self) -> None:
        robot = Robot(self.description)
        for name, value in (('window', self.window), ('step', self.step)):
            if not value > 0.0:
                raise ValueError(f'{name} must be > 0 s, got {value}')
        if not self.recordings:
            raise ValueError('recordings: expected at least one, got none')
        for recording in self.recordings:
            shapes = {
                'q': (recording.q, robot.nq),
                'pressure': (recording.pressure, len(robot.chamber_names)),
            }
            for name, (array, width) in shapes.items():
                if array.shape[1] != width:
                    raise ValueError(f'{name}: {robot.name} has {width} columns, got {array.shape[1]}')

    def robot(self, x: Array) -> Robot:
        """Return the robot, driven by the chamber pressures of `pressures`."""
        found = apply(self.description, self.parameters, x)
        return Robot(replace(found, actuation=replace(found.actuation, fill_lag=0.0, vent_lag=0.0)))

    @cached_property
    def start(self) -> Array:
        """The unknowns at the values of the file."""
        return np.zeros(len(self.parameters))

    @cached_property
    def low(self) -> Array:
        return np.array([parameter.low for parameter in self.parameters])

    @cached_property
    def high(self) -> Array:
        return np.array([parameter.high for parameter in self.parameters])

    @cached_property
    def moving(self) -> npt.NDArray[np.intp]:
        """Indices of the coordinates that the dynamics determines: all but those of a moving base."""
        first = 6 if self.description.base.type == 'prescribed' else 0
        return np.arange(first, self.recordings[0].q.shape[1])

    @cached_property
    def spread(self) -> Array:
        """Scales (nq,) of the deviations: how much each coordinate moved."""
        moved: Array = np.std(np.concatenate([recording.q for recording in self.recordings]), axis=0)
        largest = moved[self.moving].max()
        if not largest > 0.0:
            raise ValueError('q: expected a robot that moves, got a constant')
        return np.maximum(moved, LEAST_SPREAD * largest)

    @cached_property
    def windows(self) -> list[Window]:
        """Windows of about the same length; neighbours share a row."""
        pieces = []
        for k, recording in enumerate(self.recordings):
            count = max(1, math.ceil(recording.duration / self.window - 1e-6))
            edges = np.linspace(0, recording.t.size - 1, count + 1).astype(int)
            pieces += [Window(k, slice(a, b + 1)) for a, b in pairwise(edges.tolist())]
        return pieces

    @cached_property
    def lags(self) -> dict[int, str]:
        """Indices of the lags among the unknowns, and their names."""
        return {k: p.targets[0].owner for k, p in enumerate(self.parameters) if p.targets[0].owner in LAGS}

    def pressures(self, x: Array) -> list[Array]:
        """Return the chamber pressures of every recording."""
        return [np.ascontiguousarray(p.real) for p in self._followed(x, None)]

    def pressure_slopes(self, x: Array) -> dict[int, list[Array]]:
        """Return d pressures / dx of every lag among the unknowns, by a complex step."""
        return {k: [p.imag / TINY for p in self._followed(x, k)] for k in self.lags}

    def _followed(self, x: Array, nudged: int | None) -> list[Any]:
        drive = apply(self.description, self.parameters, x).actuation
        time: dict[str, Any] = {'fill_lag': drive.fill_lag, 'vent_lag': drive.vent_lag, 'valve_lag': 0.0}
        for k, name in self.lags.items():
            slope = self.parameters[k].slope(x[k]) * 1j * TINY if k == nudged else 0.0
            time[name] = getattr(drive, name) + slope
        found = []
        for recording in self.recordings:
            p: Any = recording.pressure
            if time['valve_lag']:
                p = follow_evenly(p, recording.dt, time['valve_lag'])
            if p.size and (time['fill_lag'] or time['vent_lag']):
                p = follow(recording.t, p, time['fill_lag'], time['vent_lag'], p[0])
            found.append(p)
        return found

    def run(self, robot: Robot, window: Window, pressure: Array, start: Any = None) -> Run:
        """Simulate a window from `start` (q, qd), or from the measured start."""
        recording, rows = self.recordings[window.recording], window.rows
        q0, qd0 = start if start is not None else (recording.q[rows][0], recording.qd[rows][0])
        times = recording.t[rows]
        every = 2 * max(1, math.ceil(recording.dt / (2 * self.step) - 1e-9))
        t = np.interp(np.arange((times.size - 1) * every + 1) / every, np.arange(times.size), times)
        u = (
            np.stack([np.interp(t, times, column) for column in pressure[rows].T], 1)
            if pressure.size
            else None
        )
        motion = robot.simulate(q0, qd0, u, t, step=self.step)
        return Run(t, motion.q, motion.qd, motion.inputs, every)

    def at_samples(self, window: Window, every: int, values: Array) -> Array:
        """Return values of a run (first axis) at the times of the recording, filtered like it."""
        recording, sampled = self.recordings[window.recording], values[::every]
        if recording.bandwidth is None or len(sampled) < SHORT:
            return sampled
        flat = sampled.reshape(len(sampled), -1)
        smooth = smoothing_spline(recording.t[window.rows], flat, recording.bandwidth)
        return np.asarray(smooth(smooth.x)).reshape(sampled.shape)

    def deviations(self, x: Array) -> Iterator[Array]:
        """Return model minus measurement (n, nq), window by window, from the measured start of each.

        Raises NotConverged if the model cannot run.
        """
        robot = self.robot(x)
        pressures = self.pressures(x)
        for window in self.windows:
            run = self.run(robot, window, pressures[window.recording])
            q = self.at_samples(window, run.every, run.q)
            yield q - self.recordings[window.recording].q[window.rows]

    def error(self, x: Array, power: int = 2) -> float:
        """Return the scaled free-run error: RMS (power 2), or mean (1); infinite if the model cannot run."""
        try:
            scaled = np.concatenate([deviation / self.spread for deviation in self.deviations(x)])
        except NotConverged:
            return math.inf
        error = float(np.mean(np.abs(scaled[:, self.moving]) ** power) ** (1.0 / power))
        return error if math.isfinite(error) else math.inf

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything that affects the result."""
        bandwidths = [recording.bandwidth for recording in self.recordings]
        settings = (self.description, self.parameters, self.window, self.step, bandwidths)
        digest = hashlib.sha256(repr(settings).encode())
        for recording in self.recordings:
            for array in (recording.t, recording.q, recording.qd, recording.pressure):
                digest.update(array.tobytes())
        return digest.hexdigest()[:16]


def follow_evenly(command: Array, dt: float, lag: complex) -> Any:
    """Return pressures from commands (n, m), dp/dt = (command - p)/lag, from equilibrium; exact for linear pieces."""
    decay = np.exp(-dt / lag)
    part = lag / dt * (1.0 - decay)
    return lfilter([1.0 - part, part - decay], [1.0, -decay], command - command[0], axis=0) + command[0]
