"""Drive a device through the guard at a fixed rate: measurements in, set points out."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from soft_dynamics.diagnostics import ERROR, OK, WARN, Status
from soft_dynamics.timing.boot_time import boot_time
from soft_dynamics.timing.stamp_clock import StampClock
from soft_hw_bridge.errors import DeviceError, SetpointsChangedError
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
_CHANGES = 3  # this many changes of the set points by other masters ...
_CHANGES_S = 20.0  # ... in this time are no accident; reopening may take `Backoff.LAST_S` each time


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
    fills it from zero once it has answered and a command near zero has arrived. If other masters keep changing its set
    points, the stream leaves the device alone until disarmed and armed.
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
        self._decided_t = t
        self._output: Array = self._guard.step(t)
        self._tolerance = _ASTRAY * limits.largest
        self._followed_t: Array = np.full(len(names), np.inf)  # when each chamber was last near its set point
        self._is_zero_held = False  # the device was read to hold zero, and nothing else was written since
        self._changed_t: deque[float] = deque(maxlen=_CHANGES)  # when other masters changed its set points
        self._is_left_alone = False  # because of these changes

    def arm(self) -> None:
        """Follow the commands of the next publisher from now on; ValueError after a stop, until disarmed."""
        self._guard.arm()
        self._master.forget()
        self._take_up()

    def disarm(self) -> None:
        """Vent along the ramp and stop following commands."""
        self._master.forget()
        self._guard.disarm()
        self._take_up()

    def emergency_stop(self) -> None:
        """Vent at once and stay vented until disarmed and armed."""
        self._guard.stop()

    def vented(self) -> tuple[bool, str] | None:
        """Return whether the device holds zero, as read back, and what is known; None while that is open."""
        if self.error:
            wait = f'it vents by itself after {self.watchdog:g} s' if self.watchdog else 'shut off the supply'
            return False, f'not confirmed, the device is lost ({self.error}): {wait}'
        return (True, 'vented: the device holds zero') if self._is_zero_held else None

    def command(self, command: Command) -> None:
        """Pass a command to the guard, unless it comes from a second publisher or its age is unknown."""
        problem = self._hear(command)
        self._stamps.look()
        decided_t = min(self._stamps.time_of(command.stamp_ns), command.heard_t)
        if not problem and math.isinf(decided_t):
            problem = 'command stamp is in the future, or the clock of this computer was set'
        if problem:
            self._guard.refuse(problem)
        else:
            self._guard.command(self._stamps.t, command.pressure, self._stamps.t - decided_t)

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
        try:
            if self._is_left_alone or (not self._is_open and not self._backoff.is_due(t)):
                take_commands()
                return []
            if not self._is_open:
                self._open()
            readings = self._device.read()
            self._is_zero_held = not self._output.any()
            measured = self._take(readings)
            take_commands()
            self._device.write(self._decide(), self._decided_t)
        except SetpointsChangedError as error:
            self._lose(str(error))
            self._was_changed()
            return []
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
        if readings and self.error:  # it answers, so it may be filled by commands decided from now on
            self.error = ''
            self._guard.lost()
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
        self._decided_t = self._time.boot()
        self._output = self._guard.step(self._decided_t)
        if self.error:
            self._guard.lost()
            self._output = np.zeros(len(self.names))
        self._is_zero_held &= not self._output.any()
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
        self._is_open = self._is_zero_held = False
        self._device.close()
        self._guard.lost()
        self._output = np.zeros(len(self.names))

    def _was_changed(self) -> None:
        """Leave the device alone if other masters have changed its set points too often."""
        t = self._time.boot()
        self._changed_t.append(t)
        if len(self._changed_t) == _CHANGES and t - self._changed_t[0] <= _CHANGES_S:
            self._is_left_alone = True
            often = f'{_CHANGES} times within {_CHANGES_S:g} s'
            self.error = f'{self.error}, {often}; deactivate and activate to resume'
            if self._guard.is_armed:
                self._guard.stop(self.error)

    def _take_up(self) -> None:
        """Reopen the device even if other masters have changed its set points."""
        self._changed_t.clear()
        if self._is_left_alone:
            self._is_left_alone = False
            self._backoff.reset()

    def _measured(self, reading: Reading) -> Measured:
        if reading.device_ns is None:
            return Measured(reading.receive_ns, reading.pressure)
        return Measured(self.clock.feed(reading.device_ns, reading.receive_ns), reading.pressure)
