"""Decoded messages of Motive, and encoded requests of a client."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Version = tuple[int, int]
NEWEST: Version = (4, 2)  # newest bitstream with a known layout


class MessageId(IntEnum):
    CONNECT = 0
    SERVER_INFO = 1
    REQUEST = 2
    RESPONSE = 3
    REQUEST_MODEL_DEFINITIONS = 4
    MODEL_DEFINITIONS = 5
    FRAME = 7
    DISCONNECT = 9
    KEEP_ALIVE = 10
    ECHO_REQUEST = 12
    ECHO_RESPONSE = 13


class ServerInfo(NamedTuple):
    name: str
    app_version: str
    version: Version  # of NatNet
    tick_hz: int
    data_port: int
    is_multicast: bool
    group: str  # multicast address


class RigidBody(NamedTuple):
    """A pose in the tracking frame W, with the up axis of Motive's settings (y by default)."""

    id: int
    p_WB: tuple[float, float, float]  # [m]
    quat_WB: tuple[float, float, float, float]  # x, y, z, w
    mean_error: float  # of the markers [m]
    is_tracked: bool

    def y_up_to_z_up(self) -> RigidBody:
        """Rotate world and body axes by 90 degrees about x, so that y becomes z."""
        (x, y, z), (qx, qy, qz, qw) = self.p_WB, self.quat_WB
        return RigidBody(self.id, (x, -z, y), (qx, -qz, qy, qw), self.mean_error, self.is_tracked)


MARKER = np.dtype(
    [('id', '<i4'), ('p_WM', '<f4', 3), ('size', '<f4'), ('params', '<i2'), ('residual', '<f4')]
)  # params bit 0: occluded; residual [m per ray]


class Frame(NamedTuple):
    number: int
    bodies: tuple[RigidBody, ...]
    markers: NDArray[Any]  # labelled markers, dtype MARKER
    timestamp_s: float  # since Motive started
    mid_exposure_ticks: int  # 0: unknown
    transmit_ticks: int
    params: int

    @property
    def is_model_list_changed(self) -> bool:
        return bool(self.params & 2)

    @property
    def is_bitstream_changed(self) -> bool:
        return bool(self.params & 8)


def connect(application: str, bitstream: Version) -> bytes:
    """Request the description of the server and, in unicast, frames in a bitstream version."""
    versions = (1, 0, 0, 0, *NEWEST, 0, 0)  # of the application and of NatNet
    payload = struct.pack('<256s8B?4B', application.encode(), *versions, False, *bitstream, 0, 0)
    return _packet(MessageId.CONNECT, payload)


def request(command: str) -> bytes:
    return _packet(MessageId.REQUEST, command.encode() + b'\0')


def request_model_definitions() -> bytes:
    return _packet(MessageId.REQUEST_MODEL_DEFINITIONS)


def keep_alive() -> bytes:
    return _packet(MessageId.KEEP_ALIVE)


def disconnect() -> bytes:
    return _packet(MessageId.DISCONNECT)


def echo_request(stamp: int) -> bytes:
    return _packet(MessageId.ECHO_REQUEST, struct.pack('<Q', stamp))


def _packet(message_id: MessageId, payload: bytes = b'') -> bytes:
    return struct.pack('<HH', message_id, len(payload)) + payload
