"""Bytes as Motive puts them on the wire. Shares nothing with the decoder, so that mistakes cannot cancel."""

from __future__ import annotations

from collections.abc import Sequence
from struct import pack
from typing import NamedTuple

Version = tuple[int, int]


class StreamedBody(NamedTuple):
    """A rigid body in the axes of the stream."""

    id: int
    name: str
    position: tuple[float, float, float]
    quaternion: tuple[float, float, float, float]  # x, y, z, w
    is_tracked: bool


class FrameTimes(NamedTuple):
    timestamp_s: float
    mid_exposure_ticks: int
    received_ticks: int
    transmit_ticks: int


def packet(message_id: int, payload: bytes = b'') -> bytes:
    return pack('<2H', message_id, len(payload)) + payload


def server_info(version: Version, tick_hz: int, data_port: int, is_multicast: bool, group: str) -> bytes:
    payload = (
        b'Motive'.ljust(256, b'\0') + bytes([2 if version < (4, 0) else 3, 0, 0, 0]) + bytes([*version, 0, 0])
    )
    payload += pack('<QHB', tick_hz, data_port, is_multicast) + bytes(map(int, group.split('.')))
    return packet(1, payload)


def echo_response(stamp: bytes, ticks: int) -> bytes:
    return packet(13, stamp + pack('<Q', ticks))


def frame(
    version: Version, number: int, bodies: Sequence[StreamedBody], times: FrameTimes, params: int
) -> bytes:
    """Return a frame with a marker set and four labelled markers for each body."""
    has_sizes = version >= (4, 1)

    def section(entries: Sequence[bytes]) -> bytes:
        body = b''.join(entries)
        return pack('<i', len(entries)) + (pack('<i', len(body)) if has_sizes else b'') + body

    positions = [_marker_positions(body) for body in bodies]
    marker_sets = [_marker_set(*each) for each in zip(bodies, positions, strict=True)]
    markers = [marker for each in zip(bodies, positions, strict=True) for marker in _labelled_markers(*each)]
    sections = [
        marker_sets,
        [],
        [_rigid_body(body) for body in bodies],
        [],
    ]  # [1]: unlabelled, [3]: skeletons
    sections += [[], markers, [], []] if has_sizes else [markers, [], []]  # assets; force plates, devices
    suffix = pack('<2I', 0, 0) + pack('<d3Q', *times)
    if has_sizes:
        suffix += pack('<2I', int(times.timestamp_s), 0)
    suffix += pack('<h', params) + pack('<i', 0)
    return packet(7, pack('<i', number) + b''.join(map(section, sections)) + suffix)


def model_definitions(version: Version, bodies: Sequence[StreamedBody]) -> bytes:
    """Return the marker set and the rigid body of each name."""
    entries = []
    for body in bodies:
        entries.append(
            (0, _cstring(body.name) + pack('<i', 4) + b''.join(_cstring(f'Marker{k}') for k in range(4)))
        )
        entries.append((1, _rigid_body_definition(version, body)))
    payload = pack('<i', len(entries))
    for kind, entry in entries:
        payload += pack('<i', kind) + (pack('<i', len(entry)) if version >= (4, 1) else b'') + entry
    return packet(5, payload)


_MARKERS = (
    (0.04, 0.0, 0.0),
    (-0.04, 0.0, 0.0),
    (0.0, 0.0, 0.05),
    (0.0, 0.03, 0.0),
)  # [m] from the body's origin


def _cstring(text: str) -> bytes:
    return text.encode() + b'\0'


def _marker_positions(body: StreamedBody) -> list[tuple[float, ...]]:
    x, y, z = body.position
    return [(x + dx, y + dy, z + dz) for dx, dy, dz in _MARKERS]


def _marker_set(body: StreamedBody, positions: Sequence[tuple[float, ...]]) -> bytes:
    coordinates = [coordinate for position in positions for coordinate in position]
    return _cstring(body.name) + pack(f'<i{len(coordinates)}f', len(positions), *coordinates)


def _rigid_body(body: StreamedBody) -> bytes:
    return (
        pack('<i', body.id)
        + pack('<7f', *body.position, *body.quaternion)
        + pack('<fh', 2e-4, body.is_tracked)
    )


def _labelled_markers(body: StreamedBody, positions: Sequence[tuple[float, ...]]) -> list[bytes]:
    params = 0b1010 if body.is_tracked else 0b1001  # solved from rays, or occluded; of a model
    return [
        pack('<i4fhf', body.id << 16 | number, *position, 0.014, params, 3e-4)
        for number, position in enumerate(positions, start=1)
    ]


def _rigid_body_definition(version: Version, body: StreamedBody) -> bytes:
    entry = _cstring(body.name) + pack('<ii3f', body.id, -1, 0.0, 0.0, 0.0)
    if version >= (4, 2):
        entry += pack('<4f', 0.0, 0.0, 0.0, 1.0)
    entry += pack('<i', len(_MARKERS)) + b''.join(pack('<3f', *marker) for marker in _MARKERS)
    entry += pack(f'<{len(_MARKERS)}i', *range(1, len(_MARKERS) + 1))
    if version >= (4, 0):
        entry += b''.join(_cstring(f'Marker {k}') for k in range(1, len(_MARKERS) + 1))
    return entry
