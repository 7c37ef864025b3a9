"""Runs of the virtual honeycomb arm in lock-step: packets of its devices with arrival times, and the true motion."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import soft_dynamics as sd
from soft_dynamics.array import Array
from soft_dynamics.description.robot_description import Description
from soft_dynamics.description.sensors import Sensor
from soft_estimation.differentiate.pose_differentiator import PoseDifferentiator
from soft_estimation.inverse_kinematics.poses import pose
from soft_estimation.kalman.model_filter import ModelFilter
from soft_hw_bridge.commands.check_rig import joint_angles
from soft_hw_bridge.rig.config import RigConfig
from soft_hw_bridge.rig.device_emulators import Mounted
from soft_hw_bridge.rig.plant import Plant
from soft_hw_bridge.rig.plant_centerline import Centerline

TICK = 1e-3  # [s] of the plant
PERIOD = 5e-3  # [s] of the state, 200 Hz
STIFFER, LESS_DAMPED = 1.1, 0.8  # springs and dampers of the plant relative to the model
SENSOR_RATE = 125.0  # [Hz] sample rate that state_estimator takes of faster devices
BEND = 0.5  # largest pressure, relative to pressure_max
TRACKED, EVERY_SEGMENT = (2, 4), (1, 2, 3, 4)  # segments with a Vive tracker at their end


class Packet(NamedTuple):
    """A measurement of time t, delivered at `arrival`."""

    arrival: float
    t: float
    kind: str
    values: Any


class Run(NamedTuple):
    """Packets in order of arrival, and the true motion (n, nq) at the times t, every PERIOD."""

    packets: list[Packet]
    t: Array
    q: Array
    qd: Array


def model(tracked: Sequence[int] = TRACKED) -> sd.Robot:
    """Return the shipped honeycomb arm with additional trackers and a fiber."""
    arm = sd.load('honeycomb_arm').description
    trackers = [Sensor(name=f'tracker{k}', kind='vive', frame=f'segment{k}') for k in tracked]
    fiber = Sensor(name='fiber', kind='fiber', frame='base')
    return sd.Robot(dataclasses.replace(arm, sensors=(*arm.sensors, *trackers, fiber)))


def plant_description(tracked: Sequence[int] = TRACKED) -> Description:
    """Return the plant's model: other springs and dampers, equal masses. The plant also has more pieces."""
    arm = model(tracked).description
    segments = []
    for segment in arm.segments:
        law = segment.material
        other = dataclasses.replace(
            law,
            stiffness=tuple(STIFFER * k for k in law.stiffness),
            damping=tuple(LESS_DAMPED * d for d in law.damping),
        )
        segments.append(dataclasses.replace(segment, material=other))
    return dataclasses.replace(arm, segments=tuple(segments))


def command(rng: np.random.Generator, largest: float) -> Callable[[float], Array]:
    """Smooth pressures of 16 chambers: sines of 0.2 to 1.2 Hz."""
    f, phase = rng.uniform(0.2, 1.2, 16), rng.uniform(0.0, 2.0 * math.pi, 16)

    def pressure(t: float) -> Array:
        return np.asarray(0.5 * BEND * largest * (1.0 + np.sin(2.0 * math.pi * f * t + phase)))

    return pressure


class Devices:
    """The sensors of the rig with default noise, rates and delays, without a network."""

    def __init__(self, plant: Plant, seed: int) -> None:
        sensors, config = plant.description.sensors, RigConfig()
        self._plant, self._rng = plant, np.random.default_rng(seed)
        self._mocap = Mounted(plant, [s for s in sensors if s.kind == 'mocap'])
        self._vive = Mounted(plant, [s for s in sensors if s.kind == 'vive'])
        length = plant.plan.frames['tip'].s
        self._s = np.arange(0.0, length, config.fiber.spacing)
        self._line, self._R_WB = Centerline(plant, self._s), plant.poses()[0, :3, :3]
        self._config, self._taken = config, dict.fromkeys(('mocap', 'vive', 'fiber', 'ft', 'pressure'), 0)

    def packets(self, t: float) -> list[Packet]:
        """Return the packets due at time t."""
        out = []
        for kind, taken in self._taken.items():
            stream = getattr(self._config, kind)
            rate = min(stream.rate, SENSOR_RATE)
            if t + 1e-9 >= taken / rate:
                self._taken[kind] += 1
                out.append(Packet(t + stream.delay, t, kind, getattr(self, f'_{kind}_values')(stream)))
        return out

    def _mocap_values(self, config: Any) -> dict[str, Array]:
        return {n: pose(p.quat_WB, p.p_WB) for n, p in self._mocap.measured(config, self._rng).items()}

    def _vive_values(self, config: Any) -> dict[str, Array]:
        return {n: pose(p.quat_WB, p.p_WB) for n, p in self._vive.measured(config, self._rng).items()}

    def _fiber_values(self, config: Any) -> tuple[Array, Array]:
        points = (self._line.points() - self._plant.poses()[0, :3, 3]) @ self._R_WB
        return self._s, points + self._rng.normal(0.0, config.noise_position, points.shape)

    def _ft_values(self, config: Any) -> Array:
        sigma = np.repeat([config.noise_torque, config.noise_force], 3)
        return self._plant.base_wrench() + self._rng.normal(0.0, sigma)

    def _pressure_values(self, config: Any) -> Array:
        sigma = config.noise * self._plant.description.actuation.pressure_max
        return np.maximum(self._plant.pressure + self._rng.normal(0.0, sigma, 16), 0.0)


def record(seconds: float, seed: int, tip_load: float = 0.0, tracked: Sequence[int] = TRACKED) -> Run:
    """Advance the plant."""
    plant = Plant(plant_description(tracked), TICK, tip_load)
    pressure = command(np.random.default_rng(seed), plant.description.actuation.pressure_max)
    devices, packets, angles = Devices(plant, seed + 1000), [], [joint_angles(plant.poses()).ravel()]
    for k in range(round(seconds / TICK) + 1):
        packets += devices.packets(k * TICK)
        plant.step(pressure(k * TICK))
        angles.append(joint_angles(plant.poses()).ravel())
    q, every = np.array(angles), round(PERIOD / TICK)
    qd = np.gradient(q, TICK, axis=0)
    t: Array = TICK * np.arange(len(q), dtype=np.float64)
    packets.sort(key=lambda packet: packet.arrival)
    return Run(packets, t[:-1:every], q[:-1:every], qd[:-1:every])


def feed(estimator: ModelFilter | PoseDifferentiator, packet: Packet) -> None:
    """Feed a packet to a filter."""
    t, values = packet.t, packet.values
    if packet.kind in ('mocap', 'vive'):
        estimator.feed_poses(t, values)
    elif isinstance(estimator, ModelFilter):
        if packet.kind == 'fiber':
            estimator.feed_shape(t, 'fiber', *values)
        elif packet.kind == 'ft':
            estimator.feed_wrench(t, 'base_ft', values)
        else:
            estimator.feed_pressure(t, values)


def estimates(
    run: Run,
    estimator: ModelFilter | PoseDifferentiator,
    kinds: set[str],
    spoil: Callable[[Packet], Packet | None] | None = None,
) -> tuple[Array, Array]:
    """Return (q, qd) at the times of the run, from the packets of some kinds that had arrived; NaN before the first.

    spoil: changes or drops a packet.
    """
    q, qd = np.full_like(run.q, np.nan), np.full_like(run.q, np.nan)
    packets = iter([p for p in run.packets if p.kind in kinds])
    packet = next(packets, None)
    for k, now in enumerate(run.t):
        while packet is not None and packet.arrival <= now + 1e-9:
            changed = packet if spoil is None else spoil(packet)
            if changed is not None:
                feed(estimator, changed)
            packet = next(packets, None)
        if estimator.located:
            estimate = estimator.estimate(float(now))
            q[k], qd[k] = estimate.q, estimate.qd
    return q, qd
