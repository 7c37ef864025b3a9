"""Emulated Motive."""

from __future__ import annotations

import contextlib
import re
import select
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from struct import pack

from soft_hw_bridge.emulators import natnet_encoder as encode
from soft_hw_bridge.emulators.faults import Faults
from soft_hw_bridge.emulators.natnet_encoder import FrameTimes, StreamedBody, Version
from soft_hw_bridge.emulators.pose import Pose

_NS = 1_000_000_000
_MAX_DATAGRAM = 65535
_MOST_REQUESTS = 100  # answered in a row before the next frame
_MOST_CLIENTS = 32
_VALUES = {
    'FrameRate': pack('<f', 120.0),
    'UnitsToMillimeters': pack('<f', 1000.0),
    'CurrentMode': pack('<i', 0),
}
_Address = tuple[str, int]


@dataclass(frozen=True)
class MotiveSettings:
    """Settings of Motive's streaming pane, and properties of its computer."""

    version: Version = (4, 1)  # of NatNet
    is_multicast: bool = False
    up_axis: str = 'y'
    address: str = '127.0.0.1'
    command_port: int = 0  # 0: any free port
    data_port: int = 0  # of multicast frames; 0: any free port
    group: str = '239.255.42.99'
    unicast_port: int | None = None  # destination of unicast frames; None: the port of the CONNECT request
    tick_hz: int = 10_000_000
    clock_offset_s: float = 3600.0
    clock_drift_ppm: float = 0.0
    processing_s: float = 0.004  # from mid-exposure to sending
    client_timeout_s: float = 10.0  # a unicast client is dropped after this silence


@dataclass
class _Client:
    version: Version
    heard_ns: int


class NatNetEmulator:
    """Answers commands in `serve` and sends a frame in `send`; call both from one loop."""

    def __init__(
        self,
        names: Sequence[str],
        settings: MotiveSettings | None = None,
        faults: Faults | None = None,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.settings = settings or MotiveSettings()
        self.faults = faults or Faults()
        self._now_ns = now_ns
        self._names = list(names)
        self._is_list_changed = False  # the next frame announces it
        self._command_socket = _bound(self.settings.address, self.settings.command_port)
        self._data_socket = _bound(
            self.settings.address, self.settings.data_port, is_shared=True
        )  # by client
        local = socket.inet_aton(self.settings.address)
        self._data_socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, local)
        self.command_port: int = self._command_socket.getsockname()[1]
        self.data_port: int = self._data_socket.getsockname()[1]
        self._start()

    def close(self) -> None:
        self._command_socket.close()
        self._data_socket.close()

    def rename(self, names: Sequence[str]) -> None:
        """Change the list of bodies; the next frame announces it."""
        self._names = list(names)
        self._is_list_changed = True

    def serve(self, timeout: float = 0.0) -> None:
        """Answer commands until the timeout, and all that have arrived unless there are too many."""
        end = time.monotonic() + timeout
        for _ in range(_MOST_REQUESTS):
            if not select.select([self._command_socket], [], [], max(end - time.monotonic(), 0.0))[0]:
                return
            packet, client = self._command_socket.recvfrom(_MAX_DATAGRAM)
            answer = self._answer(packet, client)
            if answer and not self.faults.silent:
                with contextlib.suppress(OSError):  # a client that is gone
                    self._command_socket.sendto(answer, client)

    def send(self, poses: Mapping[str, Pose], exposure_ns: int | None = None) -> None:
        """Send a frame of poses exposed at a host time (default: the processing time ago)."""
        if self.faults.restart:
            self.faults.restart = False
            self._start()
        now_ns = self._now_ns()
        if exposure_ns is None:
            exposure_ns = now_ns - round(self.settings.processing_s * _NS)
        mid_exposure, transmit = self._ticks(exposure_ns), self._ticks(now_ns)
        times = FrameTimes(
            (now_ns - self._start_ns) / _NS, mid_exposure, (mid_exposure + transmit) // 2, transmit
        )
        params = 2 if self._is_list_changed else 0
        self._is_list_changed = False  # before reading the names: another thread may call `rename`
        bodies = [self._streamed(k, name, poses.get(name)) for k, name in enumerate(self._names, start=1)]
        self._number += 1
        for version, destinations in self._destinations(now_ns).items():
            frame = encode.frame(version, self._number, bodies, times, params)
            for packet in self.faults.apply(frame):
                for destination in destinations:
                    with contextlib.suppress(OSError):
                        self._data_socket.sendto(packet, destination)

    def _start(self) -> None:
        self._start_ns = self._now_ns()
        self._number = 0
        self._is_list_changed = False
        self._clients: dict[_Address, _Client] = {}

    def _ticks(self, host_ns: int) -> int:
        since_ns = host_ns - self._start_ns
        offset_s = self.settings.clock_offset_s + self.faults.clock_jump_s
        device_ns = since_ns + round(since_ns * self.settings.clock_drift_ppm * 1e-6) + round(offset_s * _NS)
        return max(device_ns, 0) * self.settings.tick_hz // _NS

    def _streamed(self, body_id: int, name: str, pose: Pose | None) -> StreamedBody:
        is_tracked = pose is not None and name not in self.faults.untracked
        if pose is None or not is_tracked:
            return StreamedBody(body_id, name, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0), False)
        (x, y, z), (qx, qy, qz, qw) = pose
        if self.settings.up_axis == 'z':
            return StreamedBody(body_id, name, (x, y, z), (qx, qy, qz, qw), True)
        return StreamedBody(body_id, name, (x, z, -y), (qx, qz, -qy, qw), True)

    def _destinations(self, now_ns: int) -> dict[Version, list[_Address]]:
        settings = self.settings
        if settings.is_multicast:
            return {settings.version: [(settings.group, self.data_port)]}
        timeout_ns = settings.client_timeout_s * _NS
        self._clients = {a: c for a, c in self._clients.items() if now_ns - c.heard_ns < timeout_ns}
        destinations: dict[Version, list[_Address]] = {}
        for (host, port), client in self._clients.items():
            destinations.setdefault(client.version, []).append((host, settings.unicast_port or port))
        return destinations

    def _answer(self, packet: bytes, address: _Address) -> bytes | None:
        message_id = int.from_bytes(packet[:2], 'little')
        client = self._clients.get(address)
        if client:
            client.heard_ns = self._now_ns()
        if message_id in (0, 14):  # connect, discovery
            if not client and len(self._clients) >= _MOST_CLIENTS:
                return None
            self._clients[address] = _Client(self._agreed_version(packet[4 + 265 : 4 + 267]), self._now_ns())
            settings = self.settings
            return encode.server_info(
                settings.version, settings.tick_hz, self.data_port, settings.is_multicast, settings.group
            )
        if message_id == 2:  # request
            return self._response(packet[4:].partition(b'\0')[0].decode(errors='replace'), client)
        if message_id == 4:  # request of model definitions
            bodies = [self._streamed(k, name, None) for k, name in enumerate(self._names, start=1)]
            return encode.model_definitions(client.version if client else self.settings.version, bodies)
        if message_id == 9:  # disconnect
            self._clients.pop(address, None)
        elif message_id == 12 and len(packet) >= 12:  # echo
            return encode.echo_response(packet[4:12], self._ticks(self._now_ns()))
        return None

    def _response(self, command: str, client: _Client | None) -> bytes:
        if command in _VALUES:
            return encode.packet(3, _VALUES[command])
        name, _, argument = command.partition(',')
        if name != 'Bitstream' or client is None:
            return encode.packet(100)
        if not argument:
            major, minor = client.version
            return encode.packet(3, f'Bitstream,{major}.{minor}\0'.encode())
        match = re.match(r'(\d)\.(\d)(?!\d)', argument, re.ASCII)
        wanted = bytes(map(int, match.groups())) if match else b''
        agreed = self._agreed_version(wanted)
        is_refused = agreed != tuple(wanted)
        if not is_refused:
            client.version = agreed
        return encode.packet(3, pack('<i', is_refused))

    def _agreed_version(self, wanted: bytes) -> Version:
        """Motive 3 lets unicast clients choose an older bitstream; zeros or an empty request select its own."""
        own = self.settings.version
        if self.settings.is_multicast or own < (4, 0) or len(wanted) < 2 or wanted[0] < 3:
            return own
        return min((wanted[0], wanted[1]), own)


def _bound(address: str, port: int, is_shared: bool = False) -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, is_shared)
    try:
        bound.bind((address, port))
    except OSError as error:
        bound.close()
        raise OSError(f'cannot bind to {address}:{port}: {error.strerror}') from error
    bound.setblocking(False)
    return bound
