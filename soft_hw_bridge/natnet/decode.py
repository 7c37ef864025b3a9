"""Decode NatNet messages; the only error is MalformedPacket.

A section of a frame is a count and a body. Since 4.1 the byte length of the body follows the count, so a decoder can
skip a section; before 4.1 it must walk through the entries.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np

from soft_dynamics.errors import one_line
from soft_hw_bridge.errors import MalformedPacket
from soft_hw_bridge.link.byte_cursor import Reader
from soft_hw_bridge.natnet.messages import MARKER, NEWEST, Frame, RigidBody, ServerInfo, Version

_HEADER = struct.Struct('<HH')
_RESULT_CODE = struct.Struct('<i')
_SERVER_INFO = struct.Struct('<256s4B4BQH?4B')
_ECHO = struct.Struct('<QQ')
_COUNT_AND_SIZE = struct.Struct('<ii')
_RIGID_BODY = struct.Struct('<i3f4ffh')
_SUFFIX_30 = struct.Struct('<4x4xdQ8xQhi')  # x: timecode, sub-frame; data received
_SUFFIX_41 = struct.Struct('<4x4xdQ8xQ4x4xhi')  # x: also the precision timestamp
_POSITION_BYTES = 12
MOST_BODIES = 1000  # MAX_RIGIDBODIES of the SDK
_LONGEST_NAME = 100  # characters; a topic name has at most 255


def split(packet: bytes) -> tuple[int, bytes]:
    """Return message id and payload; some senders append bytes to it."""
    message_id, size = Reader(packet).unpack(_HEADER)
    payload = packet[_HEADER.size : _HEADER.size + size]
    if len(payload) < size:
        raise MalformedPacket(f'payload has {len(payload)} bytes, the header says {size}')
    return message_id, payload


def server_info(payload: bytes) -> ServerInfo:
    name, *values = Reader(payload).unpack(_SERVER_INFO)
    tick_hz, data_port, is_multicast = values[8:11]
    return ServerInfo(
        name=_text(name),
        app_version='.'.join(map(str, values[0:4])),
        version=(values[4], values[5]),
        tick_hz=tick_hz,
        data_port=data_port,
        is_multicast=is_multicast,
        group='.'.join(map(str, values[11:15])),
    )


def echo_response(payload: bytes) -> tuple[int, int]:
    """Return the stamp of the request and the server's ticks."""
    stamp, ticks = Reader(payload).unpack(_ECHO)
    return stamp, ticks


def response(payload: bytes) -> int | str:
    """Return the result code (0: done) or the text that answers a request."""
    if len(payload) == _RESULT_CODE.size:
        code: int = _RESULT_CODE.unpack(payload)[0]
        return code
    return _text(payload)


def frame(payload: bytes, version: Version) -> Frame:
    """Return a frame of mocap data.

    In a version newer than NEWEST, entries may be longer and new sections may follow the known ones.
    """
    reader = Reader(payload)
    number = reader.i32()
    is_sized = version >= (4, 1)
    _section(reader, is_sized, _walk_marker_sets)
    _section(reader, is_sized, _walk_unlabelled)
    bodies = _section(reader, is_sized, _walk_rigid_bodies)
    _section(reader, is_sized, _walk_skeletons)
    if is_sized:
        _section(reader, is_sized, _walk_nothing)  # assets, new in 4.1
    markers = _section(reader, is_sized, _walk_markers)
    _section(reader, is_sized, _walk_analog)  # force plates
    _section(reader, is_sized, _walk_analog)  # other devices
    suffix = _SUFFIX_41 if is_sized else _SUFFIX_30
    if version > NEWEST:
        reader.skip(reader.remaining - suffix.size)
    timestamp_s, mid_exposure, transmit, params, end = reader.unpack(suffix)
    if end or reader.remaining:
        raise MalformedPacket(f'frame {number} does not parse as version {version[0]}.{version[1]}')
    return Frame(
        number=number,
        bodies=_rigid_bodies(_entries(*bodies, _RIGID_BODY.size, version)),
        markers=np.frombuffer(_entries(*markers, MARKER.itemsize, version), MARKER),
        timestamp_s=timestamp_s,
        mid_exposure_ticks=mid_exposure,
        transmit_ticks=transmit,
        params=params,
    )


def rigid_body_names(payload: bytes, version: Version) -> dict[int, str]:
    """Return the names of the rigid bodies by id, from the model definitions."""
    reader = Reader(payload)
    names: dict[int, str] = {}
    for _ in range(reader.i32()):
        kind = reader.i32()
        entry = Reader(reader.take(reader.i32())) if version >= (4, 1) else reader
        if kind == 1:
            name, body_id = _walk_rigid_body_definition(entry, version)
            is_name = name.isprintable() and len(name) <= _LONGEST_NAME
            names[body_id] = name if is_name else one_line(name, _LONGEST_NAME)
            if len(names) > MOST_BODIES:
                raise MalformedPacket(f'definitions of more than {MOST_BODIES} rigid bodies')
        elif version < (4, 1):
            _walk_definition(kind, entry, version)
    return names


def _text(raw: bytes) -> str:
    return raw.partition(b'\0')[0].decode('utf-8', errors='replace')


def _section(reader: Reader, is_sized: bool, walk: Callable[[Reader, int], None]) -> tuple[int, bytes]:
    """Return count and body of a section."""
    if is_sized:
        count, size = reader.unpack(_COUNT_AND_SIZE)
        return count, reader.take(size)
    count = reader.i32()
    start = reader.pos
    walk(reader, count)
    return count, reader.since(start)


def _entries(count: int, body: bytes, size: int, version: Version) -> bytes:
    """Return the first `size` bytes of each entry, all of it in a known version."""
    if len(body) == count * size:
        return body
    stride = len(body) // max(count, 1)
    if version <= NEWEST or stride < size or stride * count != len(body):
        raise MalformedPacket(f'{count} entries of {size} bytes in {len(body)} bytes')
    return b''.join(body[start : start + size] for start in range(0, len(body), stride))


def _rigid_bodies(entries: bytes) -> tuple[RigidBody, ...]:
    bodies = []
    for body_id, x, y, z, qx, qy, qz, qw, mean_error, params in _RIGID_BODY.iter_unpack(entries):
        is_tracked = bool(params & 1)
        is_pose = abs(qx * qx + qy * qy + qz * qz + qw * qw - 1) < 0.01 and abs(x) + abs(y) + abs(z) < 1e6
        if is_tracked and not is_pose:
            raise MalformedPacket(f'rigid body {body_id} is tracked but has no valid pose')
        bodies.append(RigidBody(body_id, (x, y, z), (qx, qy, qz, qw), mean_error, is_tracked))
    return tuple(bodies)


def _walk_nothing(reader: Reader, count: int) -> None:
    """Do nothing: the section does not exist without a size."""


def _walk_marker_sets(reader: Reader, count: int) -> None:
    for _ in range(count):
        reader.text()
        reader.skip(_POSITION_BYTES * reader.i32())


def _walk_unlabelled(reader: Reader, count: int) -> None:
    reader.skip(_POSITION_BYTES * count)


def _walk_rigid_bodies(reader: Reader, count: int) -> None:
    reader.skip(_RIGID_BODY.size * count)


def _walk_skeletons(reader: Reader, count: int) -> None:
    for _ in range(count):
        reader.i32()
        _walk_rigid_bodies(reader, reader.i32())


def _walk_markers(reader: Reader, count: int) -> None:
    reader.skip(MARKER.itemsize * count)


def _walk_analog(reader: Reader, count: int) -> None:
    for _ in range(count):
        reader.i32()
        for _ in range(reader.i32()):
            reader.skip(4 * reader.i32())


def _walk_texts(reader: Reader) -> None:
    for _ in range(reader.i32()):
        reader.text()


def _walk_rigid_body_definition(reader: Reader, version: Version) -> tuple[str, int]:
    """Return name and id."""
    name, body_id = reader.text(), reader.i32()
    reader.skip(4 + _POSITION_BYTES)  # parent, offset
    if version >= (4, 2):
        reader.skip(16)  # orientation of the offset
    markers = reader.i32()
    reader.skip((_POSITION_BYTES + 4) * markers)  # position and label of each
    if version >= (4, 0):
        for _ in range(markers):
            reader.text()
    return name, body_id


def _walk_definition(kind: int, reader: Reader, version: Version) -> None:
    """Skip a definition of another kind, in a version before 4.1."""
    if kind == 0:  # marker set
        reader.text()
    elif kind == 2:  # skeleton
        reader.text()
        reader.i32()
        for _ in range(reader.i32()):
            _walk_rigid_body_definition(reader, version)
        return
    elif kind == 3:  # force plate: id, serial, then size, origin, calibration, corners and two types
        reader.i32()
        reader.text()
        reader.skip(4 * (2 + 3 + 144 + 12 + 2))
    elif kind == 4:  # device: id, name, serial, two types
        reader.i32()
        reader.text()
        reader.text()
        reader.skip(8)
    elif kind == 5:  # camera: name, position, orientation
        reader.text()
        reader.skip(4 * (3 + 4))
        return
    else:
        raise MalformedPacket(f'model definition of unknown kind {kind}')
    _walk_texts(reader)
