"""OMSP: the adapter decodes what the emulator encodes, and survives damaged bytes."""

import copy

import numpy as np
import pytest
from fuzz import damaged, growth, refusals

from soft_hw_bridge.emulators import odisi as odisi_emulator
from soft_hw_bridge.errors import MalformedPacket
from soft_hw_bridge.fiber.protocols import odisi
from soft_hw_bridge.fiber.protocols.crc16 import crc16_arc

EVENING_NS = 1_700_000_000_123_456_000  # 2023-11-14 22:13:20.123456 UTC
CORES = (odisi.Core(1, 'up'), odisi.Core(1, 'down', reverse=True), odisi.Core(2, 'up'))
SEGMENTS = {1: {'up': 4, 'down': 4}, 2: {'up': 4}}


def odisi_metadata():
    return odisi_emulator.encode_message(odisi_emulator.metadata(SEGMENTS, 2.6, 100.0))


def odisi_measurement(sequence, channel, strain, utc_ns=EVENING_NS):
    return odisi_emulator.encode_message(odisi_emulator.measurement(sequence, utc_ns, channel, strain))


def test_crc16_check_value():
    assert crc16_arc(b'123456789') == odisi_emulator.checksum(b'123456789') == 0xBB3D
    for n in (0, 1, 255, 256, 257, 1000):
        data = np.random.default_rng(n).bytes(n)
        assert crc16_arc(data) == odisi_emulator.checksum(data)


def test_omsp_cores_are_cut_turned_and_scaled():
    adapter = odisi.OdisiAdapter(CORES)
    assert adapter.feed(odisi_metadata() + odisi_measurement(10, 1, [1, 2, 3, 4, 5, 6, 7, 8])) == []
    (frame,) = adapter.feed(odisi_measurement(11, 2, [9, 10, float('nan'), 12]))
    np.testing.assert_allclose(
        frame.strain, 1e-6 * np.array([[1, 2, 3, 4], [8, 7, 6, 5], [9, 10, np.nan, 12]]), atol=1e-15
    )
    np.testing.assert_allclose(frame.s, [0.0, 0.0026, 0.0052, 0.0078])
    assert frame.stamp_ns == EVENING_NS
    assert frame.sequence == 5
    assert adapter.info()['product'] == 'ODiSI 6104'
    assert (adapter.malformed, adapter.warnings) == (0, 0)


def test_omsp_example_of_the_guide():
    text = (
        b'{\r\n"message type": "measurement",\r\n"message version": 1,\r\n"product": "ODiSI 6",\r\n'
        b'"system serial number": "2017ODB10032",\r\n"sequence number": 125,\r\n"year": 2017,\r\n'
        b'"month": 1,\r\n'
        b'"day": 13,\r\n"hours": 13,\r\n"minutes": 23,\r\n"seconds": 14,\r\n"milliseconds": 56,\r\n'
        b'"time zone": "EST UTC-5",\r\n"channel": 1,\r\n"number of gages": 4,\r\n'
        b'"data": [ 805, -754.5, null, 901 ],\r\n'
        b'"quality factor": [ 0.3544, 0.384, 0.367, 0.391 ]\r\n}\r\nAF37\0'
    )
    plain = {'message type': 'metadata', 'sensors': [{'channel': 1, 'gage pitch (mm)': 1.3}]}
    adapter = odisi.OdisiAdapter()
    (frame,) = adapter.feed(odisi_emulator.encode_message(plain) + text)
    np.testing.assert_allclose(frame.strain, [[805e-6, -754.5e-6, np.nan, 901e-6]])
    np.testing.assert_allclose(frame.quality, [0.3544, 0.384, 0.367, 0.391])
    assert frame.stamp_ns == 1_484_313_794_056_000_000  # date -u -d '2017-01-13 13:23:14.056' +%s%N
    assert adapter.warnings == 1  # its checksum


def test_omsp_named_gages_give_the_places():
    gages = [
        {'gage name': 'a', 'location (mm)': 100, 'index': 0},
        {'gage name': 'b', 'location (mm)': 110.5, 'index': 1},
    ]
    text = {'message type': 'metadata', 'sensors': [{'channel': 1, 'gage pitch (mm)': 1.3, 'gages': gages}]}
    adapter = odisi.OdisiAdapter((odisi.Core(1, reverse=True),))
    (frame,) = adapter.feed(odisi_emulator.encode_message(text) + odisi_measurement(0, 1, [1.0, 2.0]))
    np.testing.assert_allclose(frame.s, [0.0, 0.0105])
    np.testing.assert_allclose(frame.strain, [[2e-6, 1e-6]])


def test_omsp_resynchronises_after_garbage():
    one, two = ([float(i)] * 8 for i in (1, 2))
    adapter = odisi.OdisiAdapter(CORES[:2])
    stream = (
        odisi_metadata()
        + odisi_measurement(0, 1, one)[:-40]
        + b'{"a\0\xff\0{['
        + odisi_measurement(1, 1, two)
    )
    (frame,) = adapter.feed(stream)
    assert frame.strain[0, 0] == pytest.approx(2e-6)
    assert adapter.malformed == 2


def test_omsp_wrong_checksum_warns_and_is_used():
    adapter = odisi.OdisiAdapter(CORES[:2])
    adapter.feed(odisi_metadata())
    packet = odisi_measurement(0, 1, [0.0] * 8)
    assert len(adapter.feed(packet[:-5] + b'0000\0')) == 1
    assert (adapter.warnings, adapter.malformed) == (1, 0)


def test_omsp_text_without_end_is_given_up():
    adapter = odisi.OdisiAdapter(CORES[:2])
    adapter.feed(odisi_metadata())
    for _ in range(80):
        adapter.feed(b'[' * (1 << 16))
    assert adapter.malformed == 1
    adapter.feed(b'\0')
    assert len(adapter.feed(odisi_measurement(0, 1, [0.0] * 8))) == 1


def test_omsp_deep_nesting_is_malformed():
    with pytest.raises(MalformedPacket, match='JSON'):
        odisi.decode_message(b'{"a":' + b'[' * 200_000 + b'}\r\n0000')


@pytest.mark.parametrize(
    ('core', 'problem'),
    [
        (odisi.Core(3), 'no channel 3, the instrument has [1, 2]'),
        (odisi.Core(1, 'left'), "no segment 'left' on channel 1, it has ['up', 'down']"),
        (odisi.Core(1), 'name one'),
    ],
)
def test_omsp_core_that_does_not_exist_is_named(core, problem):
    adapter = odisi.OdisiAdapter((core,))
    adapter.feed(odisi_metadata())
    assert problem in adapter.problem


def paths(node, path=()):
    """Yield the path of every value in a JSON text."""
    yield path
    if isinstance(node, dict | list):
        for key in node if isinstance(node, dict) else range(len(node)):
            yield from paths(node[key], (*path, key))


@pytest.mark.filterwarnings('error')
def test_omsp_wrong_value_anywhere_is_malformed_at_worst():
    gages = [{'gage name': 'a', 'location (mm)': 1.0, 'index': 0}]
    metadata = odisi_emulator.metadata(SEGMENTS, 2.6, 100.0)
    metadata['sensors'][1]['gages'] = gages
    texts = [metadata, odisi_emulator.measurement(1, EVENING_NS, 1, [1.0] * 8)]
    wrong = [
        None,
        5,
        -1,
        0,
        2.5,
        'x',
        '',
        [],
        [1],
        {},
        {'a': 1},
        [[1], 2],
        [None],
        True,
        1e308,
        10**30,
        float('inf'),
    ]
    for text in texts:
        for path in list(paths(text))[1:]:
            for value in wrong:
                changed = copy.deepcopy(text)
                node = changed
                for key in path[:-1]:
                    node = node[key]
                node[path[-1]] = value
                adapter = odisi.OdisiAdapter(CORES)
                packet = odisi_emulator.encode_message(changed)
                adapter.feed(odisi_metadata() + packet + odisi_measurement(2, 2, [1.0] * 4) * 2)


PACKETS = [odisi_metadata(), odisi_measurement(1, 1, [1.5] * 8), odisi_measurement(2, 2, [2.5] * 4)]


@pytest.mark.parametrize('decode', [odisi.decode_message])
@pytest.mark.filterwarnings('error')
def test_decoder_raises_one_error_only(decode):
    assert 0.5 < refusals(decode, [packet[:-1] for packet in PACKETS]) < 1.0


@pytest.mark.parametrize('adapter', [odisi.OdisiAdapter(CORES)])
@pytest.mark.filterwarnings('error')
def test_adapter_survives_a_damaged_stream_without_growing(adapter):
    assert growth(adapter.feed, damaged(PACKETS, 20_000), warm_up=2000) < 4 << 20
    adapter.reset()
    assert sum(len(adapter.feed(packet)) for packet in PACKETS) >= 1
