"""Emulated shape sensor with SHP1."""

from __future__ import annotations

import binascii

import numpy as np
import numpy.typing as npt

from soft_hw_bridge.emulators.faults import Faults
from soft_hw_bridge.emulators.stream_server import StreamServer

Array = npt.NDArray[np.float64]

_WIDTHS = (1, 3, 4, 2, 1, 1, 1)  # mask bits 0 to 6: s, xyz, quaternion, bending, twist, strain, quality


def encode_frame(
    sequence: int,
    device_ns: int,
    columns: dict[int, Array],
    spacing: float = 0.0,
    sensor: int = 0,
    flags: int = 1,
) -> bytes:
    """Return the bytes of one frame; `columns` maps the number of a mask bit to an array of n rows."""
    n = len(next(iter(columns.values())))
    body, mask = b'', 0
    for bit in sorted(columns):
        block = np.asarray(columns[bit], '<f4').reshape(n, _WIDTHS[bit])
        body += block.tobytes()
        mask += 1 << bit
    header = b'SHP1' + _u(40, 2) + _u(flags, 2) + _u(len(body), 4) + _u(sequence, 4) + _u(device_ns, 8)
    header += _u(sensor, 2) + _u(n, 2) + _u(mask, 4) + np.float32(spacing).tobytes()
    return header + _u(binascii.crc32(body), 4) + body


class ShapeEmulator:
    """Serves given frames."""

    def __init__(self, port: int = 0) -> None:
        self.faults = Faults()
        self._server = StreamServer(port)
        self._sequence = 0
        self._start_ns = 0

    @property
    def port(self) -> int:
        """The TCP port."""
        return self._server.port

    def send(
        self,
        device_ns: int,
        s: Array,
        points: Array | None = None,
        bending: Array | None = None,
        twist: Array | None = None,
    ) -> None:
        """Send a sample at places s (n,) [m]: points (n, 3) [m], bending (n, 2) [1/m], twist (n,) [rad/m]."""
        if self.faults.restart:
            self.faults.restart = False
            self._sequence, self._start_ns = 0, device_ns
            self._server.drop_clients()
        columns = {0: s}
        columns |= {bit: block for bit, block in ((1, points), (3, bending), (4, twist)) if block is not None}
        clock_ns = device_ns - self._start_ns + round(self.faults.clock_jump_s * 1e9)
        valid = 'fiber' not in self.faults.untracked
        packet = encode_frame(self._sequence, max(clock_ns, 0), columns, flags=int(valid))
        self._sequence = (self._sequence + 1) % 2**32
        for data in self.faults.apply(packet):
            self._server.send(data)

    def close(self) -> None:
        """Stop serving."""
        self._server.close()


def _u(value: int, size: int) -> bytes:
    return value.to_bytes(size, 'little')
