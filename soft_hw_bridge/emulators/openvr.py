"""Emulated SteamVR.

The real one has no open protocol: its clients load a library. This one sends the state of all devices to each client
that says hello to its UDP port; `openvr_module` replaces the package `openvr` in the client.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import time
import zlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from soft_dynamics.geometry.quaternion import to_rotation
from soft_hw_bridge.emulators.faults import Faults
from soft_hw_bridge.emulators.pose import Pose

HELLO = b'hello'
MAX_DATAGRAM = 65535
_CLIENT_TIMEOUT_S = 2.0
_MOST_REQUESTS = 100  # handled in a row before the next poses
_MOST_CLIENTS = 32
_CHECKSUM = struct.Struct('<I')  # of the following bytes
_DEVICE = struct.Struct('<BBH??16s12f')
_HMD, _TRACKER, _BASE_STATION = 1, 3, 4  # device classes
_RUNNING_OK, _OUT_OF_RANGE = 200, 201  # tracking results


class VrDevice(NamedTuple):
    slot: int  # device index of OpenVR
    device_class: int
    result: int
    is_valid: bool
    is_connected: bool
    serial: str
    matrix: tuple[float, ...]  # three rows of four in the standing universe: x right, y up, z back


def encode(devices: Sequence[VrDevice]) -> bytes:
    """Return the state of all devices as bytes; no devices means that SteamVR quits."""
    body = b''.join(_DEVICE.pack(*device[:5], device.serial.encode(), *device.matrix) for device in devices)
    return _CHECKSUM.pack(zlib.crc32(body)) + body


def decode(packet: bytes) -> list[VrDevice] | None:
    """Return the devices; None if the packet is damaged."""
    body = packet[_CHECKSUM.size :]
    if packet[: _CHECKSUM.size] != _CHECKSUM.pack(zlib.crc32(body)) or len(body) % _DEVICE.size:
        return None
    return [_device(*values) for values in _DEVICE.iter_unpack(body)]


def _device(
    slot: int, kind: int, result: int, is_valid: bool, is_connected: bool, serial: bytes, *matrix: float
) -> VrDevice:
    text = serial.rstrip(b'\0').decode(errors='replace')
    return VrDevice(slot, kind, result, is_valid, is_connected, text, matrix)


class OpenVrEmulator:
    """Accepts clients in `serve` and sends them all poses in `send`; call both from one loop."""

    def __init__(
        self,
        serials: Sequence[str],
        address: str = '127.0.0.1',
        port: int = 0,
        faults: Faults | None = None,
    ) -> None:
        self.faults = faults or Faults()
        self._serials = list(serials)
        self._clients: dict[tuple[str, int], float] = {}
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((address, port))
        self.port: int = self._socket.getsockname()[1]

    def close(self) -> None:
        self._socket.close()

    def serve(self, timeout: float = 0.0) -> None:
        """Listen for clients until the timeout."""
        end = time.monotonic() + timeout
        for _ in range(_MOST_REQUESTS):
            if not select.select([self._socket], [], [], max(end - time.monotonic(), 0.0))[0]:
                return
            _, client = self._socket.recvfrom(MAX_DATAGRAM)
            if client in self._clients or len(self._clients) < _MOST_CLIENTS:
                self._clients[client] = time.monotonic()

    def send(self, poses: Mapping[str, Pose]) -> None:
        """Send the poses by serial number; a tracker without a pose is switched off."""
        if self.faults.restart:
            self.faults.restart = False
            self._restart()
        t = time.monotonic()
        self._clients = {
            client: heard for client, heard in self._clients.items() if t - heard < _CLIENT_TIMEOUT_S
        }
        devices = list(_FURNITURE)
        for serial in self._serials:
            devices.append(self._tracker(len(devices), serial, poses.get(serial)))
        for packet in self.faults.apply(encode(devices)):
            self._send(packet)

    def _restart(self) -> None:
        """Quit; the trackers return with other indices."""
        self._send(encode([]))
        self._clients = {}
        self._serials.append(self._serials.pop(0))

    def _send(self, packet: bytes) -> None:
        for client in self._clients:
            with contextlib.suppress(OSError):  # a client that is gone
                self._socket.sendto(packet, client)

    def _tracker(self, slot: int, serial: str, pose: Pose | None) -> VrDevice:
        if pose is None:
            return VrDevice(slot, _TRACKER, _OUT_OF_RANGE, False, False, serial, (0.0,) * 12)
        is_tracked = serial not in self.faults.untracked
        result = _RUNNING_OK if is_tracked else _OUT_OF_RANGE
        return VrDevice(slot, _TRACKER, result, is_tracked, True, serial, _matrix(pose))


def _matrix(pose: Pose) -> tuple[float, ...]:
    (forward, left, up), (qx, qy, qz, qw) = pose
    R_VT = to_rotation((-qy, qz, -qx, qw)).tolist()
    return (*R_VT[0], -left, *R_VT[1], up, *R_VT[2], -forward)


_FURNITURE = (  # devices that are not trackers
    VrDevice(0, _HMD, _RUNNING_OK, True, True, 'HMD', _matrix(Pose((0, 0, 1.7), (0, 0, 0, 1)))),
    VrDevice(1, _BASE_STATION, _RUNNING_OK, True, True, 'LHB', _matrix(Pose((2, 2, 2), (0, 0, 0, 1)))),
)
