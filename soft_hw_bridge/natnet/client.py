"""Connection to Motive: handshake, keep-alive, body names, clock and automatic recovery."""

from __future__ import annotations

import random
import re
import select
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from soft_hw_bridge.errors import UNREADABLE, DeviceError
from soft_hw_bridge.link.device_clock import DeviceClock, ticks_to_ns
from soft_hw_bridge.link.host_lookup import Host
from soft_hw_bridge.link.stream_health import StreamHealth
from soft_hw_bridge.link.udp_timestamps import receive, stamp_arrivals
from soft_hw_bridge.natnet import decode, messages
from soft_hw_bridge.natnet.messages import NEWEST, Frame, MessageId, ServerInfo, Version

_APPLICATION = 'soft_hw_bridge'
_CHOSEN: Version = (4, 1)  # bitstream to request if Motive offers a choice
_MAX_DATAGRAM = 65535
_RECEIVE_BUFFER = 1 << 20  # bytes; holds packets while the computer is busy


@dataclass(frozen=True)
class NatNetConfig:
    """Address of Motive. The client learns transport, data port and version from Motive."""

    server: str = field(
        default='192.168.1.2', metadata={'doc': 'host name or address of the Motive computer'}
    )
    interface: str = field(
        default='0.0.0.0', metadata={'doc': 'address of this computer in the camera network; 0.0.0.0: any'}
    )
    command_port: int = field(default=1510, metadata={'doc': 'UDP command port of Motive'})
    stale_after: float = field(
        default=0.5, metadata={'doc': 'reconnect after this time without a frame', 'unit': 's'}
    )

    def __post_init__(self) -> None:
        if not 0 < self.command_port < 65536:
            raise ValueError(f'command_port must be in 1..65535, got {self.command_port}')
        if not self.stale_after > 0:
            raise ValueError(f'stale_after must be > 0, got {self.stale_after}')


class Sample(NamedTuple):
    """A new frame; `stamp_ns` is the host time of its exposure."""

    stamp_ns: int
    receive_ns: int
    frame: Frame


class NatNetClient:
    """Client of one Motive. Call `poll` in a loop; `names` maps the ids of bodies to names.

    now_ns: the host clock that stamps the samples.
    """

    RETRY_S = 0.5
    ECHO_S = 0.25
    KEEP_ALIVE_S = 1.0
    POLL_S = 0.1  # a longer wait would delay the echoes
    POLL_PACKETS = 256

    def __init__(self, config: NatNetConfig, now_ns: Callable[[], int] = time.time_ns) -> None:
        self.health = StreamHealth()
        self.clock = DeviceClock()
        self.info: ServerInfo | None = None
        self.version: Version = NEWEST  # of the frames
        self.names: dict[int, str] = {}
        self._config = config
        self._now_ns = now_ns
        self._server = Host(config.server)
        self._socket = _udp_socket(config.interface, 0)
        self._data_socket: socket.socket | None = None
        self._heard_t = float('-inf')
        self._send_error = self._join_error = ''
        self._echo_stamp = 0
        self._wants_info = self._wants_version = self._wants_names = True
        self._doubts_names = False  # a lost frame may have announced new ones
        self._connect, self._ask_version, self._ask_names = (_Timer(self.RETRY_S) for _ in range(3))
        self._echo, self._keep_alive = _Timer(self.ECHO_S), _Timer(self.KEEP_ALIVE_S)

    def close(self) -> None:
        self._send(messages.disconnect())
        self._socket.close()
        self._close_data_socket()

    @property
    def problem(self) -> str:
        """Why no frames arrive, in one line; empty while they do."""
        t, config = time.monotonic(), self._config
        if self.health.age(t) < config.stale_after:
            return ''
        if lost := self._server.error or self._send_error or self._join_error:
            return lost
        if t - self._heard_t < config.stale_after:
            return f'Motive at {config.server} answers but sends no new frames: is it live and streaming?'
        return f'no answer from {config.server}:{config.command_port} to {self._socket.getsockname()[0]}'

    @property
    def warning(self) -> str:
        """What may be wrong with arriving frames, in one line."""
        if self.version > NEWEST:
            return (
                f'NatNet {_dotted(self.version)} is newer than {_dotted(NEWEST)}: unknown parts are skipped'
            )
        return 'some body names are still unknown' if self._wants_names else ''

    def poll(self, timeout: float) -> list[Sample]:
        """Return the new frames; wait for a packet until the timeout or POLL_S."""
        self._send_due(time.monotonic())
        sockets = [self._socket, self._data_socket] if self._data_socket else [self._socket]
        ready, _, _ = select.select(sockets, [], [], min(timeout, self.POLL_S))
        return [sample for each in ready for sample in self._drain(each)]

    def _drain(self, ready: socket.socket) -> list[Sample]:
        samples = []
        for _ in range(self.POLL_PACKETS):
            try:
                packet, (sender, _), receive_ns = receive(ready, _MAX_DATAGRAM, self._now_ns)
            except OSError:  # empty, or replaced by a new socket
                break
            if sender != self._server.address:
                self.health.foreign += 1
                continue
            try:
                sample = self._receive(packet, receive_ns)
            except UNREADABLE:
                self.health.malformed += 1
                self._wants_info = True  # the version may have changed
            else:
                if sample:
                    samples.append(sample)
        return samples

    def _receive(self, packet: bytes, receive_ns: int) -> Sample | None:
        message_id, payload = decode.split(packet)
        self._heard_t = time.monotonic()
        if message_id == MessageId.FRAME:
            return self._on_frame(decode.frame(payload, self.version), receive_ns) if self.info else None
        if message_id == MessageId.SERVER_INFO:
            self._on_info(decode.server_info(payload))
        elif message_id == MessageId.MODEL_DEFINITIONS:
            self.names = decode.rigid_body_names(payload, self.version)
            self._wants_names = self._doubts_names = False
        elif message_id == MessageId.ECHO_RESPONSE:
            self._on_echo(*decode.echo_response(payload), receive_ns)
        elif message_id == MessageId.RESPONSE:
            self._on_response(decode.response(payload))
        return None

    def _on_frame(self, frame: Frame, receive_ns: int) -> Sample | None:
        t, restarts, lost = time.monotonic(), self.health.restarts, self.health.lost
        age = self.health.age(t)
        if not self.health.arrived(t, frame.number):
            return None
        if self._config.stale_after < age < float('inf'):
            self.health.reconnects += 1
            self.clock.forget()
        if frame.is_model_list_changed or self.health.restarts > restarts:
            self._forget_names()
        elif any(body.id not in self.names for body in frame.bodies):
            self._wants_names = True
        self._doubts_names |= self.health.lost > lost
        self._wants_info |= frame.is_bitstream_changed
        return Sample(self._stamp_ns(frame, receive_ns), receive_ns, frame)

    def _stamp_ns(self, frame: Frame, receive_ns: int) -> int:
        if not self._tick_hz or not frame.transmit_ticks:
            return receive_ns
        sent_ns = ticks_to_ns(frame.transmit_ticks, self._tick_hz)
        seen_ns = ticks_to_ns(frame.mid_exposure_ticks or frame.transmit_ticks, self._tick_hz)
        return self.clock.feed(sent_ns, receive_ns, seen_ns)

    @property
    def _tick_hz(self) -> int:
        return self.info.tick_hz if self.info else 0

    def _on_info(self, info: ServerInfo) -> None:
        if info.tick_hz != self._tick_hz:
            self.clock = DeviceClock()
        if info != self.info or not self._data_socket:
            self._open_data_socket(info.group if info.is_multicast else None, info.data_port)
        self.info = info
        self._wants_info = False
        self._wants_version = not info.is_multicast and info.version >= (4, 0)
        self.version = min(info.version, _CHOSEN) if self._wants_version else info.version
        self._forget_names()

    def _on_echo(self, stamp: int, ticks: int, receive_ns: int) -> None:
        if self._tick_hz and stamp == self._echo_stamp:
            self.clock.feed_round_trip(stamp, ticks_to_ns(ticks, self._tick_hz), receive_ns)

    def _on_response(self, answer: int | str) -> None:
        match = re.fullmatch(r'Bitstream,(\d{1,3})\.(\d{1,3})(\.\d{1,3}){0,2}', str(answer), re.ASCII)
        if match:
            self.version = int(match[1]), int(match[2])
            self._wants_version = False

    def _forget_names(self) -> None:
        """Stop publishing under names that may belong to other bodies now."""
        if self.names:
            self._ask_names = _Timer(self.RETRY_S)  # at once
        self.names = {}
        self._wants_names = True

    def _send_due(self, t: float) -> None:
        is_stale = self.health.age(t) > self._config.stale_after
        if (self._wants_info or is_stale) and self._server.is_known(t) and self._connect.is_due(t):
            self._send(messages.connect(_APPLICATION, _CHOSEN))
        if not self.info:
            return
        if self._wants_version and self._ask_version.is_due(t):
            self._send(messages.request('Bitstream'))
        if (self._wants_names or self._doubts_names) and self._ask_names.is_due(t):
            self._send(messages.request_model_definitions())
        if self._echo.is_due(t):
            self._echo_stamp = self._now_ns()
            self._send(messages.echo_request(self._echo_stamp))
        if not self.info.is_multicast and self._keep_alive.is_due(t):
            self._send(messages.keep_alive())

    def _send(self, packet: bytes) -> None:
        if not self._server.address:
            return
        try:
            self._socket.sendto(packet, (self._server.address, self._config.command_port))
            self._send_error = ''
        except OSError as error:
            self._send_error = f'cannot send to {self._config.server}: {error.strerror}'

    def _open_data_socket(self, group: str | None, port: int) -> None:
        """Join the group. A unicast server may send to its data port instead of the port of our request."""
        self._close_data_socket()
        interface = self._config.interface
        self._join_error = ''
        try:
            self._data_socket = _udp_socket(group or interface, port, is_shared=bool(group))
            if group:
                membership = socket.inet_aton(group) + socket.inet_aton(interface)
                self._data_socket.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
        except OSError as error:
            self._close_data_socket()
            if group:
                self._join_error = f'cannot join {group} on interface {interface}: {error.strerror or error}'

    def _close_data_socket(self) -> None:
        if self._data_socket:
            self._data_socket.close()
            self._data_socket = None


class _Timer:
    """Due at once, then once per period, with jitter to avoid beating with the frames."""

    def __init__(self, period: float) -> None:
        self._period = period
        self._next = 0.0

    def is_due(self, t: float) -> bool:
        if t < self._next:
            return False
        self._next = t + self._period * random.uniform(0.8, 1.0)
        return True


def _dotted(version: Version) -> str:
    return f'{version[0]}.{version[1]}'


def _udp_socket(address: str, port: int, is_shared: bool = False) -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, is_shared)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        bound.bind((address, port))
        bound.setblocking(False)
        stamp_arrivals(bound)
    except OSError as error:
        bound.close()
        raise DeviceError(f'cannot listen on {address}:{port}: {error.strerror}') from error
    return bound
