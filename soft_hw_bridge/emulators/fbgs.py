"""Emulated FBGS interrogator: the text streams of ILLumiSense and Shape Sensing."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from soft_hw_bridge.emulators.faults import Faults
from soft_hw_bridge.emulators.stream_server import StreamServer

Array = npt.NDArray[np.float64]


def encode_illumisense(sample: int, utc_ns: int, microstrain: Array) -> bytes:
    """Return a message with the strains (channels, gratings) of all channels."""
    channels, gratings = microstrain.shape
    values = [channels * gratings, *_decimals(microstrain.ravel())]
    return _framed([*_head(sample, utc_ns, [gratings] * channels), *values])


def encode_shape_sensing(sample: int, utc_ns: int, sensors: Sequence[tuple[Array, ...]]) -> bytes:
    """Return a message with, per sensor, curvature [1/m] and angle [rad] of gratings, points (n, 3) [m]."""
    gratings = [len(curvature) for curvature, _, _ in sensors for _core in range(4)]
    fields = _head(sample, utc_ns, gratings)
    for curvature, angle, points in sensors:
        fields += ['Curvature [1/cm]', *_decimals(curvature / 100)]
        fields += ['Angle [rad]', *_decimals(angle)]
        for axis, label in enumerate(('Shape x [cm]', 'Shape y [cm]', 'Shape z [cm]')):
            fields += [label, len(points), *_decimals(points[:, axis] * 100)]
    return _framed(fields)


class FbgsEmulator:
    """Serves messages of both kinds; the caller provides the samples."""

    def __init__(self, port: int = 0) -> None:
        self.faults = Faults()
        self._server = StreamServer(port)
        self._sample = 0

    @property
    def port(self) -> int:
        """The TCP port."""
        return self._server.port

    def send_strain(self, utc_ns: int, microstrain: Array) -> None:
        """Send strains (channels, gratings) as ILLumiSense does."""
        self._send(encode_illumisense(self._next(), self._clock(utc_ns), microstrain))

    def send_shape(self, utc_ns: int, sensors: Sequence[tuple[Array, ...]]) -> None:
        """Send shapes as Shape Sensing does; see `encode_shape_sensing`."""
        self._send(encode_shape_sensing(self._next(), self._clock(utc_ns), sensors))

    def close(self) -> None:
        """Stop serving."""
        self._server.close()

    def _next(self) -> int:
        if self.faults.restart:
            self.faults.restart = False
            self._sample = 0
            self._server.drop_clients()
        self._sample += 1
        return self._sample

    def _clock(self, utc_ns: int) -> int:
        return utc_ns + round(self.faults.clock_jump_s * 1e9)

    def _send(self, packet: bytes) -> None:
        for data in self.faults.apply(packet):
            self._server.send(data)


def _head(sample: int, utc_ns: int, gratings: Sequence[int]) -> list[object]:
    seconds, ns = divmod(utc_ns, 10**9)
    t = time.gmtime(seconds)
    fields: list[object] = [time.strftime('%d/%m/%Y', t), time.strftime('%H:%M:%S', t) + f'.{ns // 1000:06d}']
    fields += [sample, len(gratings)]
    for number, n in enumerate(gratings):
        fields += [number, n, 0, 0, 0, 0, *[f'{1530 + i:.4f}' for i in range(n)], *['0.5'] * n]
    return fields


def _decimals(values: Array) -> list[str]:
    return [f'{value:.6f}' for value in values.tolist()]


def _framed(fields: Sequence[object]) -> bytes:
    text = ('\t'.join(map(str, fields)) + '\t\r\n').encode('ascii')
    return len(text).to_bytes(4, 'big') + text
