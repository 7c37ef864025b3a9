"""Drive a device through the guard at a fixed rate: measurements in, set points out."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from soft_dynamics.diagnostics import ERROR, OK, WARN, Status
from soft_dynamics.timing.boot_time import boot_time
from soft_dynamics.timing.stamp_clock import StampClock
from soft_hw_bridge.errors import DeviceError
from soft_hw_bridge.link.backoff import Backoff
from soft_hw_bridge.link.device_clock import DeviceClock
from soft_hw_bridge.link.poll_schedule import Schedule
from soft_hw_bridge.link.stream_health import StreamHealth
from soft_hw_bridge.pressure.command import Command
from soft_hw_bridge.pressure.command_source import Master
from soft_hw_bridge.pressure.device import PressureDevice, Reading
from soft_hw_bridge.pressure.guard import Array, PressureGuard, PressureLimits

_ASTRAY = 0.1  # of the largest pressure: a measurement further from its set point ...
_ASTRAY_S = 0.5  # ... for this long is not valve lag, but no air, a leak, a stuck valve or a frozen sensor
_STEADY_S = 1.0  # a device that works for this long resets the backoff


class Measured(NamedTuple):
    """Pressures of all chambers at a host time."""

    stamp_ns: int
    pressure: Array  # [Pa] gauge


class Clock(NamedTuple):
    """Clocks of a stream; tests replace them."""

    boot: Callable[[], float] = boot_time  # [s] runs during suspend and is never set
    wall_ns: Callable[[], int] = time.time_ns
    sleep: Callable[[float], None] = time.sleep


class PressureStream:
    """Drives a device; one thread calls `poll` in a loop.

    A cycle reads the device, decides, and writes. Each write is based on the state just read: a device that vented, was
    reset, has another master or was out of contact for too long counts as lost. The stream reopens a lost device, and
    fills it from zero once it has answered and a command near zero has arrived.
    """

    def __init__(
        self, device: PressureDevice, names: Sequence[str], limits: PressureLimits, clock: Clock | None = None
    ) -> None:
        self.names, self.limits = list(names), limits  # of the chambers
        self.about, self.watchdog = device.about, device.watchdog
        self.late_writes_excluded = device.late_writes_excluded
        self.losses, self.last_loss = 0, ''  # of the device; the reason
        self._time = clock or Clock()
        self.health = StreamHealth(device.sequence_bits)
        self.clock = DeviceClock()
        self.error = 'not connected yet'  # '' while the device answers
        self._is_open = False
        self._device = device
        self._guard = PressureGuard(names, limits)
        self._master = Master()
        self._stamps = StampClock(limits.command_timeout, self._time.wall_ns, self._time.boot)
        t = self._time.boot()
        self._schedule = Schedule(1.0 / limits.cycle, t)
        self._backoff = Backoff()
        self._opened_t = t
        self._connections = 0
        self._output: Array = self._guard.step(t)
        self._tolerance = _ASTRAY * limits.largest
        self._followed_t: Array = np.full(len(names), np.inf)  # when each chamber was last near its set point

    def arm(self) -> None:
        """Follow the commands of the next publisher from now on."""
        self._master.forget()
        self._guard.arm()

    def disarm(self) -> None:
        """Vent along the ramp and stop following commands."""
        self._master.forget()
        self._guard.disarm()

    def emergency_stop(self) -> None:
        """Vent at once and stay vented until disarmed and armed."""
        self._guard.stop()

    def command(self, command: Command) -> None:
        """Pass a command to the guard, unless it comes from a second publisher or its age is unknown."""
        problem = self._hear(command)
        self._stamps.look()
        decided_t = self._stamps.time_of(command.stamp_ns)
        if not problem and math.isinf(decided_t):
            problem = 'command stamp is in the future, or the clock of this computer was set'
        if problem:
            self._guard.refuse(problem)
        else:
            self._guard.command(command.heard_t, command.pressure, command.heard_t - decided_t)

    def refuse(self, command: Command, reason: str) -> None:
        """Vent because of an invalid command, which still counts for its publisher."""
        self._guard.refuse(self._hear(command) or reason)

    def poll(self, take_commands: Callable[[], None] = lambda: None) -> list[Measured]:
        """Wait for the next cycle, read the device, write the output of the guard, return the measurements.

        take_commands: passes on commands and requests; called once, after reading the device.
        """
        self._time.sleep(max(self._schedule.due - self._time.boot(), 0.0))
        t = self._time.boot()
        self._stamps.look()
        self._schedule.done(t)
        if not self._is_open and not self._backoff.is_due(t):
            take_commands()
            return []
        try:
            if not self._is_open:
                self._open()
            readings = self._device.read()
            measured = self._take(readings)
            take_commands()
            self._device.write(self._decide())
        except DeviceError as error:
            self._lose(str(error))
            return []
        except Exception as error:  # a bug must not leave the chambers filled
            self._lose(f'internal error: {error!r:.200}')
            return []
        return measured

    def close(self) -> None:
        """Vent along the ramp and disconnect; after twice the ramp time, vent the rest at once."""
        self.disarm()
        end = self._time.boot() + 2.0 * self.limits.ramp_time
        while self._output.any() and not self.error and self._time.boot() < end:
            self.poll()
        self._device.close()

    def status(self) -> Status:
        """Return the status of device and commands. The message changes only with the state."""
        guard, reason = self._guard, self._guard.reason
        late = self._time.boot() - self._followed_t > _ASTRAY_S
        values = self.health.report(self._time.boot()) | {
            'clock_offset_s': f'{self.clock.offset_s:.6f}',
            'clock_relocks': str(self.clock.relocks),
            'commands_clamped': str(guard.clamped),
            'commands_refused': str(guard.refused),
            'device_losses': str(self.losses),
            'last_loss': self.last_loss,
            'output_pa': ' '.join(f'{p:.0f}' for p in self._output),
            'astray': ' '.join(name for name, is_late in zip(self.names, late, strict=True) if is_late),
        }
        if self.error:
            return Status(ERROR, self.error, values)
        level = ERROR if guard.is_stopped else WARN if guard.is_armed and reason else OK
        line = f'vented: {reason}' if reason else 'following commands'
        if late.any():
            return Status(max(level, WARN), f'{line}; measured pressure far from its set point', values)
        return Status(level, line, values)

    def _hear(self, command: Command) -> str:
        return self._master.hear(command) if self._guard.is_armed else ''

    def _take(self, readings: list[Reading]) -> list[Measured]:
        """Count readings, and pass the new ones to the guard."""
        t = self._time.boot()
        self.health.malformed = self._device.malformed
        if readings and self.error:  # it answers, so it may be filled
            self.error = ''
            self._followed_t[:] = t
        if t - self._opened_t > _STEADY_S:
            self._backoff.reset()
        new = [reading for reading in readings if self.health.arrived(t, reading.sequence)]
        for reading in new:
            self._followed_t[np.abs(reading.pressure - self._output) < self._tolerance] = t
            self._guard.measured(t, reading.pressure)
        return [self._measured(reading) for reading in new]

    def _decide(self) -> Array:
        """Return the set points to write now [Pa]."""
        self._output = self._guard.step(self._time.boot())
        if self.error:
            self._guard.lost()
            self._output = np.zeros(len(self.names))
        return self._output

    def _open(self) -> None:
        self._device.open()
        self._is_open = True
        self._opened_t = self._time.boot()
        self._connections += 1
        self.health.reconnects = self._connections - 1
        self.health.resync()
        self.clock.forget()

    def _lose(self, error: str) -> None:
        self.error = error
        if self._is_open:
            self.losses, self.last_loss = self.losses + 1, error
        self._is_open = False
        self._device.close()
        self._guard.lost()

    def _measured(self, reading: Reading) -> Measured:
        if reading.device_ns is None:
            return Measured(reading.receive_ns, reading.pressure)
        return Measured(self.clock.feed(reading.device_ns, reading.receive_ns), reading.pressure)
