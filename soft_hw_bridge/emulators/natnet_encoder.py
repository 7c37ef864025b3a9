"""NatNet messages of Motive as bytes. Independent of the decoder, so that errors cannot cancel."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct, pack
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

    def section(count: int, entries: bytes = b'') -> bytes:
        return (pack('<2i', count, len(entries)) if has_sizes else pack('<i', count)) + entries

    marker_sets = rigid_bodies = markers = b''
    for marker_set, rigid_body, four_markers in map(_entries, bodies):
        marker_sets += marker_set
        rigid_bodies += rigid_body
        markers += four_markers
    n, none = len(bodies), section(0)
    payload = pack('<i', number)
    payload += section(n, marker_sets) + none  # unlabelled markers
    payload += section(n, rigid_bodies) + none + (none if has_sizes else b'')  # skeletons; assets
    payload += section(n * len(_MARKERS), markers) + none + none  # force plates, devices
    payload += pack('<2Id3Q', 0, 0, *times)
    if has_sizes:
        payload += pack('<2I', int(times.timestamp_s), 0)
    return packet(7, payload + pack('<hi', params, 0))


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
_MARKER_SET = Struct('<i12f')
_RIGID_BODY = Struct('<i8fh')
_FOUR_MARKERS = Struct('<' + 4 * 'i4fhf')


def _cstring(text: str) -> bytes:
    return text.encode() + b'\0'


def _entries(body: StreamedBody) -> tuple[bytes, bytes, bytes]:
    """Return the marker set, the rigid body and the labelled markers of a body."""
    number, name, (x, y, z), quaternion, is_tracked = body
    a, b, c, d = [(x + dx, y + dy, z + dz) for dx, dy, dz in _MARKERS]
    params = 0b1010 if is_tracked else 0b1001  # solved from rays, or occluded; part of a model
    k, rest = number << 16 | 1, (0.014, params, 3e-4)
    return (
        _cstring(name) + _MARKER_SET.pack(4, *a, *b, *c, *d),
        _RIGID_BODY.pack(number, x, y, z, *quaternion, 2e-4, is_tracked),
        _FOUR_MARKERS.pack(k, *a, *rest, k + 1, *b, *rest, k + 2, *c, *rest, k + 3, *d, *rest),
    )


def _rigid_body_definition(version: Version, body: StreamedBody) -> bytes:
    entry = _cstring(body.name) + pack('<ii3f', body.id, -1, 0.0, 0.0, 0.0)
    if version >= (4, 2):
        entry += pack('<4f', 0.0, 0.0, 0.0, 1.0)
    entry += pack('<i', len(_MARKERS)) + b''.join(pack('<3f', *marker) for marker in _MARKERS)
    entry += pack(f'<{len(_MARKERS)}i', *range(1, len(_MARKERS) + 1))
    if version >= (4, 0):
        entry += b''.join(_cstring(f'Marker {k}') for k in range(1, len(_MARKERS) + 1))
    return entry
