"""The compiled reference firmware with valves and chambers, on a serial line in simulated time."""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import numpy as np
from fake_valves import Applied, Way, World
from firmware import U32, Firmware

from soft_hw_bridge.errors import DeviceError
from soft_hw_bridge.pressure.serial_device import SerialConfig
from soft_hw_bridge.pressure.serial_protocol import WATCHDOG_S, BinaryCodec, Message, MessageStream

CODEC = BinaryCodec()


class FakeNode:
    """A microcontroller that starts with the same epoch after each reset, the worst source of epochs."""

    scale = 1.0  # [Pa] per count

    def __init__(self, world: World, valves: int, lag: float, t_us: int) -> None:
        self.world, self.valves, self.lag = world, valves, lag
        self.firmware = Firmware(valves)
        self._begin(t_us)
        self.pressure = np.zeros(valves)  # [Pa] true chamber pressures
        self.lie: Any = lambda pressure: pressure  # sensor readings of them
        self.reads: dict[int, tuple[float, tuple[float, ...]]] = {}  # by t_us: time sent, set points [Pa]
        self.applied: list[Applied] = []
        self.ages: list[float] = []  # [s] times of the measurements on which these set points are based
        self.oldest = 0.0  # [s] of the measurements on which set points were based when sent
        self.contact_t = self.moved_t = world.boot
        self.tripped_t = self.zero_read_t = -math.inf
        self.requests, self.answers = Way(), Way()
        self.noise: deque[int] = deque()  # damaged byte of each of the next messages to it; 0: none
        self.listening = True
        self.connections = 0
        self.damage: Any = lambda answer: answer

    # ---- the plant -----------------------------------------------------------------------------------------------

    def setpoints(self) -> tuple[float, ...]:
        """Current set points of the valves [Pa]."""
        self.advance()
        return tuple(map(float, self.firmware.valves))

    def watchdog(self) -> float:
        """Return the time without set points [s] after which it vents."""
        return WATCHDOG_S

    def advance(self) -> None:
        """Advance the plant to the current time."""
        self._flow(min(self.contact_t + WATCHDOG_S, self.world.boot))
        was_filled = any(self.firmware.valves)
        self.firmware.feed(b'', self._now_us())
        if was_filled and not any(self.firmware.valves):
            self.tripped_t = self.world.boot
        self._flow(self.world.boot)

    def trip(self) -> None:
        """Vent, as after a hardware failure, without a message to the host."""
        self.firmware.fail(1)
        self.tripped_t = self.world.boot

    def reset(self) -> None:
        """Reset with the link up; the device clock restarts at zero."""
        self._begin(0)
        self.tripped_t = self.world.boot

    def _begin(self, t_us: int) -> None:
        self._zero_us = round(self.world.boot * 1e6) - t_us
        self.firmware.start(0, t_us)

    def _now_us(self) -> int:
        return (round(self.world.boot * 1e6) - self._zero_us) % U32

    def _flow(self, t: float) -> None:
        if t > self.moved_t:
            part = 1.0 if self.lag == 0.0 else -math.expm1(-(t - self.moved_t) / self.lag)
            self.pressure = self.pressure + part * (np.array(self.firmware.valves) - self.pressure)
            self.moved_t = t

    # ---- the line ------------------------------------------------------------------------------------------------

    def connect(self, _: SerialConfig) -> FakePort:
        if not self.listening:
            raise DeviceError('no serial port')
        self.connections += 1
        return FakePort(self)

    def answer(self, data: bytes, sent_t: float, connection: int) -> bytes:
        """Take bytes from a master; return the answer."""
        before, count = self.setpoints(), self.firmware.times_set
        told = self.lie(self.pressure)
        self.firmware.measure([round(min(max(p, -1e9), 1e9)) for p in told.tolist()])
        answer = self.firmware.feed(data, self._now_us())
        messages = MessageStream(CODEC).feed(data)
        assert messages or self.firmware.times_set == count, 'accepted a damaged message'
        for message in messages:
            if message.kind == 'S' and self.firmware.times_set > count:
                self.contact_t = self.world.boot
                self._note(message, sent_t, connection, before)
            elif message.kind == 'V':
                self.contact_t = self.world.boot
                if any(before):
                    self.tripped_t = self.world.boot
            elif message.kind == 'Q':
                self.reads[self._now_us()] = self.world.boot, tuple(told)
                if not any(before) and self.zero_read_t <= self.tripped_t:
                    self.zero_read_t = self.world.boot
        return answer

    def ask(self) -> Message:
        """Send a request as another master would."""
        data = self.firmware.feed(CODEC.encode(Message('Q', (0,))), self._now_us())
        return MessageStream(CODEC).feed(data)[0]

    def intrude(self, values: tuple[int, ...] | None) -> None:
        """Send set points as a listening master would, or vent as a master that has just opened the port."""
        self.advance()
        epoch, _, t_us, sequence = self.ask().head
        message = Message('V', (12345,))
        if values is not None:
            message = Message('S', (epoch, (sequence + 1) % U32, t_us), values)
        elif any(self.firmware.valves):
            self.tripped_t = self.world.boot
        self.firmware.feed(CODEC.encode(message), self._now_us())
        self.contact_t = self.world.boot

    def _note(self, message: Message, sent_t: float, connection: int, before: tuple[float, ...]) -> None:
        newest = connection == self.connections
        read_t, read = self.reads[message.head[2]]
        after, times = self.setpoints(), (self.tripped_t, self.zero_read_t)
        self.applied.append(Applied(self.world.boot, sent_t, connection, newest, before, after, *times, read))
        self.ages.append(self.world.boot - read_t)

    def let_go(self, data: bytes) -> None:
        """Record the messages sent to it."""
        for message in MessageStream(CODEC).feed(data):
            if message.kind == 'S':
                self.oldest = max(self.oldest, self.world.boot - self.reads[message.head[2]][0])


class FakePort:
    """One opened port; bytes that it has sent still arrive after it is closed."""

    def __init__(self, node: FakeNode) -> None:
        self._node, self._world, self._number = node, node.world, node.connections
        self._received = b''

    def read(self, size: int) -> bytes:
        self._check()
        data, self._received = self._received[:size], self._received[size:]
        if data:
            self._world.point('answer')
        return data

    def write(self, data: bytes) -> None:
        self._check()
        self._node.let_go(data)
        sent_t = self._world.boot
        self._world.point('send')  # stopped between its last check and the kernel
        delay = self._node.requests.next()
        if np.isfinite(delay):
            self._world.later(delay, lambda: self._arrive(data, sent_t))
        self._world.point('sent')

    def close(self) -> None:
        pass

    def _check(self) -> None:
        if not self._node.listening:
            raise OSError('unplugged')

    def _arrive(self, data: bytes, sent_t: float) -> None:
        node = self._node
        place = node.noise.popleft() if node.noise else 0
        if 0 < place < len(data):
            data = data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :]
        answer = node.damage(node.answer(data, sent_t, self._number))
        delay = node.answers.next() if answer else math.inf
        if np.isfinite(delay):
            self._world.later(delay, lambda: self._deliver(answer))

    def _deliver(self, answer: bytes) -> None:
        self._received += answer
