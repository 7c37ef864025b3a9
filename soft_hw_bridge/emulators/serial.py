"""Emulated microcontroller with valves, on a pseudo-terminal."""

from __future__ import annotations

import os
import pty
import random
import select
import struct
import threading
import time
import tty
from collections.abc import Sequence

from soft_hw_bridge.emulators.faults import Faults

VENT_AFTER_US = 200_000
VALID_US = 150_000
U32 = 1 << 32


class SerialEmulator:
    """Behaves like the firmware: accepts set points, answers questions, vents when set points stop.

    Its sensors read the set points unless `set_actual` is called.
    """

    def __init__(self, channels: int, binary: bool = True) -> None:
        self.faults = Faults()
        self.highest = [0.0] * channels  # [Pa] largest set point so far
        self.malformed = 0
        self.refused = 0  # set points
        self._channels = channels
        self._binary = binary
        self._actual: list[int] | None = None
        self._lock = threading.Lock()
        self._sequence = 0  # of the current set points
        self._reset()
        self._master, self._slave = pty.openpty()
        tty.setraw(self._slave)
        os.set_blocking(self._master, False)
        self.port = os.ttyname(self._slave)
        self._running = True
        self._thread = threading.Thread(target=self._run, name='serial_emulator', daemon=True)
        self._thread.start()

    def commanded(self) -> list[float]:
        """Return the current set points [Pa]."""
        with self._lock:
            self._look()
            return [float(value) for value in self._setpoints]

    def set_actual(self, pressures: Sequence[float]) -> None:
        """Make the sensors read these pressures [Pa], independent of the set points."""
        self._actual = [round(p) for p in pressures]

    def set_by_another(self, pressures: Sequence[float]) -> None:
        """Apply set points [Pa] of a second master that has listened."""
        with self._lock:
            self._setpoints = [int(p) for p in pressures]
            self._sequence = (self._sequence + 1) % U32

    def close(self) -> None:
        """Unplug."""
        self._running = False
        self._thread.join()
        os.close(self._master)
        os.close(self._slave)

    def _reset(self) -> None:
        self._epoch = random.randrange(U32)
        self._sequence = 0
        self._start = time.monotonic()
        self._live, self._heard_us = False, 0
        self._setpoints = [0] * self._channels

    def _now_us(self) -> int:
        return int((time.monotonic() - self._start + self.faults.clock_jump_s) * 1e6) % U32

    def _look(self) -> None:
        """Restart if requested; vent when set points are late."""
        if self.faults.restart:
            self.faults.restart = False
            self._reset()
        if self._live and (self._now_us() - self._heard_us) % U32 > VENT_AFTER_US:
            self._vent()

    def _vent(self) -> None:
        self._live = False
        self._epoch = (self._epoch + 1) % U32
        self._setpoints = [0] * self._channels

    def _run(self) -> None:
        pending = b''
        mark = b'\0' if self._binary else b'\n'
        while self._running:
            ready, _, _ = select.select([self._master], [], [], 0.02)
            if ready:
                *frames, pending = (pending + os.read(self._master, 4096)).split(mark)
                for frame in filter(None, frames):
                    self._take(frame)

    def _take(self, frame: bytes) -> None:
        message = read_binary(frame) if self._binary else read_text(frame)
        if message is None:
            self.malformed += 1
            return
        kind, numbers = message
        with self._lock:
            self._look()
            if kind == 'S':
                self._take_setpoints(numbers)
                return
            if kind == 'V':
                if not self._live or numbers[0] != self._sequence:
                    self._vent()
                self._live, self._sequence, self._heard_us = True, numbers[0], self._now_us()
            state = [self._epoch, numbers[0], self._now_us(), self._sequence]
            answer = report(state, self._setpoints, self._actual or self._setpoints, self._binary)
        for data in self.faults.apply(answer):
            try:
                os.write(self._master, data)
            except BlockingIOError:  # no reader
                return

    def _take_setpoints(self, numbers: Sequence[int]) -> None:
        epoch, sequence, t_us, *pressures = numbers
        in_time = (self._now_us() - t_us) % U32 <= VALID_US
        follows = epoch == self._epoch and sequence == (self._sequence + 1) % U32
        if not (self._live and in_time and follows and len(pressures) == self._channels):
            self.refused += 1
            return
        self._sequence, self._heard_us = sequence, self._now_us()
        self._setpoints = [p - U32 if p >= U32 // 2 else p for p in pressures]
        self.highest = [max(pair) for pair in zip(self.highest, map(float, self._setpoints), strict=True)]


def report(state: Sequence[int], setpoints: Sequence[int], actual: Sequence[int], binary: bool) -> bytes:
    """Return an answer: epoch, number, time and sequence; set points and measured pressures [Pa]."""
    return report_binary(state, setpoints, actual) if binary else report_text(state, setpoints, actual)


def report_text(state: Sequence[int], setpoints: Sequence[int], actual: Sequence[int]) -> bytes:
    """Return the line of an answer."""
    line = 'P'
    for number in [*state, *setpoints, *actual]:
        line += f',{number:d}'
    return f'{line}*{crc_ccitt(line.encode()):04X}\n'.encode()


def report_binary(state: Sequence[int], setpoints: Sequence[int], actual: Sequence[int]) -> bytes:
    """Return the frame of an answer."""
    data = b'P' + b''.join((number % U32).to_bytes(4, 'little') for number in [*state, *setpoints, *actual])
    return stuff(data + crc_ccitt(data).to_bytes(2, 'little'))


def read_text(line: bytes) -> tuple[str, list[int]] | None:
    """Return kind and numbers, modulo 2**32, of a message from the host; None if it is damaged."""
    body, _, digits = line.partition(b'*')
    fields = body.split(b',')
    if digits != b'%04X' % crc_ccitt(body) or fields[0] not in (b'V', b'S', b'Q') or len(fields) < 2:
        return None
    return fields[0].decode(), [int(field) % U32 for field in fields[1:]]


def read_binary(frame: bytes) -> tuple[str, list[int]] | None:
    """Return kind and numbers, modulo 2**32, of a message from the host; None if it is damaged."""
    data = unstuff(frame)
    if len(data) < 7 or crc_ccitt(data[:-2]) != data[-2] + 256 * data[-1] or data[0] not in b'VSQ':
        return None
    return chr(data[0]), [number for (number,) in struct.iter_unpack('<I', data[1:-2])]


def crc_ccitt(data: bytes) -> int:
    """Return CRC-16/CCITT-FALSE bit by bit."""
    crc = 0xFFFF
    for byte in data:
        for bit in range(7, -1, -1):
            carry = (crc >> 15) ^ (byte >> bit & 1)
            crc = (crc << 1 & 0xFFFF) ^ (0x1021 if carry else 0)
    return crc


def stuff(data: bytes) -> bytes:
    """Return the COBS frame of the data with delimiter, byte by byte like firmware."""
    out, start = bytearray([0]), 0
    for byte in data:
        if byte:
            out.append(byte)
        if not byte or len(out) - start == 255:
            out[start] = len(out) - start
            start = len(out)
            out.append(0)
    out[start] = len(out) - start
    return bytes(out) + b'\0'


def unstuff(frame: bytes) -> bytes:
    """Return the data of a COBS frame without its delimiter."""
    out = bytearray()
    remaining, full = 0, True
    for byte in frame:
        if remaining:
            out.append(byte)
        else:
            if not full:
                out.append(0)
            remaining, full = byte, byte == 255
        remaining -= 1
    return bytes(out)
