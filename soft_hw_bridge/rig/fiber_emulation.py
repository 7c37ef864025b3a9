"""A fiber along the body of the plant, served with any of the shape sensor protocols."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from soft_dynamics.array import Array
from soft_dynamics.description.sensors import Sensor
from soft_hw_bridge.emulators.fbgs import FbgsEmulator
from soft_hw_bridge.emulators.odisi import OdisiEmulator
from soft_hw_bridge.emulators.shape import ShapeEmulator
from soft_hw_bridge.rig.config import FiberConfig
from soft_hw_bridge.rig.device_emulators import Device, HostClock
from soft_hw_bridge.rig.mujoco_model import sensor_site
from soft_hw_bridge.rig.plant import Plant
from soft_hw_bridge.rig.plant_centerline import Centerline


class Curve(NamedTuple):
    """True shape at n places; F is the frame of the sensor, C that of the cross-section, both with z along."""

    s: Array  # [m] (n,)
    p_FC_F: Array  # [m] (n, 3)
    curvature_C: Array  # [1/m] (n, 3)
    strain: Array  # (cores, n)


class Fiber(Device):
    """A fiber from the frame of its sensor to the tip."""

    def __init__(
        self, config: FiberConfig, plant: Plant, sensor: Sensor, clock: HostClock, seed: int
    ) -> None:
        self._config = config
        self._clock = clock
        self._site = plant.model.site(sensor_site(sensor)).id
        s_F, s_tip = plant.plan.frames[sensor.frame].s, plant.plan.frames['tip'].s
        spacing = config.grating_spacing if config.protocol == 'fbgs_strain' else config.spacing
        self._s: Array = spacing * np.arange(int((s_tip - s_F) / spacing * (1 + 1e-9)) + 1, dtype=np.float64)
        self._line = Centerline(plant, s_F + self._s)
        self._R_LF = self._line.frame().T @ plant.data.site_xmat[self._site].reshape(3, 3)
        if self._R_LF[2, 2] < 0.999:
            raise ValueError(
                f'sensor {sensor.name!r}: its z axis must point along the body; turn it with rpy'
            )
        make, self._send = _PROTOCOLS[config.protocol]
        emulator = make(config, len(self._s))
        super().__init__(config, plant, emulator, {'port': emulator.port}, seed)

    def measure(self) -> Curve:
        config, data = self._config, self.plant.data
        R_WF, p_WF = data.site_xmat[self._site].reshape(3, 3), data.site_xpos[self._site]
        p_FC_F = (self._line.points() - p_WF) @ R_WF
        p_FC_F += self.random.normal(0.0, config.noise_position, p_FC_F.shape)
        curvature_C = self._line.curvature() @ self._R_LF
        angle, radius = np.array(config.core_angle)[:, None], np.array(config.core_radius)[:, None]
        strain = radius * (np.sin(angle) * curvature_C[:, 0] - np.cos(angle) * curvature_C[:, 1])
        strain += self.random.normal(0.0, config.noise_strain, strain.shape)
        return Curve(self._s, p_FC_F, curvature_C, strain)

    def send(self, t: float, sample: Curve) -> None:
        self._send(self.emulator, self._config, self._clock.at_ns(t), sample)


def _send_shp1(emulator: ShapeEmulator, _: FiberConfig, device_ns: int, curve: Curve) -> None:
    bending, twist = curve.curvature_C[:, :2], curve.curvature_C[:, 2]
    emulator.send(device_ns, curve.s, curve.p_FC_F, bending, twist)


def _send_odisi(emulator: OdisiEmulator, _: FiberConfig, utc_ns: int, curve: Curve) -> None:
    for channel, strain in enumerate(curve.strain, start=1):
        emulator.send(utc_ns, channel, (1e6 * strain).tolist())


def _send_fbgs_strain(emulator: FbgsEmulator, _: FiberConfig, utc_ns: int, curve: Curve) -> None:
    emulator.send_strain(utc_ns, 1e6 * curve.strain)


def _send_fbgs_shape(emulator: FbgsEmulator, config: FiberConfig, utc_ns: int, curve: Curve) -> None:
    every = slice(None, None, max(1, round(config.grating_spacing / config.spacing)))
    about_x, about_y = curve.curvature_C[every, 0], curve.curvature_C[every, 1]
    sensor = (np.hypot(about_x, about_y), np.arctan2(-about_x, about_y), curve.p_FC_F)
    emulator.send_shape(utc_ns, [sensor])


def _make_odisi(config: FiberConfig, gages: int) -> OdisiEmulator:
    channels = {channel: {'default': gages} for channel, _ in enumerate(config.core_radius, start=1)}
    return OdisiEmulator(channels, 1e3 * config.spacing, config.rate, config.port)


_PROTOCOLS: dict[
    str, tuple[Callable[[FiberConfig, int], Any], Callable[[Any, FiberConfig, int, Curve], None]]
] = {
    'shp1': (lambda config, _: ShapeEmulator(config.port), _send_shp1),
    'odisi': (_make_odisi, _send_odisi),
    'fbgs_strain': (lambda config, _: FbgsEmulator(config.port), _send_fbgs_strain),
    'fbgs_shape': (lambda config, _: FbgsEmulator(config.port), _send_fbgs_shape),
}
