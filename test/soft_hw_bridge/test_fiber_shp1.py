"""SHP1: the adapter decodes what the emulator encodes, and survives damaged bytes."""

import struct
import zlib

import numpy as np
import pytest
from fuzz import damaged, growth, refusals

from soft_hw_bridge.emulators.shape import encode_frame
from soft_hw_bridge.errors import MalformedPacket
from soft_hw_bridge.fiber.protocols import shp1

N = 12
S = 0.01 * np.arange(N)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def shape_packet(sequence=7, **kwargs):
    columns = {
        0: S,
        1: numbers(N, 3),
        2: numbers(N, 4),
        3: numbers(N, 2),
        4: numbers(N),
        5: numbers(N),
        6: numbers(N),
    }
    return encode_frame(sequence, 5_000_000_123, columns, **kwargs)


def test_shp1_frame_by_hand():
    body = struct.pack('<6f', 0, 0, 0, 0, 0, 0.25)
    data = b'SHP1' + struct.pack('<HHIIQHHIf', 40, 1, len(body), 9, 77, 2, 2, 2, 0.5)
    frame = shp1.decode_frame(data + struct.pack('<I', zlib.crc32(body)) + body)
    assert (frame.sensor, frame.sequence, frame.stamp_ns, frame.valid) == (2, 9, 77, True)
    assert frame.s.tolist() == [0.0, 0.5]
    assert frame.p_FC_F.tolist() == [[0, 0, 0], [0, 0, 0.25]]
    assert frame.curvature_C is None


def test_shp1_carries_every_field():
    frame = shp1.decode_frame(shape_packet(sensor=3, flags=0))
    assert (frame.sensor, frame.sequence, frame.stamp_ns, frame.valid) == (3, 7, 5_000_000_123, False)
    np.testing.assert_allclose(frame.s, S, atol=1e-8)
    np.testing.assert_allclose(frame.p_FC_F, numbers(N, 3), rtol=1e-6)
    np.testing.assert_allclose(frame.quat_FC, numbers(N, 4), rtol=1e-6)
    np.testing.assert_allclose(frame.curvature_C, np.column_stack([numbers(N, 2), numbers(N)]), rtol=1e-6)
    np.testing.assert_allclose(frame.strain, numbers(N), rtol=1e-6)
    np.testing.assert_allclose(frame.quality, numbers(N), rtol=1e-6)


def test_shp1_longer_header_of_a_future_version_is_read():
    packet = bytearray(shape_packet())
    packet[4] = 48
    assert shp1.decode_frame(bytes(packet[:40]) + b'newfield' + bytes(packet[40:])).sequence == 7


@pytest.mark.parametrize('size', [1, 7, 40, 1000])
def test_shp1_stream_in_pieces_of_any_size(size):
    stream = b''.join(shape_packet(i) for i in range(5))
    adapter = shp1.Shp1Adapter()
    frames = [f for i in range(0, len(stream), size) for f in adapter.feed(stream[i : i + size])]
    assert [frame.sequence for frame in frames] == list(range(5))
    assert adapter.malformed == 0


def test_shp1_finds_the_next_frame_after_damage():
    bad = bytearray(shape_packet(1))
    bad[60] ^= 0xFF
    stream = (
        b'noise SHP'
        + shape_packet(0)
        + bytes(bad)
        + shape_packet(2)[:100]
        + shape_packet(3)
        + shape_packet(4)
    )
    adapter = shp1.Shp1Adapter()
    assert [frame.sequence for frame in adapter.feed(stream)][-1] == 4
    assert adapter.malformed >= 2


def test_shp1_length_field_cannot_make_the_reader_wait():
    hostile = b'SHP1' + struct.pack('<HHIIQHHIfI', 40, 1, 2**32 - 1, 0, 0, 0, 65535, 127, 1.0, 0)
    adapter = shp1.Shp1Adapter()
    assert adapter.feed(hostile) == []
    assert [frame.sequence for frame in adapter.feed(shape_packet(5))] == [5]


@pytest.mark.parametrize(
    ('change', 'problem'),
    [
        ({28: 0xFFFFFFFF}, 'unknown bits'),
        ({0: 0x31504853 + 1}, 'magic'),
        ({8: 4}, 'body of'),
        ({36: 0}, 'checksum'),
        ({4: 3}, 'header of'),
    ],
)
def test_shp1_refusals_say_why(change, problem):
    packet = bytearray(shape_packet())
    for offset, value in change.items():
        struct.pack_into('<I', packet, offset, value)
    with pytest.raises(MalformedPacket, match=problem):
        shp1.decode_frame(bytes(packet))


def test_shp1_arc_length_must_ascend():
    with pytest.raises(MalformedPacket, match='ascend'):
        shp1.decode_frame(encode_frame(0, 0, {0: S[::-1], 1: numbers(N, 3)}))


PACKETS = [shape_packet(), encode_frame(1, 2, {1: numbers(N, 3)}, spacing=0.01)]


@pytest.mark.parametrize('decode', [shp1.decode_frame])
@pytest.mark.filterwarnings('error')
def test_decoder_raises_one_error_only(decode):
    assert 0.5 < refusals(decode, PACKETS) < 1.0


@pytest.mark.parametrize('adapter', [shp1.Shp1Adapter()])
@pytest.mark.filterwarnings('error')
def test_adapter_survives_a_damaged_stream_without_growing(adapter):
    assert growth(adapter.feed, damaged(PACKETS, 20_000), warm_up=2000) < 4 << 20
    adapter.reset()
    assert sum(len(adapter.feed(packet)) for packet in PACKETS) >= 1
