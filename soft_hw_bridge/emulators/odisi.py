"""Emulated Luna ODiSI 6000 that streams strain over OMSP."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from soft_hw_bridge.emulators.faults import Faults
from soft_hw_bridge.emulators.stream_server import StreamServer

METADATA_PERIOD_S = 5.0


def checksum(data: bytes) -> int:
    """Return CRC-16/ARC, bit by bit by definition, with a table for the eight bits of a byte."""
    register = 0
    for byte in data:
        register = (register >> 8) ^ _OF_BYTE[(register ^ byte) & 0xFF]
    return register


def encode_message(body: Mapping[str, Any]) -> bytes:
    """Return the bytes of one message; NaN becomes null."""
    text = json.dumps(body).replace('NaN', 'null').encode() + b'\r\n'
    return text + b'%04X' % checksum(text) + b'\x00'


def metadata(
    segments: Mapping[int, Mapping[str, int]], pitch_mm: float, rate_hz: float, status: str = 'measuring'
) -> dict[str, Any]:
    """Return the metadata of an instrument with the segments {channel: {name: gages}}."""
    sensors = []
    for channel, sizes in segments.items():
        index, location, listed = 0, 0.0, []
        for name, size in sizes.items():
            listed.append({'segment name': name, 'location (mm)': location, 'size': size, 'index': index})
            index, location = index + size, location + size * pitch_mm
        sensors.append(
            {
                'channel': channel,
                'sensor name': f'fiber {channel}',
                'sensor type': 'Strain',
                'length (m)': location / 1000,
                'units': 'microstrain',
                'gage pitch (mm)': pitch_mm,
                'segments': listed,
            }
        )
    return {
        'message type': 'metadata',
        'message version': 2,
        'product': 'ODiSI 6104',
        'system serial number': 'EMULATOR',
        'software version': '2.4.0',
        'measurement rate': rate_hz,
        'system status': status,
        'sensors': sensors,
    }


def measurement(sequence: int, utc_ns: int, channel: int, microstrain: Sequence[float]) -> dict[str, Any]:
    """Return a measurement of all gages of a channel."""
    seconds, ns = divmod(utc_ns, 10**9)
    t = time.gmtime(seconds)
    return {
        'message type': 'measurement',
        'message version': 2,
        'product': 'ODiSI 6104',
        'system serial number': 'EMULATOR',
        'sequence number': sequence,
        'year': t.tm_year,
        'month': t.tm_mon,
        'day': t.tm_mday,
        'hours': t.tm_hour,
        'minutes': t.tm_min,
        'seconds': t.tm_sec,
        'milliseconds': ns // 10**6,
        'microseconds': ns // 10**3 % 1000,
        'time zone': 'UTC-0',
        'channel': channel,
        'number of gages': len(microstrain),
        'data': [round(value, 2) for value in microstrain],
        'quality factor': [0.35] * len(microstrain),
    }


class OdisiEmulator:
    """Serves given measurements, and metadata on connection and periodically."""

    def __init__(
        self, segments: Mapping[int, Mapping[str, int]], pitch_mm: float, rate_hz: float, port: int = 0
    ) -> None:
        self.faults = Faults()
        self._metadata = encode_message(metadata(segments, pitch_mm, rate_hz))
        greeting = encode_message({'message type': 'metadata', 'system status': ''}) + self._metadata
        self._server = StreamServer(port, lambda: greeting)
        self._sequence = 0
        self._told_ns = 0

    @property
    def port(self) -> int:
        """The TCP port."""
        return self._server.port

    def send(self, utc_ns: int, channel: int, microstrain: Sequence[float]) -> None:
        """Send the measurement of one channel."""
        if self.faults.restart:
            self.faults.restart = False
            self._sequence = 0
            self._server.drop_clients()
        if utc_ns - self._told_ns > METADATA_PERIOD_S * 1e9:
            self._told_ns = utc_ns
            self._server.send(self._metadata)
        utc_ns += round(self.faults.clock_jump_s * 1e9)
        packet = encode_message(measurement(self._sequence, utc_ns, channel, microstrain))
        self._sequence = (self._sequence + 1) % 2**32
        for data in self.faults.apply(packet):
            self._server.send(data)

    def close(self) -> None:
        """Stop serving."""
        self._server.close()


def _of_byte(byte: int) -> int:
    for _ in range(8):
        byte = (byte >> 1) ^ (0xA001 if byte % 2 else 0)
    return byte


_OF_BYTE = [_of_byte(byte) for byte in range(256)]
