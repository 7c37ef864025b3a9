"""Emulated devices at full rate for benchmarks.bridges; each sample carries its send time.

    python -m benchmarks.bridge_devices DEVICE START_NS

The time since START_NS, as whole seconds and fraction, is the position x, y of each body and tracker, the force x, y of
a wrench, and the first two twists of a shape. The device prints its ports as one line of JSON and ends when stdin
closes.
"""

from __future__ import annotations

import json
import math
import select
import sys
import time
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from soft_dynamics.array import Array
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
UPRIGHT = (0.0, 0.0, 0.0, 1.0)


class Device(ABC):
    """A device on free loopback ports; start_ns: origin of its time."""

    rate: float  # [Hz]
    emulator: Any
    serves_itself = True

    def __init__(self, start_ns: int) -> None:
        self.start_ns = start_ns

    @property
    def ports(self) -> dict[str, int]:
        return {'port': self.emulator.port}

    @abstractmethod
    def send(self) -> None:
        """Send a sample."""

    def run(self) -> None:
        """Run until stdin is closed. Delayed samples are sent late, none is left out."""
        due = time.monotonic()
        while not select.select([sys.stdin], [], [], max(due - time.monotonic(), 0.0))[0]:
            self.send()
            due += 1.0 / self.rate
            if not self.serves_itself:
                self.emulator.serve()

    def now(self) -> tuple[float, float]:
        fraction, seconds = math.modf((time.time_ns() - self.start_ns) * 1e-9)
        return seconds, fraction


class Mocap(Device):
    rate = 360.0
    serves_itself = False

    def __init__(self, start_ns: int) -> None:
        super().__init__(start_ns)
        settings = MotiveSettings(processing_s=0.0, clock_offset_s=7200.0, clock_drift_ppm=50.0)
        self.emulator = NatNetEmulator(BODIES, settings)

    @property
    def ports(self) -> dict[str, int]:
        return {'port': self.emulator.command_port}

    def send(self) -> None:
        self.emulator.send(dict.fromkeys(BODIES, Pose((*self.now(), 0.0), UPRIGHT)))


class Vive(Device):
    """SteamVR, which refreshes its poses faster than the bridge polls them."""

    rate = 500.0
    serves_itself = False

    def __init__(self, start_ns: int) -> None:
        super().__init__(start_ns)
        self.emulator = OpenVrEmulator(TRACKERS)

    def send(self) -> None:
        self.emulator.send(dict.fromkeys(TRACKERS, Pose((*self.now(), 0.0), UPRIGHT)))


class Fiber(Device):
    rate = 250.0

    def __init__(self, start_ns: int) -> None:
        super().__init__(start_ns)
        self.emulator = ShapeEmulator()
        self._curve = np.column_stack([np.zeros((POINTS, 2)), S])
        self._bending, self._twist = np.zeros((POINTS, 2)), np.zeros(POINTS)

    def send(self) -> None:
        self._twist[:2] = self.now()
        self.emulator.send(time.time_ns() - self.start_ns, S, self._curve, self._bending, self._twist)


class Ft(Device):
    rate = 1000.0

    def __init__(self, start_ns: int) -> None:
        super().__init__(start_ns)
        self.emulator = NetFtEmulator(self.rate)

    @property
    def ports(self) -> dict[str, int]:
        return {'port': self.emulator.rdt_port, 'http_port': self.emulator.http_port}

    def send(self) -> None:
        self.emulator.send((*self.now(), 0.0), (0.0, 0.0, 0.0))


class Pressure(Device):
    """Valves whose chambers follow the command at once; requests fetch the samples."""

    rate = 100.0

    def __init__(self, start_ns: int) -> None:
        super().__init__(start_ns)
        self.emulator = ModbusEmulator(MpaTerminal())

    def send(self) -> None:
        self.emulator.set_actual(self.emulator.commanded())


DEVICES: dict[str, type[Device]] = {
    'mocap': Mocap,
    'vive': Vive,
    'fiber': Fiber,
    'ft': Ft,
    'pressure': Pressure,
}


def main() -> None:
    name, start_ns = sys.argv[1:]
    device = DEVICES[name](int(start_ns))
    print(json.dumps(device.ports), flush=True)
    try:
        device.run()
    finally:
        device.emulator.close()


if __name__ == '__main__':
    main()
