"""FBGS text streams: ILLumiSense (strain of gratings) and Shape Sensing (points).

Every message is a big-endian u32 length followed by that many ASCII characters, with fields separated by tabs. The
vendor publishes no description; this is the layout that aGotelli/FBGS-sensing reads from its interrogators.

    head:      date, time, sample number, number of channels
    channel:   number, g gratings, 4 status numbers, g wavelengths [nm], g powers
    then, ILLumiSense:    count, strains [1e-6] of all channels in order
    or, per shape sensor: "Curvature [1/cm]", g curvatures, label, g angles [rad], label, n, n times x [cm],
                          label, n, n times y [cm], label, n, n times z [cm]
"""

from __future__ import annotations

import re
import struct
from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from soft_hw_bridge.errors import UNREADABLE, MalformedPacket
from soft_hw_bridge.fiber.adapter import Array, BufferedAdapter, ShapeFrame

ILLUMISENSE_PORT = 2055
SHAPE_SENSING_PORT = 5001
MAX_MESSAGE_BYTES = 1 << 20
CORES_PER_SENSOR = 4
_LONGEST_NUMBER = 40  # characters

_LENGTH = struct.Struct('>I')
_LENGTH_AND_TEXT = re.compile(rb'\x00[\x00-\x0f][\x00-\xff]{2}(?=[ -~])')  # at most MAX_MESSAGE_BYTES
_TIME = re.compile(r'(\d{1,2}):(\d{2}):(\d{2})[.,](\d{1,9})', re.ASCII)
_CURVATURE_LABEL = 'Curvature [1/cm]'
_DAY_NS = 86_400_000_000_000


class Head(NamedTuple):
    """The common part of both streams."""

    day_ns: int | None  # time of day; None if it has whole seconds only
    sample: int
    gratings: list[int]  # per channel
    status: list[tuple[int, ...]]  # per channel, 0 is good


class FbgsSensor(NamedTuple):
    """The shape of one fiber as computed by the software of the interrogator."""

    curvature: Array  # [1/m] at the gratings
    angle: Array  # [rad] direction of bending
    points: Array  # [m] (n, 3)


class _Fields:
    """Reads tab-separated values in sequence."""

    def __init__(self, text: bytes) -> None:
        try:
            self._values = text.decode('ascii').rstrip('\r\n\t').split('\t')
        except UnicodeDecodeError:
            raise MalformedPacket('FBGS message is not ASCII') from None
        self._next = 0

    def text(self) -> str:
        return self._take(1)[0]

    def integer(self) -> int:
        try:
            return int(_short(self.text()))
        except ValueError as error:
            raise MalformedPacket(f'FBGS message: {error}') from None

    def numbers(self, count: int) -> Array:
        try:
            return np.array([float(_short(text)) for text in self._take(count)])
        except ValueError as error:
            raise MalformedPacket(f'FBGS message: {error}') from None

    def at_end(self) -> bool:
        return self._next == len(self._values)

    def _take(self, count: int) -> list[str]:
        stop = self._next + count
        if not self._next <= stop <= len(self._values):
            raise MalformedPacket(f'FBGS message of {len(self._values)} fields, expected {stop}')
        values = self._values[self._next : stop]
        self._next = stop
        return values


def _short(text: str) -> str:
    if len(text) > _LONGEST_NUMBER:
        raise MalformedPacket(f'FBGS message with a number of {len(text)} characters')
    return text


def decode_illumisense(text: bytes) -> tuple[Head, list[Array]]:
    """Return the head and the strain [-] of each channel's gratings."""
    fields = _Fields(text)
    head = _head(fields)
    count = fields.integer()
    if count != sum(head.gratings):
        raise MalformedPacket(f'FBGS message with {count} strains for {sum(head.gratings)} gratings')
    return head, [1e-6 * fields.numbers(n) for n in head.gratings]


def decode_shape_sensing(text: bytes) -> tuple[Head, list[FbgsSensor]]:
    """Return the head and the shape of each sensor."""
    fields = _Fields(text)
    head = _head(fields)
    sensors = []
    for gratings in head.gratings[::CORES_PER_SENSOR]:
        if fields.at_end():
            break
        label = fields.text()
        if label != _CURVATURE_LABEL:
            raise MalformedPacket(f'FBGS message: expected {_CURVATURE_LABEL!r}, got {label!r:.40}')
        curvature = 100.0 * fields.numbers(gratings)
        fields.text()
        angle = fields.numbers(gratings)
        columns = [0.01 * fields.numbers(_count(fields)) for _ in 'xyz']
        if len({len(column) for column in columns}) != 1:
            raise MalformedPacket('FBGS message: x, y and z differ in length')
        sensors.append(FbgsSensor(curvature, angle, np.column_stack(columns)))
    return head, sensors


class _FbgsAdapter(BufferedAdapter, ABC):
    """Framing and clock, common to both streams."""

    def __init__(self) -> None:
        super().__init__()
        self._day = 0
        self._day_ns = 0

    def feed(self, data: bytes) -> list[ShapeFrame]:
        """Return the frames completed by these bytes."""
        buffer = self._buffer
        buffer += data
        frames: list[ShapeFrame] = []
        while self._seek_length():
            stop = _LENGTH.size + _LENGTH.unpack_from(buffer)[0]
            if len(buffer) < stop:
                break
            try:
                frames += self._read(bytes(buffer[_LENGTH.size : stop]))
            except UNREADABLE as error:
                self._drop(str(error))
            del buffer[:stop]
        return frames

    @abstractmethod
    def _read(self, text: bytes) -> list[ShapeFrame]:
        """Return the frames of one message."""

    def _seek_length(self) -> bool:
        """Drop bytes up to a length followed by text; text itself never looks like such a length."""
        match = _LENGTH_AND_TEXT.search(self._buffer)
        start = match.start() if match else max(0, len(self._buffer) - _LENGTH.size)
        if start:
            self._drop(f'FBGS stream out of sync, {start} bytes dropped')
            del self._buffer[:start]
        return match is not None

    def _stamp_ns(self, head: Head) -> int | None:
        """Return the device time: the time of day plus a day for each midnight passed."""
        if head.day_ns is None:
            return None
        if head.day_ns < self._day_ns - _DAY_NS // 2:
            self._day += 1
        self._day_ns = head.day_ns
        return self._day * _DAY_NS + head.day_ns


class IllumisenseAdapter(_FbgsAdapter):
    """Strain frames: each group of `cores` channels is one sensor."""

    def __init__(self, grating_s: Array, cores: int = CORES_PER_SENSOR) -> None:
        super().__init__()
        self._grating_s = grating_s
        self._cores = cores

    def _read(self, text: bytes) -> list[ShapeFrame]:
        head, strains = decode_illumisense(text)
        self.warnings += any(map(any, head.status))
        n = len(self._grating_s)
        if len(strains) % self._cores or any(gratings != n for gratings in head.gratings):
            raise MalformedPacket(f'FBGS channels have {head.gratings} gratings, expected {n} each')
        stamp_ns = self._stamp_ns(head)
        return [
            ShapeFrame(
                sensor=i,
                sequence=head.sample,
                stamp_ns=stamp_ns,
                s=self._grating_s,
                strain=np.array(strains[i * self._cores : (i + 1) * self._cores]),
            )
            for i in range(len(strains) // self._cores)
        ]


class ShapeSensingAdapter(_FbgsAdapter):
    """Frames of points, and of curvature if the positions of the gratings are known."""

    def __init__(self, point_spacing: float = 1e-3, grating_s: Array | None = None) -> None:
        super().__init__()
        if not point_spacing > 0:
            raise ValueError(f'point_spacing must be > 0, got {point_spacing}')
        self._point_spacing = point_spacing
        self._grating_s = grating_s

    def _read(self, text: bytes) -> list[ShapeFrame]:
        head, sensors = decode_shape_sensing(text)
        self.warnings += any(map(any, head.status))
        stamp_ns = self._stamp_ns(head)
        frames = []
        for i, sensor in enumerate(sensors):
            s = self._point_spacing * np.arange(len(sensor.points), dtype=np.float64)
            curvature_C = self._curvature(sensor, s)
            frames.append(ShapeFrame(i, head.sample, stamp_ns, s, sensor.points, curvature_C=curvature_C))
        return frames

    def _curvature(self, sensor: FbgsSensor, s: Array) -> Array | None:
        """Return the angular strain at the points; bending towards `angle` rotates about `angle` + 90 degrees."""
        if self._grating_s is None:
            return None
        n = len(self._grating_s)
        if len(sensor.curvature) != n:
            raise MalformedPacket(f'FBGS sensor with {len(sensor.curvature)} gratings, expected {n}')
        about_x = np.interp(s, self._grating_s, -sensor.curvature * np.sin(sensor.angle))
        about_y = np.interp(s, self._grating_s, sensor.curvature * np.cos(sensor.angle))
        return np.column_stack([about_x, about_y, np.zeros(len(s))])


def _head(fields: _Fields) -> Head:
    fields.text()
    day_ns = _time_of_day_ns(fields.text())
    sample, channels = fields.integer(), fields.integer()
    gratings, status = [], []
    for _ in range(channels):
        fields.integer()
        gratings.append(fields.integer())
        status.append(tuple(fields.integer() for _ in range(4)))
        fields.numbers(gratings[-1])
        fields.numbers(gratings[-1])
    return Head(day_ns, sample % (1 << 32), gratings, status)


def _count(fields: _Fields) -> int:
    fields.text()
    return fields.integer()


def _time_of_day_ns(text: str) -> int | None:
    match = _TIME.fullmatch(text.strip())
    if match is None:
        return None
    hours, minutes, seconds = map(int, match.group(1, 2, 3))
    return (hours * 3600 + minutes * 60 + seconds) * 1_000_000_000 + int(match[4].ljust(9, '0'))
