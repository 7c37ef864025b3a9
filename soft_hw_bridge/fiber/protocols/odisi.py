"""Luna ODiSI 6000: the OMSP stream, strain along fibers as JSON.

A message is JSON text, CR LF, four hexadecimal digits of the CRC-16 of all preceding bytes, and a NUL. Metadata, sent
every few seconds, give the positions of the numbers of a measurement. We could not reproduce the checksums printed in
the guide, so a wrong checksum counts as a warning and the message is used.
Source: ODiSI 6 User's Guide, chapter 8.
"""

from __future__ import annotations

import datetime
import json
import re
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from soft_dynamics.errors import one_line, shown
from soft_hw_bridge.errors import UNREADABLE, MalformedPacket
from soft_hw_bridge.fiber.adapter import Array, ShapeFrame
from soft_hw_bridge.fiber.protocols.crc16 import crc16_arc
from soft_hw_bridge.link.framing import DelimitedBuffer

PORT = 50000
MAX_MESSAGE_BYTES = 4 << 20  # 38 500 gages, the longest fiber, take about 0.6 MB

_EPOCH = datetime.datetime(1970, 1, 1)
_SECOND = datetime.timedelta(seconds=1)
_START = re.compile(rb'\{\s*"message type"')
_END = re.compile(rb'\}(\r\n)?([0-9A-Fa-f]{4})\Z')
_INFO = ('product', 'system serial number', 'software version', 'measurement rate', 'system status')
_TIME = ('year', 'month', 'day', 'hours', 'minutes', 'seconds')

_LONGEST_INTEGER = 18  # characters, so that sums of them fit into 64 bits

Json = dict[str, Any]
T = TypeVar('T')


@dataclass(frozen=True)
class Core:
    """Source of the strain of one core: a channel, or one segment of a channel."""

    channel: int = 1
    segment: str = ''  # '' is the whole channel
    reverse: bool = False  # the fiber runs from tip to base


class Message(NamedTuple):
    """A message and whether its checksum is correct."""

    body: Json
    checksum_ok: bool


def decode_message(data: bytes) -> Message:
    """Return the message between two NULs; skip damaged bytes before it."""
    end = _END.search(data)
    if end is None:
        raise MalformedPacket('OMSP message does not end with a checksum')
    start = max((match.start() for match in _START.finditer(data)), default=0)
    text = data[start : end.start() + 1]
    try:
        body = json.loads(text, parse_int=_integer)
    except (ValueError, RecursionError) as error:
        raise MalformedPacket(f'OMSP message is not valid JSON: {error}') from None
    if not isinstance(body, dict):
        raise MalformedPacket('OMSP message is not a JSON object')
    return Message(body, crc16_arc(text + (end[1] or b'')) == int(end[2], 16))


class OdisiAdapter:
    """Strain frames of a sensor with one or several cores.

    The instrument measures the channels in sequence: the last core of the list completes a frame.
    """

    sequence_bits = 32

    def __init__(self, cores: tuple[Core, ...] = (Core(),)) -> None:
        if not cores:
            raise ValueError('cores must name at least one channel, got none')
        self.warnings = 0
        self.problem = ''
        self._dropped = 0
        self._cores = cores
        self._messages = DelimitedBuffer(b'\0', MAX_MESSAGE_BYTES)
        self.reset()

    @property
    def malformed(self) -> int:
        """Messages dropped."""
        return self._dropped + self._messages.overruns

    def reset(self) -> None:
        """Forget partial messages and the metadata of the last connection."""
        self._messages.clear()
        self._metadata: Json = {}
        self._places: dict[Core, _Place] = {}
        self._readings: dict[Core, tuple[Array, Array]] = {}

    def info(self) -> dict[str, str]:
        """Return the metadata about the instrument."""
        told = {key: self._metadata[key] for key in _INFO if self._metadata.get(key)}
        return {key: one_line(x, 100) if isinstance(x, str) else shown(x) for key, x in told.items()}

    def feed(self, data: bytes) -> list[ShapeFrame]:
        """Return the frames completed by these bytes."""
        frames = []
        for message in self._messages.feed(data):
            try:
                frame = self._read(*decode_message(message))
            except UNREADABLE as error:
                self._dropped += 1
                self.problem = one_line(str(error), 200)
            else:
                frames += [frame] if frame else []
        return frames

    def _read(self, body: Json, checksum_ok: bool) -> ShapeFrame | None:
        self.warnings += not checksum_ok
        kind = body.get('message type')
        if kind == 'metadata':
            self._read_metadata(body)
        elif kind == 'measurement' and self._places:  # without metadata the numbers mean nothing
            return self._read_measurement(body)
        elif kind not in ('measurement', 'tare'):
            raise MalformedPacket(f'unknown OMSP message type {shown(kind)}')
        return None

    def _read_metadata(self, body: Json) -> None:
        sensors = {_get(sensor, 'channel', int): sensor for sensor in _objects(body, 'sensors')}
        self._places = {core: _place(core, sensors) for core in self._cores} if sensors else {}
        self._metadata = body

    def _read_measurement(self, body: Json) -> ShapeFrame | None:
        channel = _get(body, 'channel', int)
        data = _numbers(body, 'data')
        quality = _numbers(body, 'quality factor') if 'quality factor' in body else np.full(len(data), np.nan)
        if len(quality) != len(data):
            raise MalformedPacket(f'measurement with {len(data)} gages and {len(quality)} quality factors')
        for core in self._cores:
            if core.channel == channel:
                self._readings[core] = (self._places[core].cut(data), self._places[core].cut(quality))
        if channel != self._cores[-1].channel or len(self._readings) < len(set(self._cores)):
            return None
        strains, qualities = zip(*(self._readings[core] for core in self._cores), strict=True)
        lengths = [len(strain) for strain in strains]
        if len(set(lengths)) > 1:
            raise MalformedPacket(f'cores must have the same number of gages, got {lengths}')
        return ShapeFrame(
            sensor=0,
            sequence=_get(body, 'sequence number', int) // len(self._metadata['sensors']) & 0xFFFFFFFF,
            stamp_ns=_utc_ns(body),
            s=self._places[self._cores[0]].arc_length(lengths[0]),
            strain=1e-6 * np.array(strains),
            quality=np.min(qualities, axis=0),
        )


class _Place(NamedTuple):
    """Position of the numbers of a core in the data of its channel."""

    start: int
    stop: int | None
    positions: Array | None  # [m] None: gages at equal spacing
    pitch: float  # [m]
    reverse: bool

    def cut(self, data: Array) -> Array:
        if self.stop is not None and self.stop > len(data):
            raise MalformedPacket(f'measurement of {len(data)} gages, the metadata says {self.stop}')
        part = data[self.start : self.stop]
        return part[::-1] if self.reverse else part

    def arc_length(self, n: int) -> Array:
        if self.positions is None:
            return self.pitch * np.arange(n, dtype=np.float64)
        places = -self.positions[::-1] if self.reverse else self.positions
        return np.asarray(places - places[0])


def _place(core: Core, sensors: dict[int, Json]) -> _Place:
    if core.channel not in sensors:
        raise MalformedPacket(f'no channel {core.channel}, the instrument has {shown(sorted(sensors))}')
    sensor = sensors[core.channel]
    units = sensor.get('units', 'microstrain')
    if units != 'microstrain':
        raise MalformedPacket(f'channel {core.channel} must be in microstrain, got {shown(units)}')
    pitch = 1e-3 * _get(sensor, 'gage pitch (mm)', float)
    positions = np.array([1e-3 * _get(gage, 'location (mm)', float) for gage in _objects(sensor, 'gages')])
    if not (0 < pitch < np.inf and np.all(np.diff(positions) > 0)):
        raise MalformedPacket(f'gages of channel {core.channel} are not in ascending order')
    start = len(positions)
    names = []
    for segment in _objects(sensor, 'segments'):
        size = _get(segment, 'size', int)
        start = _get(segment, 'index', int) if 'index' in segment else start
        name = _get(segment, 'segment name', str)
        if start < 0 or size < 1:
            raise MalformedPacket(f'segment {shown(name)} has size {size} at index {start}')
        if name == core.segment:
            return _Place(start, start + size, None, pitch, core.reverse)
        names += [name] if name != 'default' else []  # that is the whole fiber
        start += size
    if core.segment:
        raise MalformedPacket(f'no segment {core.segment!r} on channel {core.channel}, it has {shown(names)}')
    if names:
        raise MalformedPacket(f'channel {core.channel} has the segments {shown(names)}: name one')
    if len(positions):
        return _Place(0, len(positions), positions, pitch, core.reverse)
    return _Place(0, None, None, pitch, core.reverse)


def _integer(text: str) -> int:
    if len(text) > _LONGEST_INTEGER:
        raise MalformedPacket(f'OMSP integer has {len(text)} characters')
    return int(text)


def _get(body: Json, key: str, kind: type[T]) -> T:
    value = body.get(key)
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        raise MalformedPacket(f'OMSP {key!r} must be {kind.__name__}, got {shown(value)}')
    return value


def _objects(body: Json, key: str) -> list[Json]:
    objects = body.get(key) or []
    if not isinstance(objects, list) or not all(isinstance(item, dict) for item in objects):
        raise MalformedPacket(f'OMSP {key!r} must be a list of objects')
    return objects


def _numbers(body: Json, key: str) -> Array:
    try:
        numbers = np.array(body.get(key), np.float64)  # null becomes NaN
    except (TypeError, ValueError, OverflowError):
        numbers = np.empty(())
    if numbers.ndim != 1:
        raise MalformedPacket(f'OMSP {key!r} must be a list of numbers')
    return numbers


def _utc_ns(body: Json) -> int:
    try:
        second = datetime.datetime(*[_get(body, key, int) for key in _TIME])  # type: ignore[arg-type]
    except (OverflowError, ValueError) as error:
        raise MalformedPacket(f'OMSP time stamp: {error}') from None
    milliseconds = _get(body, 'milliseconds', int)
    microseconds = _get(body, 'microseconds', int) if 'microseconds' in body else 0
    return (((second - _EPOCH) // _SECOND * 1000 + milliseconds) * 1000 + microseconds) * 1000
