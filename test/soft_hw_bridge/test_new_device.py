"""A pressure device from outside the package: one entry in the table, and the stream commands it through the guard."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from soft_dynamics.diagnostics import OK
from soft_dynamics.timing.boot_time import boot_time
from soft_hw_bridge.pressure.command import Command
from soft_hw_bridge.pressure.config import DEVICES, PressureConfig, make_stream
from soft_hw_bridge.pressure.device import DeviceKind, Reading, Stop
from soft_hw_bridge.pressure.guard import Array, PressureLimits

PATIENCE_S = 60.0


class Balloon:
    """Ideal valves in memory: each holds its set point at once."""

    sequence_bits = 16
    malformed = 0
    watchdog: float | None = None
    late_writes_excluded = True

    def __init__(self, channels: Sequence[int], now_ns: Callable[[], int]) -> None:
        self.about = f'balloon {", ".join(map(str, channels))}'
        self.pressure: Array = np.zeros(len(channels))
        self._now_ns, self._sequence = now_ns, 0

    def open(self) -> None:
        self.pressure[:] = 0.0

    def read(self) -> list[Reading]:
        self._sequence = (self._sequence + 1) % 2**self.sequence_bits
        return [Reading(self.pressure.copy(), self._now_ns(), None, self._sequence)]

    def write(self, pressure: Array, decided_t: float | None = None) -> None:
        self.pressure[:] = pressure

    def close(self) -> None:
        self.pressure[:] = 0.0


def make(
    _config: Any,
    channels: Sequence[int],
    _limits: PressureLimits,
    now_ns: Callable[[], int],
    _stop: Stop | None,
) -> Balloon:
    return Balloon(channels, now_ns)


def test_a_new_device_is_chosen_by_name_and_commanded_through_the_guard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ValueError, match="device must be one of modbus, serial, got 'balloon'"):
        PressureConfig(device='balloon')
    monkeypatch.setitem(DEVICES, 'balloon', DeviceKind(make, lambda _config: 'this process'))
    config = PressureConfig(device='balloon', robot='bending_actuator', channels=(3,))
    assert DEVICES[config.device].where(config) == 'this process'
    stream = make_stream(config)
    device, numbers = stream._device, itertools.count()
    assert isinstance(device, Balloon)
    assert device.about == 'balloon 3'
    limit, highest = stream._guard.limits.pressure_max, 0.0

    def until(condition: Callable[[], bool], pressure: list[float]) -> None:
        nonlocal highest
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, stream.status()
            stream.command(Command(boot_time(), time.time_ns(), next(numbers), False, b'', tuple(pressure)))
            stream.poll()
            highest = max(highest, float(device.pressure.max()))

    stream.arm()
    until(lambda: stream.status()[:2] == (OK, 'following commands'), [0.0])
    until(lambda: device.pressure == pytest.approx([0.5 * limit]), [0.5 * limit])
    until(lambda: device.pressure == pytest.approx([limit]), [2.0 * limit])
    assert highest <= limit
    stream.close()
    assert device.pressure.max() == 0.0
