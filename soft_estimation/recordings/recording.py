"""Recorded run of a robot on an even time grid, from a bag or from arrays, for `validate` and `identify`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.interpolate import CubicHermiteSpline

from soft_dynamics.array import Array, as_array
from soft_dynamics.bags import Bag, BagError, open_bag
from soft_dynamics.robot import Robot

from ..differentiate.smoothing_spline import smoothing_spline
from ..kalman.sensors.wrench import wrench_at_base
from .bag_streams import Stream, find, read_streams
from .tracked_coordinates import LEAST, Coordinates, from_fiber, from_poses

SOURCES = ('auto', 'state', 'poses')
GAP = 0.25  # [s] a state further from every sample counts as unmeasured


@dataclass(frozen=True)
class Recording:
    """Measurements at the times t (n,) [s], evenly spaced from 0.

    q, qd, qdd (n, nq) in the order of the robot's coordinates; pressure (n, m) [Pa] gauge in the order of its chambers;
    wrench_B (n, 6) torque and force on the robot at its base, in its axes, or None. `seen` (n,) is False in gaps, where
    q is only interpolated. `source` says where q comes from; `bandwidth` [Hz] belongs to the zero-phase filter of q, qd
    and qdd, or None.
    """

    robot: str
    t: Array
    q: Array
    qd: Array
    qdd: Array
    pressure: Array
    wrench_B: Array | None = None
    seen: npt.NDArray[np.bool_] | None = None
    source: str = 'arrays'
    bandwidth: float | None = None
    begin: float = 0.0  # [s] t = 0 after the first message of the bag

    def __post_init__(self) -> None:
        object.__setattr__(self, 't', as_array('t', self.t))
        _check_times(self.t)
        for name in ('q', 'qd', 'qdd', 'pressure', 'wrench_B'):
            value = getattr(self, name)
            if value is None:
                continue
            value = as_array(name, value)
            if value.ndim != 2 or value.shape[0] != self.t.size:
                n = self.t.size
                raise ValueError(f'{name}: expected {n} rows, got shape {value.shape}; t has {n} times')
            object.__setattr__(self, name, value)
        widths = {'qd': self.q.shape[1], 'qdd': self.q.shape[1], 'wrench_B': 6}
        for name, width in widths.items():
            value = getattr(self, name)
            if value is not None and value.shape[1] != width:
                raise ValueError(f'{name}: expected {width} columns, got {value.shape[1]}')
        if self.seen is None:
            object.__setattr__(self, 'seen', np.ones(self.t.size, bool))

    @property
    def dt(self) -> float:
        """Interval of the grid [s]."""
        return float(self.t[1] - self.t[0])

    @property
    def duration(self) -> float:
        """[s]"""
        return float(self.t[-1] - self.t[0])

    def part(self, start: float, end: float) -> Recording:
        """Return the part from `start` to `end` [s], times from 0, to fit on one part and test on another."""
        rows = (self.t >= start - 1e-9) & (self.t <= end + 1e-9)
        if np.count_nonzero(rows) < 2:
            raise ValueError(f'part: expected times within 0 to {self.t[-1]:g} s, got {start:g} to {end:g}')
        cut: dict[str, Any] = {
            name: None if (value := getattr(self, name)) is None else value[rows]
            for name in ('t', 'q', 'qd', 'qdd', 'pressure', 'wrench_B', 'seen')
        }
        first = float(self.t[rows][0])
        return replace(self, **{**cut, 't': self.t[rows] - first}, begin=self.begin + first)


def _check_times(t: Array) -> None:
    if t.ndim != 1 or t.size < 2:
        raise ValueError(f't: expected at least 2 times in a row, got shape {t.shape}')
    steps = np.diff(t)
    uneven = np.abs(steps - steps[0]) > 1e-3 * steps[0]
    for what, wrong in (('rising times', steps <= 0.0), ('even intervals', uneven)):
        if np.any(wrong):
            k = int(np.argmax(wrong))
            raise ValueError(f't: expected {what}, got {t[k]:.9g} s and then {t[k + 1]:.9g} s')


def read_recording(
    path: str | Path,
    robot: Robot,
    rate: float = 100.0,
    source: str = 'auto',
    bandwidth: float = 10.0,
    progress: Callable[[float], None] | None = None,
) -> Recording:
    """Read a bag as a recording of `robot` on a grid of `rate` [Hz].

    source: 'state' takes the topic `state`; 'poses' converts the tracked bodies (or else the fiber) to coordinates and
    smooths them without delay by a spline of `bandwidth` [Hz]; 'auto' takes the state if there is one. Topics may be in
    a namespace. progress: called with the fraction done, 0 to 1.

    Raises BagError if the bag is damaged, foreign, of another robot, or lacks a topic; ValueError for arguments.
    """
    if source not in SOURCES:
        raise ValueError(f'source must be one of {", ".join(SOURCES)}, got {source!r}')
    for name, value in (('rate', rate), ('bandwidth', bandwidth)):
        if not 0.0 < value < 1e4:
            raise ValueError(f'{name} must be > 0 and < 10000 Hz, got {value}')
    report = progress or (lambda _: None)
    with open_bag(path) as bag:
        topics = _topics(bag, robot, source)
        streams = read_streams(bag, topics, lambda part: report(0.6 * part))
    _check_chambers(Path(path), robot, streams.get('pressure'))

    def rest(part: float) -> None:
        report(0.6 + 0.4 * part)

    if 'state' in streams:
        found = _from_state(Path(path), robot, streams['state'], bandwidth)
    elif 'fiber' in streams:
        found = from_fiber(Path(path), robot, streams['fiber'], (rate, bandwidth), rest)
    else:
        found = from_poses(Path(path), robot, streams, (rate, bandwidth), rest)
    report(1.0)
    return _on_grid(Path(path), robot, found, streams, rate)


def _topics(bag: Bag, robot: Robot, source: str) -> dict[str, str]:
    """Return the topic of each stream by name. BagError if there are not enough."""
    topics: dict[str, str | None] = {
        'pressure': find(bag, 'pressure/measured', needed=bool(robot.chamber_names))
    }
    sensors = robot.description.sensors
    if any(sensor.kind == 'ft' for sensor in sensors):
        topics['wrench'] = find(bag, 'ft/wrench')
    state = None if source == 'poses' else find(bag, 'state', needed=source == 'state')
    if state:
        topics['state'] = state
        return {name: topic for name, topic in topics.items() if topic}
    tracked = [sensor for sensor in sensors if sensor.kind in ('mocap', 'vive')]
    wanted = {sensor.name: f'{sensor.kind}/{sensor.name}/pose' for sensor in tracked}
    frames = {kind: find(bag, f'{kind}/frame') for kind in {sensor.kind for sensor in tracked}}
    poses = {f'frame {kind}': topic for kind, topic in frames.items() if topic and bag.counts[topic]}
    for sensor in tracked:
        topic = find(bag, wanted[sensor.name])
        if topic and f'frame {sensor.kind}' not in poses:
            poses[f'pose {sensor.name}'] = topic
    fiber = find(bag, 'fiber/shape') if any(sensor.kind == 'fiber' for sensor in sensors) else None
    if not poses and not fiber:
        tails = [*wanted.values(), *(['fiber/shape'] if any(s.kind == 'fiber' for s in sensors) else [])]
        wish = ', '.join(tails) or 'none, because its file has no such sensor'
        have = ', '.join(sorted(bag.topics)) or 'none'
        also = '' if source == 'poses' else 'state or '
        raise BagError(bag.path, f'has no {also}poses of {robot.name} (topics {wish}); it has {have}')
    topics.update(poses if poses else {'fiber': fiber})
    return {name: topic for name, topic in topics.items() if topic}


def _check_chambers(path: Path, robot: Robot, stream: Stream | None) -> None:
    missing = [name for name in robot.chamber_names if stream is not None and name not in stream.names]
    if stream is not None and missing:
        raise BagError(
            path,
            f'is not of {robot.name}: {stream.topic} has no chamber {missing[0]!r}; it has {", ".join(stream.names)}',
        )


def _from_state(path: Path, robot: Robot, stream: Stream, bandwidth: float) -> Coordinates:
    """Return q and qd as estimated, and qdd from qd, because the qdd of the message comes from the model."""
    missing = [name for name in robot.coordinate_names if name not in stream.names]
    if missing or len(stream.names) != robot.nq:
        raise BagError(
            path,
            f'is not of {robot.name}: {stream.topic} is of {stream.model or "a robot without name"} with the '
            f'coordinates {", ".join(stream.names)}; expected {", ".join(robot.coordinate_names)}',
        )
    order = [stream.names.index(name) for name in robot.coordinate_names]
    n = robot.nq
    q, qd = stream.values[:, :n][:, order], stream.values[:, n:][:, order]
    if stream.t.size < LEAST:
        raise BagError(path, f'{stream.topic} has {stream.t.size} messages; expected at least {LEAST}')
    smooth = smoothing_spline(stream.t, qd, bandwidth)
    position, rate = (
        CubicHermiteSpline(stream.t, q, qd),
        CubicHermiteSpline(stream.t, qd, smooth(stream.t, 1)),
    )
    return Coordinates(stream.t, position, rate, smooth.derivative(), f'state ({stream.topic})')


def _on_grid(
    path: Path, robot: Robot, found: Coordinates, streams: dict[str, Stream], rate: float
) -> Recording:
    ends = [found.t, *(s.t for name, s in streams.items() if name in ('pressure', 'wrench'))]
    start, end = max(t[0] for t in ends), min(t[-1] for t in ends)
    count = int((end - start) * rate + 1e-6) + 1
    if count < LEAST:
        raise BagError(path, f'state, pressures and wrenches overlap by only {end - start:.3f} s')
    grid = start + np.arange(count) / rate
    pressure: Array = np.zeros((count, len(robot.chamber_names)))
    if 'pressure' in streams and robot.chamber_names:
        stream = streams['pressure']
        order = [stream.names.index(name) for name in robot.chamber_names]
        pressure = resample(stream.t, stream.values[:, order], grid)
    wrench = None
    if 'wrench' in streams:
        (sensor, *_) = [sensor for sensor in robot.description.sensors if sensor.kind == 'ft']
        wrench = wrench_at_base(sensor, resample(streams['wrench'].t, streams['wrench'].values, grid).T).T
    after = np.clip(np.searchsorted(found.t, grid), 1, found.t.size - 1)
    seen = np.minimum(grid - found.t[after - 1], found.t[after] - grid) <= GAP
    q, qd, qdd = found.position(grid), found.rate(grid), found.acceleration(grid)
    motion = q, qd, qdd, pressure, wrench, seen
    return Recording(robot.name, grid - start, *motion, found.source, found.bandwidth, float(start))


def resample(t: Array, values: Array, grid: Array) -> Array:
    """Return values (n, m) on an even grid: linear interpolation, or means over the interval of a coarser grid."""
    step = grid[1] - grid[0]
    columns = values.T
    if np.median(np.diff(t)) > 0.6 * step:
        return np.stack([np.interp(grid, t, column) for column in columns], 1)
    area = np.zeros((t.size, values.shape[1]))
    np.cumsum(0.5 * np.diff(t)[:, None] * (values[1:] + values[:-1]), axis=0, out=area[1:])
    left, right = np.maximum(grid - 0.5 * step, t[0]), np.minimum(grid + 0.5 * step, t[-1])
    means = [(np.interp(right, t, a) - np.interp(left, t, a)) / (right - left) for a in area.T]
    return np.stack(means, 1)
