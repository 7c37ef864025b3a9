"""A microcontroller with valves on a pseudo-terminal."""

from __future__ import annotations

import os
import pty
import select
import struct
import threading
import time
import tty
from collections.abc import Sequence

from soft_hw_bridge.emulators.faults import Faults

VENT_AFTER_S = 0.2


class SerialEmulator:
    """The firmware: takes set points, reports pressures, vents when nobody talks to it."""

    def __init__(self, channels: int, binary: bool = True, rate_hz: float = 200.0) -> None:
        self.faults = Faults()
        self.highest = [0.0] * channels  # [Pa] ever commanded
        self.malformed = 0
        self._channels = channels
        self._binary = binary
        self._period = 1.0 / rate_hz
        self._setpoints = [0.0] * channels
        self._actual = [0.0] * channels
        self._heard = 0.0
        self._start = time.monotonic()
        self._sequence = 0
        self._master, self._slave = pty.openpty()
        tty.setraw(self._slave)
        os.set_blocking(self._master, False)
        self.port = os.ttyname(self._slave)
        self._running = True
        self._thread = threading.Thread(target=self._run, name='serial_emulator', daemon=True)
        self._thread.start()

    def commanded(self) -> list[float]:
        """Return the set points [Pa] that hold now."""
        if time.monotonic() - self._heard > VENT_AFTER_S:
            return [0.0] * self._channels
        return list(self._setpoints)

    def set_actual(self, pressures: Sequence[float]) -> None:
        """Let the sensors read these pressures [Pa]."""
        self._actual = list(pressures)

    def close(self) -> None:
        """Unplug."""
        self._running = False
        self._thread.join()
        os.close(self._master)
        os.close(self._slave)

    def _run(self) -> None:
        pending = b''
        due = time.monotonic()
        mark = b'\0' if self._binary else b'\n'
        while self._running:
            ready, _, _ = select.select([self._master], [], [], max(due - time.monotonic(), 0.0))
            if ready:
                *frames, pending = (pending + os.read(self._master, 4096)).split(mark)
                for frame in filter(None, frames):
                    self._take_binary(frame) if self._binary else self._take_text(frame.decode('latin-1'))
            if time.monotonic() >= due:
                due += self._period
                self._report()

    def _report(self) -> None:
        if self.faults.restart:
            self.faults.restart = False
            self._start, self._sequence, self._setpoints = time.monotonic(), 0, [0.0] * self._channels
        t_us = int((time.monotonic() - self._start + self.faults.clock_jump_s) * 1e6) % 2**32
        packet = (
            report_binary(self._sequence, t_us, self._actual)
            if self._binary
            else report_text(self._sequence, t_us, self._actual)
        )
        self._sequence += 1
        for data in self.faults.apply(packet):
            try:
                os.write(self._master, data)
            except BlockingIOError:  # nobody reads
                return

    def _take_text(self, line: str) -> None:
        body, _, digits = line.partition('*')
        total = 0
        for character in body:
            total ^= ord(character)
        fields = body.split(',')
        if digits != f'{total:02X}' or len(fields) != 3 or fields[0] != 'S':
            self.malformed += 1
            return
        self._set(int(fields[1]), float(fields[2]) * 1000)

    def _take_binary(self, frame: bytes) -> None:
        data = unstuff(frame)
        if crc_ccitt(data[:-2]) != data[-2] + 256 * data[-1] or data[0] != ord('S'):
            self.malformed += 1
            return
        for channel in range((len(data) - 8) // 4):
            self._set(channel, struct.unpack_from('<f', data, 6 + 4 * channel)[0])

    def _set(self, channel: int, pressure: float) -> None:
        self._heard = time.monotonic()
        if channel < self._channels:
            self._setpoints[channel] = pressure
            self.highest[channel] = max(self.highest[channel], pressure)


def report_text(sequence: int, t_us: int, pressures: Sequence[float]) -> bytes:
    """Return a line with the measured pressures [Pa]."""
    body = ','.join(['P', str(sequence), str(t_us), *(f'{p / 1000:.4f}' for p in pressures)])
    total = 0
    for character in body:
        total ^= ord(character)
    return f'{body}*{total:02X}\n'.encode()


def report_binary(sequence: int, t_us: int, pressures: Sequence[float]) -> bytes:
    """Return a frame with the measured pressures [Pa]."""
    data = b'P' + bytes([sequence % 256]) + t_us.to_bytes(4, 'little')
    data += b''.join(struct.pack('<f', p) for p in pressures)
    data += crc_ccitt(data).to_bytes(2, 'little')
    return stuff(data)


def crc_ccitt(data: bytes) -> int:
    """Return CRC-16/CCITT-FALSE bit by bit."""
    crc = 0xFFFF
    for byte in data:
        for bit in range(7, -1, -1):
            carry = (crc >> 15) ^ (byte >> bit & 1)
            crc = (crc << 1 & 0xFFFF) ^ (0x1021 if carry else 0)
    return crc


def stuff(data: bytes) -> bytes:
    """Return the COBS frame of the data, delimiter included, byte by byte as firmware does it."""
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
