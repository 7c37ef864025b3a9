"""Shapes from the frames of a fiber sensor, and the status of the stream."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from soft_dynamics.diagnostics import ERROR, OK, WARN, Status
from soft_dynamics.geometry.curve import integrate_curve
from soft_hw_bridge.errors import UNREADABLE
from soft_hw_bridge.fiber.adapter import ShapeFrame
from soft_hw_bridge.fiber.client import ShapeClient
from soft_hw_bridge.fiber.config import PROTOCOLS, FiberConfig
from soft_hw_bridge.fiber.strain_to_curvature import StrainSolver, bridge_gaps


class Shape(NamedTuple):
    """A completed frame at a host time."""

    stamp_ns: int
    frame: ShapeFrame


class FiberStream:
    """Polls a device for shapes; counts and omits frames that the device marks invalid.

    The reconstruction from strain takes the fiber as inextensible: common strain of all cores is mostly temperature.
    """

    def __init__(self, config: FiberConfig, now_ns: Callable[[], int] = time.time_ns) -> None:
        protocol = PROTOCOLS[config.protocol]
        self.address = (config.host, config.port or protocol.port)
        self.invalid = 0  # frames
        self._config = config
        self._adapter = protocol.make_adapter(config)
        self._solver = StrainSolver(config.layout()) if protocol.sends_strain else None
        self._client = ShapeClient(self.address, self._adapter, config.sensor, protocol.silence, now_ns)
        self._was_valid = True
        integrate_curve(np.array([0.0, 1.0]), np.zeros((2, 3)))  # compile now, not at the first frame

    def close(self) -> None:
        """Disconnect."""
        self._client.close()

    def poll(self, timeout: float) -> list[Shape]:
        """Return the new shapes, oldest first; wait at most the timeout [s]."""
        shapes = []
        for frame, stamp_ns in self._client.read(timeout):
            try:
                shape = Shape(stamp_ns, self._complete(frame)) if frame.valid else None
            except UNREADABLE:  # plausible strains, implausible curvature
                shape = None
            self._was_valid = shape is not None
            if shape is not None:
                shapes.append(shape)
            else:
                self.invalid += 1
        return shapes

    def status(self) -> Status:
        """Return the status. The message changes only with the state; numbers are in the values."""
        t, client = time.monotonic(), self._client
        values = client.health.report(t) | {
            'clock_offset_s': f'{client.clock.offset_s:.6f}',
            'clock_drift_ppm': f'{client.clock.drift_ppm:.1f}',
            'clock_relocks': str(client.clock.relocks),
            'invalid': str(self.invalid),
            'odd_messages': str(self._adapter.warnings),
            'last_problem': self._adapter.problem,
        }
        values |= self._adapter.info()
        if client.error:
            return Status(ERROR, client.error, values)
        if client.health.age(t) > self._config.stale_after:
            return Status(ERROR, self._adapter.problem or 'connected, but no new frames', values)
        if not self._was_valid:
            return Status(WARN, 'the device reports that it cannot measure', values)
        return Status(OK, 'streaming', values)

    def _complete(self, frame: ShapeFrame) -> ShapeFrame:
        """Return the frame with missing curvature from strain and missing points from curvature."""
        s, curvature_C, p_FC_F = frame.s, frame.curvature_C, frame.p_FC_F
        if self._solver is not None and frame.strain is not None:
            curvature_C, _ = self._solver.solve(s, frame.strain)
        if curvature_C is not None:
            curvature_C = bridge_gaps(s, curvature_C, self._config.max_gap)
            if p_FC_F is None:
                p_FC_F, _ = integrate_curve(s, curvature_C)
        return replace(frame, s=s + self._config.offset, p_FC_F=p_FC_F, curvature_C=curvature_C)
