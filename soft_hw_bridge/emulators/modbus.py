"""Emulated valve terminals with Modbus TCP: registers and valves."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from soft_dynamics.timing.boot_time import boot_time
from soft_hw_bridge.emulators.faults import Faults
from soft_hw_bridge.emulators.modbus_server import ModbusServer

_LOG = 20_000  # writes kept in the log


@dataclass
class Terminal:
    """Registers of one kind of terminal, in its own units; the interface uses Pa above ambient.

    Subclasses define the layout. A terminal shuts its valves after its time-out without a request. Its sensors read the
    set points unless `actual` is set.
    """

    valves: int = 16
    outputs: int = 0  # first output register
    inputs: int = 100
    timeout_register: int = 200
    timeout_words: int = 1
    pascal: float = 100.0  # per count
    timeout_s: float = 0.1
    setpoints: dict[int, int] = field(default_factory=dict)  # counts by register of the valve
    actual: dict[int, float] | None = None  # [Pa] by valve; None: as commanded

    def output_words(self) -> int:
        """Return the number of output registers."""
        return self.valves

    def input_words(self) -> int:
        """Return the number of input registers."""
        return self.valves

    def setpoint_register(self, valve: int) -> int:
        """Return the register of the set point of a valve."""
        return self.outputs + valve

    def input_image(self) -> list[int]:
        """Return the current input registers."""
        return [self._count(valve) for valve in range(self.valves)]

    def write(self, register: int, value: int) -> None:
        """Write an output register."""
        self.setpoints[register] = value

    def shut(self) -> None:
        """Shut the valves: all outputs fall to zero."""
        self.setpoints.clear()

    def commanded(self) -> list[float]:
        """Return the set points of all valves [Pa]."""
        counts = (self.setpoints.get(self.setpoint_register(valve), 0) for valve in range(self.valves))
        return [count * self.pascal for count in counts]

    def _count(self, valve: int) -> int:
        actual = dict(enumerate(self.commanded())) if self.actual is None else self.actual
        return round(actual.get(valve, 0.0) / self.pascal) % 65536


@dataclass
class GenericTerminal(Terminal):
    """Set points from 0, measurements from 100, time-out at 200, 10 Pa per count."""

    valves: int = 32
    pascal: float = 10.0


@dataclass
class MpaTerminal(Terminal):
    """CPX with VPPM on MPA: per valve an output word and three input words: actual, set point, diagnosis."""

    outputs: int = 40003
    inputs: int = 45395
    timeout_register: int = 46100

    def input_words(self) -> int:
        return 3 * self.valves

    def input_image(self) -> list[int]:
        words = []
        for valve in range(self.valves):
            words += [self._count(valve), self.setpoints.get(self.setpoint_register(valve), 0), 0]
        return words


@dataclass
class VtemTerminal(Terminal):
    """CPX with VTEM: per slot of two valves an app word and two set points, valid while app 3 runs."""

    outputs: int = 40003
    inputs: int = 45395
    timeout_register: int = 46100
    apps: dict[int, int] = field(default_factory=dict)  # app word by slot
    started: dict[int, float] = field(default_factory=dict)  # start time of the app by slot
    start_time: float = 0.2  # [s] start-up time of an app

    def output_words(self) -> int:
        return 3 * (self.valves // 2)

    def input_words(self) -> int:
        return 3 * (self.valves // 2)

    def setpoint_register(self, valve: int) -> int:
        slot, side = divmod(valve, 2)
        return self.outputs + slot * 3 + 1 + side

    def write(self, register: int, value: int) -> None:
        slot, word = divmod(register - self.outputs, 3)
        if word:
            super().write(register, value)
        elif self.apps.get(slot) != value:
            self.apps[slot], self.started[slot] = value, time.monotonic()

    def shut(self) -> None:
        super().shut()
        self.apps.clear()

    def state(self, slot: int) -> int:
        """Return 2 while pressure regulation runs, 1 when the slot is off, 0 in between."""
        app = self.apps.get(slot, 61)
        if app == 3 + (3 << 6):
            return 2 if time.monotonic() - self.started[slot] > self.start_time else 0
        return 1

    def commanded(self) -> list[float]:
        return [p if self.state(valve // 2) == 2 else 0.0 for valve, p in enumerate(super().commanded())]

    def input_image(self) -> list[int]:
        words = []
        for slot in range(self.valves // 2):
            app = self.apps.get(slot, 61) & 63
            words += [self.state(slot) << 6 | app, self._count(2 * slot), self._count(2 * slot + 1)]
        return words


@dataclass
class CpxApTerminal(Terminal):
    """CPX-AP: outputs from 0, inputs from 5000, the time-out in two words."""

    valves: int = 32
    inputs: int = 5000
    timeout_register: int = 14000
    timeout_words: int = 2


class Applied(NamedTuple):
    """A write of set points that a terminal applied."""

    t: float  # [s] CLOCK_BOOTTIME
    before: tuple[float, ...]  # [Pa] of all valves
    after: tuple[float, ...]

    @property
    def rise(self) -> float:
        """Return the largest rise [Pa]; a rise from vacuum counts from ambient."""
        return max(new - max(old, 0.0) for old, new in zip(self.before, self.after, strict=True))


class ModbusEmulator:
    """Serves a terminal on loopback and records the commands.

    applied: the last writes of set points. writes: their number since `clear_log`. largest_rise: the write with the
    largest rise.
    """

    def __init__(self, terminal: Terminal, port: int = 0) -> None:
        self.faults = Faults()
        self.terminal = terminal
        self.requests = 0
        self.writes = 0  # of set points
        self.highest = [0.0] * terminal.valves  # [Pa] largest set point so far
        self.applied: deque[Applied] = deque(maxlen=_LOG)
        self.largest_rise: Applied | None = None
        self.writes = 0
        self._lock = threading.Lock()
        self._heard = time.monotonic()
        self._registers = self._zeros()  # all writable registers
        self._server = ModbusServer(self, port)
        self.port = self._server.port

    def commanded(self) -> list[float]:
        """Return the current set points [Pa]: zero after a silence of the client longer than the time-out."""
        if self.faults.restart:
            self.faults.restart = False
            self._restart()
        with self._lock:
            if time.monotonic() - self._heard > self.terminal.timeout_s:
                self.terminal.shut()
            return self.terminal.commanded()

    def set_actual(self, pressures: list[float]) -> None:
        """Make the sensors of the valves read these pressures [Pa]."""
        with self._lock:
            self.terminal.actual = dict(enumerate(pressures))

    def clear_log(self) -> None:
        """Clear the log of writes."""
        with self._lock:
            self.applied.clear()
            self.largest_rise, self.writes = None, 0

    def close(self) -> None:
        """Stop serving."""
        self._server.close()

    # ---- interface of the server ---------------------------------------------------------------------------------

    @property
    def is_silent(self) -> bool:
        return self.faults.silent

    def read(self, first: int, count: int) -> list[int]:
        """Return registers; LookupError if they do not exist."""
        with self._lock:
            self._hear()
            at = first - self.terminal.inputs
            if at >= 0 and at + count <= self.terminal.input_words():
                return self.terminal.input_image()[at : at + count]
            return [self._registers[address] for address in range(first, first + count)]

    def write(self, first: int, words: Sequence[int]) -> None:
        """Set registers; LookupError if they do not exist."""
        with self._lock:
            self._hear()
            places = range(first, first + len(words))
            if not self._registers.keys() >= set(places):
                raise LookupError
            self._registers.update(zip(places, words, strict=True))
            if first == self.terminal.timeout_register:
                milliseconds = sum(word << 16 * k for k, word in enumerate(words))
                self.terminal.timeout_s = milliseconds / 1000 if milliseconds else float('inf')
                return
            before = self.terminal.commanded()
            for address, word in zip(places, words, strict=True):
                self.terminal.write(address, word)
            self._log(Applied(boot_time(), tuple(before), tuple(self.terminal.commanded())))

    # ---- inside --------------------------------------------------------------------------------------------------

    def _hear(self) -> None:
        """Note a request; shut the valves if the silence before it was longer than the time-out."""
        now = time.monotonic()
        if now - self._heard > self.terminal.timeout_s:
            self.terminal.shut()
        self._heard = now
        self.requests += 1

    def _log(self, applied: Applied) -> None:
        self.highest = [max(a, b) for a, b in zip(self.highest, applied.after, strict=True)]
        self.applied.append(applied)
        self.writes += 1
        if self.largest_rise is None or applied.rise > self.largest_rise.rise:
            self.largest_rise = applied

    def _zeros(self) -> dict[int, int]:
        t = self.terminal
        outputs = range(t.outputs, t.outputs + t.output_words())
        timeout = range(t.timeout_register, t.timeout_register + t.timeout_words)
        return dict.fromkeys([*outputs, *timeout], 0)

    def _restart(self) -> None:
        self._server.close()
        with self._lock:
            self.terminal.shut()
            self._registers = self._zeros()
        self._server = ModbusServer(self, self.port)
