"""Parameters of the fiber sensor and of its shape reconstruction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from soft_dynamics.reader import quantity
from soft_hw_bridge.fiber.adapter import ShapeAdapter
from soft_hw_bridge.fiber.protocols import fbgs, odisi, shp1
from soft_hw_bridge.fiber.strain_to_curvature import CoreLayout


@dataclass(frozen=True)
class CoresConfig:
    """Cores of the fiber, for protocols that send strain."""

    radius: tuple[float, ...] = quantity((), unit='m', doc='distance of each core from the centreline')
    angle: tuple[float, ...] = quantity((), unit='rad', doc='direction of each core at the base, from x to y')
    pretwist: float = quantity(0.0, unit='rad/m', doc='twist of the cores in the straight fiber')


@dataclass(frozen=True)
class OdisiConfig:
    """Channel and segment of each core, in the order of `cores`."""

    channels: tuple[int, ...] = quantity((), doc='channel of each core')
    segments: tuple[str, ...] = quantity((), doc='segment of each core; empty: whole channels')
    reverse: tuple[bool, ...] = quantity(
        (), doc='true for cores whose fiber runs from tip to base; empty: none does'
    )

    def cores(self) -> tuple[odisi.Core, ...]:
        """Return the cores."""
        n = len(self.channels)
        segments, reverse = self.segments or ('',) * n, self.reverse or (False,) * n
        if not len(segments) == len(reverse) == n:
            raise ValueError(f'segments and reverse must have {n} entries, one per channel')
        return tuple(odisi.Core(*core) for core in zip(self.channels, segments, reverse, strict=True))


@dataclass(frozen=True)
class FbgsConfig:
    """Parameters that the text streams do not contain."""

    gratings: tuple[float, ...] = quantity((), unit='m', doc='distance of each grating from the base')
    point_spacing: float = quantity(1e-3, unit='m', doc='distance between the points of Shape Sensing')


@dataclass(frozen=True)
class FiberConfig:
    """Device, and parameters of its shape reconstruction."""

    protocol: str = quantity(
        'shp1', doc='protocol: shp1, odisi, fbgs_strain (ILLumiSense) or fbgs_shape (Shape Sensing)'
    )
    host: str = quantity('127.0.0.1', doc='host name or address of the device or its computer')
    port: int = quantity(0, doc='TCP port; 0: default of the protocol')
    sensor: int = quantity(0, doc='index of the sensor, if the device has several')
    offset: float = quantity(0.0, unit='m', doc='arc length of the first sample')
    max_gap: float = quantity(0.01, unit='m', doc='longest stretch of lost samples to interpolate')
    stale_after: float = quantity(
        0.5, unit='s', doc='the stream counts as lost after this time without a new frame'
    )
    cores: CoresConfig = CoresConfig()
    odisi: OdisiConfig = OdisiConfig()
    fbgs: FbgsConfig = FbgsConfig()

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise ValueError(f'protocol must be one of {", ".join(PROTOCOLS)}, got {self.protocol!r}')
        if not 0 <= self.port < 65536:
            raise ValueError(f'port must be in 0..65535, got {self.port}')
        for name in ('max_gap', 'stale_after'):
            if not getattr(self, name) > 0:
                raise ValueError(f'{name} must be > 0, got {getattr(self, name)}')
        if PROTOCOLS[self.protocol].sends_strain:
            self.layout()
        PROTOCOLS[self.protocol].make_adapter(self)

    def layout(self) -> CoreLayout:
        """Return the positions of the cores."""
        return CoreLayout(self.cores.radius, self.cores.angle, self.cores.pretwist)


class Protocol(NamedTuple):
    """Port, timeout and adapter of a protocol."""

    port: int
    silence: float  # [s] after which the client reconnects
    sends_strain: bool
    make_adapter: Callable[[FiberConfig], ShapeAdapter]


def _odisi(config: FiberConfig) -> ShapeAdapter:
    cores = config.odisi.cores()
    if len(cores) != len(config.cores.radius):
        raise ValueError(f'odisi.channels must have {len(config.cores.radius)} entries, like cores.radius')
    return odisi.OdisiAdapter(cores)


def _fbgs_strain(config: FiberConfig) -> ShapeAdapter:
    gratings = np.array(config.fbgs.gratings)
    if len(gratings) < 2 or not np.all(np.diff(gratings) > 0):
        raise ValueError(f'fbgs.gratings must be two or more ascending numbers, got {config.fbgs.gratings}')
    return fbgs.IllumisenseAdapter(gratings, len(config.cores.radius))


def _fbgs_shape(config: FiberConfig) -> ShapeAdapter:
    gratings = np.array(config.fbgs.gratings) if config.fbgs.gratings else None
    return fbgs.ShapeSensingAdapter(config.fbgs.point_spacing, gratings)


PROTOCOLS = {
    'shp1': Protocol(shp1.PORT, 2.0, False, lambda _: shp1.Shp1Adapter()),
    'odisi': Protocol(odisi.PORT, 12.0, True, _odisi),  # a stopped instrument sends a message every 5 s
    'fbgs_strain': Protocol(fbgs.ILLUMISENSE_PORT, 2.0, True, _fbgs_strain),
    'fbgs_shape': Protocol(fbgs.SHAPE_SENSING_PORT, 2.0, False, _fbgs_shape),
}
