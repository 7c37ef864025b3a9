"""A simulated valve terminal behind Modbus TCP, for tests of network and scheduling faults.

Time advances only during waits: the stream's sleep, a socket's recv, and pauses that a test plans. So a test can pause
the process at every point where the kernel could stop it, and can hold, drop or delay any message.
"""

from __future__ import annotations

import heapq
import itertools
import math
import struct
from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

WIRE_S = 0.0002  # [s] one way
READ, WRITE = 3, 16


class Applied(NamedTuple):
    """A write of set points that the terminal applied."""

    t: float  # when
    sent_t: float  # when the client sent it, just after its last check
    connection: int
    is_newest: bool  # connection at that time
    before: tuple[float, ...]  # [Pa] of all valves
    after: tuple[float, ...]
    tripped_t: float  # when the terminal had last cleared its set points
    zero_read_t: float  # when its set points were first read as zero after that
    read: tuple[float, ...]  # [Pa] pressures as last read


class World:
    """Simulated clocks, messages in transit, and planned pauses."""

    def __init__(self) -> None:
        self.boot = 1000.0  # true time; continues during suspend
        self.wall_offset = 1.7e9
        self.pauses: dict[str, deque[float]] = {}
        self.paused_at: dict[str, float] = {}
        self._events: list[tuple[float, int, Any]] = []
        self._number = itertools.count()

    def now(self) -> float:
        return self.boot

    def now_ns(self) -> int:
        return round((self.boot + self.wall_offset) * 1e9)

    def sleep(self, duration: float) -> None:
        self.point('sleep')
        self.run_until(self.boot + max(duration, 0.0))

    def point(self, name: str) -> None:
        """Run a planned pause, if one is due at this point."""
        planned = self.pauses.get(name)
        if planned:
            self.run_until(self.boot + planned.popleft())

    def later(self, delay: float, action: Any) -> None:
        heapq.heappush(self._events, (self.boot + delay, next(self._number), action))

    def run_until(self, t: float) -> None:
        while self._events and self._events[0][0] <= t:
            when, _, action = heapq.heappop(self._events)
            self.boot = max(self.boot, when)
            action()
        self.boot = max(self.boot, t)

    def next_event(self, limit: float) -> bool:
        """Advance to the next event or to the limit; return False if the limit came first."""
        if self._events and self._events[0][0] <= limit:
            self.run_until(self._events[0][0])
            return True
        self.run_until(limit)
        return False


@dataclass
class Way:
    """Fault of the next messages in one direction."""

    delays: deque[float] = field(default_factory=deque)  # [s]; infinite: dropped

    def next(self) -> float:
        return WIRE_S + (self.delays.popleft() if self.delays else 0.0)


class FakeTerminal:
    """Set points, measurements, watchdog and valves; latches and discards only if `app` is given.

    app: register of an application word: set points act only while it is 1, and the watchdog clears it.
    """

    def __init__(
        self,
        world: World,
        valves: int,
        scale: float,
        ambient: float = 0.0,
        lag: float = 0.05,
        app: int | None = None,
    ) -> None:
        self.world, self.valves, self.scale, self.ambient, self.lag, self.app = (
            *(world, valves, scale, ambient, lag, app),
        )
        self.zero = round(ambient / scale)
        self.registers: dict[int, int] = dict.fromkeys(range(valves), self.zero)
        self.registers |= {100 + k: self.zero for k in range(valves)} | {200: 0}
        if app is not None:
            self.registers[app] = 0
        self.pressure = np.zeros(valves)  # [Pa] true chamber pressures
        self.lie: Any = lambda pressure: pressure  # sensor readings of them
        self.read_pressure = np.zeros(valves)  # [Pa] as last read
        self.applied: list[Applied] = []
        self.contact_t = world.boot
        self.moved_t = world.boot
        self.tripped_t = -np.inf  # when the set points were last cleared
        self.trips = 0
        self.zero_read_t = -np.inf  # when they were first read as zero after that
        self.requests, self.answers = Way(), Way()
        self.listening = True
        self.connections = 0
        self.damage: Any = lambda answer: answer

    # ---- the plant -----------------------------------------------------------------------------------------------

    def setpoints(self) -> tuple[float, ...]:
        """Current set points of the valves [Pa], above ambient."""
        self.advance()
        return tuple(self._told())

    def watchdog(self) -> float:
        """Return the time without contact [s] after which it vents; 0: never."""
        return self.registers[200] / 1000

    def advance(self) -> None:
        """Advance the plant; the watchdog vents when it expires."""
        watchdog = self.watchdog()
        if watchdog and self.world.boot > self.contact_t + watchdog and self._is_filled():
            self._flow(self.contact_t + watchdog)
            self.trip()
        self._flow(self.world.boot)

    def trip(self) -> None:
        """Vent: all outputs go to zero."""
        if self._is_filled():  # otherwise the set points stay
            self.tripped_t = self.world.boot
        for k in range(self.valves):
            self.registers[k] = self.zero
        if self.app is not None:
            self.registers[self.app] = 0
        self.trips += 1

    def reset(self) -> None:
        """Restart with the link up: outputs and watchdog have factory values."""
        self.trip()
        self.registers[200] = 0

    def confirm_zero(self) -> None:
        """Note that its set points were read as zero."""
        if self.zero_read_t <= self.tripped_t:
            self.zero_read_t = self.world.boot

    def _is_filled(self) -> bool:
        app = self.app is not None and self.registers[self.app] != 0
        return app or any(self.registers[k] != self.zero for k in range(self.valves))

    def _told(self) -> list[float]:
        if self.app is not None and self.registers[self.app] != 1:
            return [0.0] * self.valves
        return [self.registers[k] * self.scale - self.zero * self.scale for k in range(self.valves)]

    def _flow(self, t: float) -> None:
        if t > self.moved_t:
            part = 1.0 if self.lag == 0.0 else -math.expm1(-(t - self.moved_t) / self.lag)
            self.pressure = self.pressure + part * (np.array(self._told()) - self.pressure)
            self.moved_t = t

    # ---- the wire ------------------------------------------------------------------------------------------------

    def connect(self, where: tuple[str, int], timeout: float) -> FakeSocket:
        if not self.listening:
            self.world.run_until(self.world.boot + timeout)
            raise TimeoutError('timed out')
        self.connections += 1
        return FakeSocket(self, self.connections)

    def answer(self, request: bytes, sent_t: float, connection: int) -> bytes:
        """Take a request from a master; return the answer."""
        self.advance()
        self.contact_t = self.world.boot
        transaction, _, _, unit, function, address, count = struct.unpack_from('>HHHBBHH', request)
        places = range(address, address + count)
        if not self.registers.keys() >= set(places):
            return struct.pack('>HHHBBB', transaction, 0, 3, unit, function + 128, 2)
        if function == READ:
            words = self._words(places)
            if address < self.valves and all(abs(word - self.zero) <= 1 for word in words):
                self.confirm_zero()
            data = struct.pack(f'>{count}H', *words)
            return struct.pack('>HHHBBB', transaction, 0, 3 + len(data), unit, function, len(data)) + data
        words = struct.unpack_from(f'>{count}H', request, 13)
        self.write(places, words, sent_t, connection)
        return struct.pack('>HHHBBHH', transaction, 0, 6, unit, function, address, count)

    def write(self, places: range, words: tuple[int, ...], sent_t: float, connection: int) -> None:
        """Set registers, for any master."""
        before = self.setpoints()
        self.registers |= dict(zip(places, words, strict=True))
        if places.start < self.valves:
            newest = connection == self.connections
            times = self.tripped_t, self.zero_read_t
            after, read = self.setpoints(), tuple(self.read_pressure)
            self.applied.append(
                Applied(self.world.boot, sent_t, connection, newest, before, after, *times, read)
            )

    def _words(self, places: range) -> list[int]:
        if not 100 <= places.start < 100 + self.valves:
            return [self.registers[place] for place in places]
        self.read_pressure = self.lie(self.pressure)
        measured = self.read_pressure[places.start - 100 : places.stop - 100]
        return [min(max(round((p + self.ambient) / self.scale), 0), 65535) for p in measured.tolist()]


class FakeSocket:
    """One connection; bytes that it has sent still arrive after it is closed."""

    def __init__(self, terminal: FakeTerminal, number: int) -> None:
        self._terminal, self._world, self.number = terminal, terminal.world, number
        self._received = b''
        self._timeout = 0.0
        self.is_closed = False

    def setsockopt(self, *_: Any) -> None:
        pass

    def settimeout(self, timeout: float) -> None:
        self._timeout = timeout
        self._world.point('compose')  # before the last check

    def sendall(self, data: bytes) -> None:
        sent_t = self._world.boot
        self._world.point('send')  # stopped between its last check and the kernel
        delay = self._terminal.requests.next()
        if np.isfinite(delay):
            self._world.later(delay, lambda: self._arrive(data, sent_t))
        self._world.point('sent')

    def recv(self, size: int) -> bytes:
        self._world.point('wait')
        deadline = self._world.boot + self._timeout
        while not self._received:
            if not self._world.next_event(deadline):
                raise TimeoutError('timed out')
        self._world.point('answer')
        data, self._received = self._received[:size], self._received[size:]
        return data

    def close(self) -> None:
        self.is_closed = True

    def _arrive(self, data: bytes, sent_t: float) -> None:
        answer = self._terminal.damage(self._terminal.answer(data, sent_t, self.number))
        delay = self._terminal.answers.next()
        if np.isfinite(delay):
            self._world.later(delay, lambda: self._deliver(answer))

    def _deliver(self, answer: bytes) -> None:
        self._received += answer
