"""Emulated devices at full rate, for benchmarks.bridges: every sample carries the time at which it was sent.

That time, whole seconds and fraction since `start_ns`, is the position x, y of every body and tracker, the force x, y
of a wrench, and the first two twists of a shape. One line of JSON on stdout says where everything listens; a closed
stdin ends it.
"""

from __future__ import annotations

import json
import math
import select
import sys
import time
from collections.abc import Callable

import numpy as np

from soft_dynamics.arguments import Array
from soft_hw_bridge.emulators.modbus import ModbusEmulator, MpaTerminal
from soft_hw_bridge.emulators.natnet import MotiveSettings, NatNetEmulator
from soft_hw_bridge.emulators.netft import NetFtEmulator
from soft_hw_bridge.emulators.openvr import OpenVrEmulator
from soft_hw_bridge.emulators.pose import Pose
from soft_hw_bridge.emulators.shape import ShapeEmulator

BODIES = [f'body{k}' for k in range(10)]
TRACKERS = [f'tracker{k}' for k in range(3)]
POINTS = 213
S: Array = 0.8e-3 * np.arange(POINTS, dtype=np.float64)
# SteamVR refreshes its poses faster than anybody asks for them, so that each call finds a new one.
RATES = {'mocap': 360.0, 'vive': 500.0, 'fiber': 250.0, 'ft': 1000.0, 'pressure': 100.0}  # [Hz]
UPRIGHT = (0.0, 0.0, 0.0, 1.0)


class Devices:
    """One device of each kind, on free ports of loopback."""

    def __init__(self) -> None:
        self.start_ns = time.time_ns()
        settings = MotiveSettings(processing_s=0.0, clock_offset_s=7200.0, clock_drift_ppm=50.0)
        self.mocap = NatNetEmulator(BODIES, settings)
        self.vive = OpenVrEmulator(TRACKERS)
        self.fiber = ShapeEmulator()
        self.ft = NetFtEmulator(RATES['ft'])
        self.pressure = ModbusEmulator(MpaTerminal())
        self._curve = np.column_stack([np.zeros((POINTS, 2)), S])
        self._bending, self._twist = np.zeros((POINTS, 2)), np.zeros(POINTS)

    @property
    def ports(self) -> dict[str, int]:
        return {
            'mocap': self.mocap.command_port,
            'vive': self.vive.port,
            'fiber': self.fiber.port,
            'ft': self.ft.rdt_port,
            'ft_http': self.ft.http_port,
            'pressure': self.pressure.port,
        }

    @property
    def senders(self) -> dict[str, Callable[[], None]]:
        return {name: getattr(self, f'_send_{name}') for name in RATES}

    def close(self) -> None:
        for device in (self.mocap, self.vive, self.fiber, self.ft, self.pressure):
            device.close()

    def _now(self) -> tuple[float, float]:
        fraction, seconds = math.modf((time.time_ns() - self.start_ns) * 1e-9)
        return seconds, fraction

    def _send_mocap(self) -> None:
        self.mocap.send(dict.fromkeys(BODIES, Pose((*self._now(), 0.0), UPRIGHT)))

    def _send_vive(self) -> None:
        self.vive.send(dict.fromkeys(TRACKERS, Pose((*self._now(), 0.0), UPRIGHT)))

    def _send_fiber(self) -> None:
        self._twist[:2] = self._now()
        self.fiber.send(time.time_ns() - self.start_ns, S, self._curve, self._bending, self._twist)

    def _send_ft(self) -> None:
        self.ft.send((*self._now(), 0.0), (0.0, 0.0, 0.0))

    def _send_pressure(self) -> None:
        """Let the chambers have what was commanded; the samples are taken by requests."""
        self.pressure.set_actual(self.pressure.commanded())


def main() -> None:
    devices = Devices()
    print(json.dumps({'start_ns': devices.start_ns, 'ports': devices.ports}), flush=True)
    periods = {name: 1.0 / rate for name, rate in RATES.items()}
    due = dict.fromkeys(RATES, time.monotonic())
    wait = 0.0
    try:
        while not select.select([sys.stdin], [], [], wait)[0]:
            for name, send in devices.senders.items():
                if due[name] <= time.monotonic():
                    send()
                    due[name] += periods[name]
            devices.mocap.serve()
            devices.vive.serve()
            wait = max(min(due.values()) - time.monotonic(), 0.0)
    finally:
        devices.close()


if __name__ == '__main__':
    main()
