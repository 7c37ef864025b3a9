"""FBGS: the adapters decode what the emulator encodes, and survive damaged bytes."""

import struct

import numpy as np
import pytest
from fuzz import damaged, growth, refusals

from soft_hw_bridge.emulators import fbgs as fbgs_emulator
from soft_hw_bridge.fiber.protocols import fbgs

N = 12
EVENING_NS = 1_700_000_000_123_456_000  # 2023-11-14 22:13:20.123456 UTC
GRATINGS = np.linspace(0.0, 0.11, 5)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def test_fbgs_strain_by_hand():
    text = b'14/11/2023\t22:13:20.5\t42\t2\t1\t2\t0\t0\t0\t0\t1530.1\t1531.1\t0.5\t0.6'
    text += b'\t2\t2\t0\t1\t0\t0\t1530\t1531\t0.5\t0.6'
    text += b'\t4\t100\t-200\t300\t-400\t\r\n'
    adapter = fbgs.IllumisenseAdapter(np.array([0.0, 0.01]), cores=2)
    (frame,) = adapter.feed(struct.pack('>I', len(text)) + text)
    np.testing.assert_allclose(frame.strain, [[1e-4, -2e-4], [3e-4, -4e-4]])
    assert frame.sequence == 42
    assert frame.stamp_ns == (22 * 3600 + 13 * 60 + 20.5) * 1e9
    assert adapter.warnings == 1  # the second channel's status


def test_fbgs_shape_round_trip():
    curvature, angle, points = np.abs(numbers(5)), numbers(5), numbers(N, 3)
    packet = fbgs_emulator.encode_shape_sensing(
        3, EVENING_NS, [(curvature, angle, points), (curvature, angle, -points)]
    )
    adapter = fbgs.ShapeSensingAdapter(0.01, GRATINGS)
    first, second = adapter.feed(packet)
    assert (first.sensor, second.sensor, first.sequence) == (0, 1, 3)
    np.testing.assert_allclose(first.p_FC_F, points, atol=1e-8)
    np.testing.assert_allclose(second.p_FC_F, -points, atol=1e-8)
    np.testing.assert_allclose(
        first.curvature_C[0],
        [-curvature[0] * np.sin(angle[0]), curvature[0] * np.cos(angle[0]), 0],
        atol=1e-4,
    )
    assert first.stamp_ns == EVENING_NS % 86_400_000_000_000


def test_fbgs_clock_runs_on_after_midnight():
    adapter = fbgs.ShapeSensingAdapter()
    midnight_ns = EVENING_NS - EVENING_NS % 86_400_000_000_000
    stamps = []
    for ns in (midnight_ns - 10_000_000, midnight_ns + 10_000_000):
        (frame,) = adapter.feed(
            fbgs_emulator.encode_shape_sensing(0, ns, [(numbers(2), numbers(2), numbers(N, 3))])
        )
        stamps.append(frame.stamp_ns)
    assert stamps[1] - stamps[0] == 20_000_000


def test_fbgs_time_in_whole_seconds_is_no_stamp():
    text = b'14/11/2023\t22:13:20\t42\t0'
    (head, _) = fbgs.decode_shape_sensing(text)
    assert head.day_ns is None


@pytest.mark.parametrize('size', [1, 5, 4096])
def test_fbgs_finds_the_next_message_after_damage(size):
    def packet(i):
        return fbgs_emulator.encode_shape_sensing(i, EVENING_NS, [(numbers(5), numbers(5), numbers(N, 3))])

    stream = b'\xff\x00garbage' + packet(1) + packet(2)[:-30] + packet(3) + packet(4) + packet(5)
    adapter = fbgs.ShapeSensingAdapter()
    frames = [f for i in range(0, len(stream), size) for f in adapter.feed(stream[i : i + size])]
    assert [frame.sequence for frame in frames] == [1, 4, 5]
    assert adapter.malformed >= 2


def test_fbgs_length_field_cannot_make_the_reader_wait():
    adapter = fbgs.ShapeSensingAdapter()
    adapter.feed(b'\x7f\xff\xff\xff1')
    packet = fbgs_emulator.encode_shape_sensing(8, EVENING_NS, [(numbers(5), numbers(5), numbers(N, 3))])
    assert [frame.sequence for frame in adapter.feed(packet)] == [8]


def test_fbgs_wrong_number_of_gratings_is_named():
    adapter = fbgs.IllumisenseAdapter(GRATINGS)
    adapter.feed(fbgs_emulator.encode_illumisense(0, EVENING_NS, numbers(4, 7)))
    assert 'expected 5' in adapter.problem


PACKETS = [
    fbgs_emulator.encode_illumisense(0, EVENING_NS, 100 * numbers(4, 5)),
    fbgs_emulator.encode_shape_sensing(1, EVENING_NS, [(numbers(5), numbers(5), numbers(N, 3))]),
]


@pytest.mark.parametrize('decode', [fbgs.decode_illumisense, fbgs.decode_shape_sensing])
@pytest.mark.filterwarnings('error')
def test_decoder_raises_one_error_only(decode):
    assert 0.5 < refusals(decode, [packet[4:] for packet in PACKETS]) < 1.0


@pytest.mark.parametrize(
    'adapter', [fbgs.IllumisenseAdapter(GRATINGS), fbgs.ShapeSensingAdapter(0.01, GRATINGS)]
)
@pytest.mark.filterwarnings('error')
def test_adapter_survives_a_damaged_stream_without_growing(adapter):
    assert growth(adapter.feed, damaged(PACKETS, 20_000), warm_up=2000) < 4 << 20
    adapter.reset()
    assert sum(len(adapter.feed(packet)) for packet in PACKETS) >= 1
