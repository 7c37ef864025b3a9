"""The decoder reads hand-made packets field by field, and survives any other bytes."""

import struct

import numpy as np
import pytest
from fuzz import damaged, fuzz_count, growth
from scipy.spatial.transform import Rotation

from soft_hw_bridge.emulators import natnet_encoder
from soft_hw_bridge.emulators.natnet_encoder import FrameTimes, StreamedBody
from soft_hw_bridge.errors import MalformedPacket
from soft_hw_bridge.natnet import decode, messages
from soft_hw_bridge.natnet.messages import RigidBody

VERSIONS = [(3, 0), (3, 1), (4, 0), (4, 1), (4, 2)]

ONE, TWO, HALF, MINUS_HALF, QUARTER, ZERO = (
    '0000803f',
    '00000040',
    '0000003f',
    '000000bf',
    '0000803e',
    '00000000',
)
TRACKED_BODY = '01000000' + ONE + TWO + HALF + HALF + HALF + MINUS_HALF + HALF + QUARTER + '0100'
LOST_BODY = '07000000' + ZERO * 3 + ZERO * 4 + ZERO + '0000'
SECTIONS = [  # count, body
    ('01000000', '41726d00' + '02000000' + ONE * 6),  # marker set 'Arm' of two markers
    ('01000000', ONE + TWO + HALF),  # unlabelled marker
    ('02000000', TRACKED_BODY + LOST_BODY),
    ('01000000', '03000000' + '01000000' + TRACKED_BODY),  # skeleton 3 of one bone
    ('01000000', '09000000' + '00000000' + '00000000'),  # asset 9 without bodies or markers; new in 4.1
    ('01000000', '02000100' + ONE + TWO + HALF + QUARTER + '0a00' + HALF),  # marker 2 of body 1
    (
        '01000000',
        '05000000' + '02000000' + '02000000' + ONE * 2 + '01000000' + TWO,
    ),  # force plate 5, two channels
    ('00000000', ''),  # no other device
]
TIMECODE = '04030201' + '00000000'
TIMES = '000000000000f83f' + '1027000000000000' + '2027000000000000' + '3027000000000000'
PRECISION_TIME = '05000000' + '06000000'
PARAMS_AND_END = '0a00' + '00000000'  # model list changed, bitstream changed


def frame_payload(version, extra_section=''):
    payload = '2a000000'  # frame 42
    for k, (count, body) in enumerate(SECTIONS):
        if version >= (4, 1):
            payload += count + struct.pack('<i', len(body) // 2).hex() + body
        elif k != 4:
            payload += count + body
    payload += extra_section + TIMECODE + TIMES
    payload += (PRECISION_TIME if version >= (4, 1) else '') + PARAMS_AND_END
    return bytes.fromhex(payload)


@pytest.mark.parametrize('version', VERSIONS)
def test_frame_composed_by_hand(version):
    frame = decode.frame(frame_payload(version), version)
    assert frame.number == 42
    assert frame.bodies == (
        RigidBody(1, (1.0, 2.0, 0.5), (0.5, 0.5, -0.5, 0.5), 0.25, True),
        RigidBody(7, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0), 0.0, False),
    )
    marker_id, p_WM, size, params, residual = frame.markers.item()
    assert (marker_id, *p_WM, size, params, residual) == (1 << 16 | 2, 1.0, 2.0, 0.5, 0.25, 10, 0.5)
    assert (frame.timestamp_s, frame.mid_exposure_ticks, frame.transmit_ticks) == (1.5, 10000, 10032)
    assert frame.is_model_list_changed
    assert frame.is_bitstream_changed


def test_newer_version_is_read_up_to_what_it_added():
    added = '01000000' + '04000000' + ONE
    frame = decode.frame(frame_payload((4, 1), extra_section=added), (4, 5))
    assert [body.id for body in frame.bodies] == [1, 7]
    assert frame.transmit_ticks == 10032


def test_newer_version_may_append_to_an_entry():
    payload = frame_payload((4, 1))
    body_section = bytes.fromhex('02000000' + '4c000000' + TRACKED_BODY + LOST_BODY)
    longer = bytes.fromhex('02000000' + '54000000' + TRACKED_BODY + ONE + LOST_BODY + ONE)
    assert payload.count(body_section) == 1
    frame = decode.frame(payload.replace(body_section, longer), (4, 3))
    assert [body.id for body in frame.bodies] == [1, 7]
    with pytest.raises(MalformedPacket, match='2 entries of 38 bytes in 84'):
        decode.frame(payload.replace(body_section, longer), (4, 2))


@pytest.mark.parametrize(('written', 'read'), [((3, 0), (4, 1)), ((4, 1), (3, 0)), ((4, 0), (4, 2))])
def test_frame_of_another_version_is_refused(written, read):
    with pytest.raises(MalformedPacket):
        decode.frame(frame_payload(written), read)


@pytest.mark.parametrize('value', [float('nan'), float('inf'), 3.0])
def test_tracked_body_without_a_rotation_is_refused(value):
    broken = TRACKED_BODY.replace(MINUS_HALF, struct.pack('<f', value).hex())
    payload = frame_payload((3, 0)).replace(bytes.fromhex(TRACKED_BODY), bytes.fromhex(broken))
    with pytest.raises(MalformedPacket, match='rigid body 1'):
        decode.frame(payload, (3, 0))


@pytest.mark.parametrize('version', VERSIONS)
def test_names_from_definitions_composed_by_hand(version):
    def entry(kind, body):
        size = struct.pack('<i', len(body) // 2).hex() if version >= (4, 1) else ''
        return kind + size + body

    parent, offset, two_markers = 'ffffffff', ONE + TWO + HALF, '02000000' + ONE * 6 + '01000000' + '02000000'
    rotation = ZERO * 3 + ONE if version >= (4, 2) else ''
    labels = '6d3100' + '6d3200' if version >= (4, 0) else ''
    tip = '74697000' + '0c000000' + parent + offset + rotation + two_markers + labels
    base = 'c3a900' + '0d000000' + parent + offset + rotation + '00000000'
    types_and_channel = '01000000' + '01000000' + '01000000' + '467a00'
    entries = [
        entry('00000000', '74697000' + '01000000' + '6d3100'),  # marker set
        entry('01000000', tip),
        entry('02000000', '736b00' + '05000000' + '01000000' + base),  # skeleton with the bone 'é'
        entry(
            '03000000', '01000000' + '463100' + ZERO * (2 + 3 + 144 + 12) + types_and_channel
        ),  # force plate
        entry('04000000', '01000000' + '6400' + '7300' + types_and_channel),  # device
        entry('05000000', '63616d00' + ZERO * 7),  # camera
        entry('01000000', base),
    ]
    payload = bytes.fromhex(struct.pack('<i', len(entries)).hex() + ''.join(entries))
    assert decode.rigid_body_names(payload, version) == {12: 'tip', 13: 'é'}


def test_server_info_composed_by_hand():
    name = b'Motive\0'.ljust(256, b'\xcc')  # the rest of the name is garbage in a real packet
    rest = '02010000' + '03000000' + '8096980000000000' + 'e705' + '01' + 'efff2a63'
    info = decode.server_info(name + bytes.fromhex(rest))
    assert info == messages.ServerInfo('Motive', '2.1.0.0', (3, 0), 10_000_000, 1511, True, '239.255.42.99')


def test_short_messages():
    assert decode.split(bytes.fromhex('0d001000' + '0100000000000000' + '0200000000000000')) == (
        13,
        bytes.fromhex('01000000000000000200000000000000'),
    )
    assert decode.echo_response(bytes.fromhex('01000000000000000200000000000000')) == (1, 2)
    assert decode.response(bytes.fromhex('ffffffff')) == -1
    assert decode.response(b'Bitstream,4.1\0') == 'Bitstream,4.1'


def test_bytes_after_the_payload_are_allowed_and_missing_bytes_are_not():
    assert decode.split(b'\x07\x00\x02\x00abcdef') == (7, b'ab')
    with pytest.raises(MalformedPacket, match='the header says 2'):
        decode.split(b'\x07\x00\x02\x00a')


def test_requests_composed_by_hand():
    assert messages.keep_alive() == bytes.fromhex('0a000000')
    assert messages.echo_request(258) == bytes.fromhex('0c000800' + '0201000000000000')
    assert messages.request('Bitstream') == bytes.fromhex('02000a00') + b'Bitstream\0'
    connect = messages.connect('bridge', (4, 1))
    assert connect[:4] == bytes.fromhex('00000d01')
    assert connect[4:260] == b'bridge'.ljust(256, b'\0')
    assert connect[4 + 264 :] == bytes.fromhex('00' + '04010000')


def test_z_up_is_the_same_motion_in_turned_axes():
    rng = np.random.default_rng(2)
    turn = Rotation.from_euler('x', 90, degrees=True)
    for _ in range(20):
        p, R = rng.normal(size=3), Rotation.random(rng=rng)
        turned = RigidBody(1, tuple(p), tuple(R.as_quat()), 0.0, True).y_up_to_z_up()
        np.testing.assert_allclose(turned.p_WB, turn.apply(p), atol=1e-12)
        np.testing.assert_allclose(
            Rotation.from_quat(turned.quat_WB).as_matrix(), (turn * R * turn.inv()).as_matrix(), atol=1e-12
        )
    up = RigidBody(1, (0.0, 1.0, 0.0), (0.0, 0.0, 0.0, 1.0), 0.0, True).y_up_to_z_up()
    np.testing.assert_array_equal(up.p_WB, (0.0, 0.0, 1.0))


@pytest.mark.parametrize('version', VERSIONS)
def test_encoder_writes_what_is_composed_field_by_field(version):
    """Also for a body out of view, and with zeros of either sign."""
    is_sized = version >= (4, 1)
    tracked = StreamedBody(1, 'base', (0.1, -0.0, 0.3), (0.5, -0.5, 0.5, 0.5), True)
    lost = StreamedBody(2, 'tip', (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0), False)

    def ints(*values):
        return b''.join(struct.pack('<i', value) for value in values)

    def floats(*values):
        return b''.join(struct.pack('<f', value) for value in values)

    def section(entries=()):
        body = b''.join(entries)
        return ints(len(entries)) + (ints(len(body)) if is_sized else b'') + body

    def markers(body):
        offsets = [(0.04, 0.0, 0.0), (-0.04, 0.0, 0.0), (0.0, 0.0, 0.05), (0.0, 0.03, 0.0)]
        return [floats(*map(sum, zip(body.position, offset, strict=True))) for offset in offsets]

    sets = [b.name.encode() + b'\0' + ints(4) + b''.join(markers(b)) for b in (tracked, lost)]
    bodies = [
        ints(b.id) + floats(*b.position, *b.quaternion, 2e-4) + bytes([b.is_tracked, 0])
        for b in (tracked, lost)
    ]
    labelled = [
        ints(65536 * b.id + k) + p + floats(0.014) + bytes([params, 0]) + floats(3e-4)
        for b, params in ((tracked, 10), (lost, 9))
        for k, p in enumerate(markers(b), start=1)
    ]
    payload = ints(7) + section(sets) + section() + section(bodies) + section() * (2 if is_sized else 1)
    payload += section(labelled) + section() * 2 + bytes(8) + struct.pack('<d3Q', 1.5, 2, 3, 4)
    payload += (ints(1, 0) if is_sized else b'') + bytes([2, 0]) + ints(0)
    frame = natnet_encoder.frame(version, 7, [tracked, lost], FrameTimes(1.5, 2, 3, 4), 2)
    assert frame == struct.pack('<2H', 7, len(payload)) + payload


def test_frame_without_bodies_is_empty():
    payload = natnet_encoder.frame((4, 1), 7, [], FrameTimes(1.0, 2, 3, 4), 0)[4:]
    assert decode.frame(payload, (4, 1)).bodies == ()


def valid_packets():
    bodies = [StreamedBody(k, f'body {k}', (0.1, 0.2, 0.3), (0.5, 0.5, 0.5, 0.5), True) for k in range(4)]
    packets = [natnet_encoder.server_info((4, 1), 10_000_000, 1511, True, '239.255.42.99')]
    for version in VERSIONS:
        packets.append(natnet_encoder.frame(version, 7, bodies, FrameTimes(1.0, 2, 3, 4), 0))
        packets.append(natnet_encoder.model_definitions(version, bodies))
        payload = frame_payload(version)
        packets.append(struct.pack('<HH', 7, len(payload)) + payload)
    return packets


def test_100000_damaged_packets_raise_only_malformed_packet_and_leave_nothing():
    versions = [*VERSIONS, (4, 5)]
    outcomes = [0, 0]

    def feed(packet):
        version = versions[len(packet) % len(versions)]
        try:
            message_id, payload = decode.split(packet)
            if message_id == 7:
                decode.frame(payload, version)
            elif message_id == 5:
                decode.rigid_body_names(payload, version)
            elif message_id == 1:
                decode.server_info(payload)
            elif message_id == 13:
                decode.echo_response(payload)
            else:
                decode.response(payload)
            outcomes[0] += 1
        except MalformedPacket:
            outcomes[1] += 1

    count = fuzz_count(2000, 100_000)
    assert growth(feed, damaged(valid_packets(), count), warm_up=count * 4 // 5) < 20_000
    assert min(outcomes) > count // 100
