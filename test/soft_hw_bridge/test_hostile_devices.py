"""Malicious bytes: the client rejects, counts and reports each attack, and keeps reading."""

from __future__ import annotations

import json
import math
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from fuzz import damaged, fuzz_count
from test_rig import running

from soft_hw_bridge.emulators import fbgs as fbgs_emulator
from soft_hw_bridge.emulators import natnet_encoder
from soft_hw_bridge.emulators import odisi as odisi_emulator
from soft_hw_bridge.emulators.natnet import NatNetEmulator
from soft_hw_bridge.emulators.natnet_encoder import FrameTimes, StreamedBody
from soft_hw_bridge.emulators.netft import encode_record
from soft_hw_bridge.emulators.openvr import OpenVrEmulator
from soft_hw_bridge.emulators.shape import encode_frame
from soft_hw_bridge.errors import DeviceError, MalformedPacket
from soft_hw_bridge.fiber.adapter import LARGEST, ShapeFrame
from soft_hw_bridge.fiber.config import CoresConfig, FiberConfig, OdisiConfig
from soft_hw_bridge.fiber.protocols import fbgs, odisi, shp1
from soft_hw_bridge.fiber.stream import FiberStream
from soft_hw_bridge.ft.calibration import MAX_PAGE_BYTES, decode_page, fetch_calibration
from soft_hw_bridge.ft.client import FtConfig, NetFtClient
from soft_hw_bridge.natnet import decode
from soft_hw_bridge.natnet.stream import MocapConfig, MocapStream
from soft_hw_bridge.pressure.contact_lease import ContactLease
from soft_hw_bridge.pressure.modbus_client import ModbusTcp
from soft_hw_bridge.rig.config import RigConfig
from soft_hw_bridge.rig.virtual_rig import Rig
from soft_hw_bridge.vive.backend import TrackerPose, TrackingState
from soft_hw_bridge.vive.trackers import Trackers

LOOPBACK = '127.0.0.1'
HUGE = 10**4000


# ---- NatNet ----------------------------------------------------------------------------------------------------------


def packet(message_id: int, payload: bytes) -> bytes:
    return struct.pack('<HH', message_id, len(payload)) + payload


def bodies(names: list[str], first: int = 1) -> list[StreamedBody]:
    return [StreamedBody(k, name, (0.1, 0.2, 0.3), (0.5,) * 4, True) for k, name in enumerate(names, first)]


def frame(number: int, names: list[str], first: int = 1) -> bytes:
    return natnet_encoder.frame((4, 1), number, bodies(names, first), FrameTimes(1.0, 2, 3, 4), 0)


def definitions(names: list[str], first: int = 1) -> bytes:
    return natnet_encoder.model_definitions((4, 1), bodies(names, first))


@pytest.fixture
def motive() -> Iterator[tuple[MocapStream, Callable[[bytes], list[Any]]]]:
    """A client, and a function that feeds it a server packet and returns the frames."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((LOOPBACK, 0))
        stream = MocapStream(MocapConfig(LOOPBACK, LOOPBACK, server.getsockname()[1]))
        stream.poll(0.0)
        client = server.recvfrom(1000)[1]

        def hand(data: bytes) -> list[Any]:
            server.sendto(data, client)
            return stream.poll(1.0)

        hand(natnet_encoder.server_info((4, 1), 10_000_000, 1511, False, '239.255.42.99'))
        assert stream.client.info
        yield stream, hand
        stream.close()


def streams_on(stream: MocapStream, hand: Callable[[bytes], list[Any]], number: int) -> bool:
    hand(packet(3, b'Bitstream,4.1\0'))
    hand(definitions(['tip']))
    return [each.names for each in hand(frame(number, ['tip']))] == [('tip',)]


@pytest.mark.parametrize(
    'answer', ['9' * 5000 + '.1', '4.' + '9' * 5000, '4.1' + '.1' * 5000, '٤.١', '4.1234']
)
def test_a_bitstream_that_is_no_version_is_not_taken(motive: Any, answer: str) -> None:
    stream, hand = motive
    version = stream.client.version
    hand(packet(3, f'Bitstream,{answer}\0'.encode()))
    assert stream.client.version == version
    assert streams_on(*motive, number=7)


def definition(body_id: int) -> bytes:
    """Bodies without markers, so that many fit into a datagram."""
    body = b'%d\0' % body_id + struct.pack('<i', body_id) + bytes(20)
    return struct.pack('<ii', 1, len(body)) + body


def test_names_are_short_and_printable_and_not_too_many(motive: Any) -> None:
    stream, hand = motive
    hand(definitions(['a' * 20_000, 'b\x1b[31m\n<c>']))
    assert stream.names == ['a' * 100, 'b?[31m <c>']
    assert all(len(value) < 500 for value in stream.status().values.values())
    with pytest.raises(MalformedPacket, match='more than 1000'):
        decode.rigid_body_names(struct.pack('<i', 1001) + b''.join(map(definition, range(1001))), (4, 1))


def test_ever_new_bodies_do_not_grow_memory(motive: Any) -> None:
    stream, hand = motive
    for k in range(30):
        names = [f'body {k} {j}' for j in range(100)]
        hand(definitions(names))
        hand(frame(k, names))
    assert len(stream._tracked_t) == 1000
    assert int(stream.status().values['refused']) == 2000


def test_motive_fuzzed_through_poll(motive: Any) -> None:
    stream, hand = motive
    valid = [
        natnet_encoder.server_info((4, 1), 10_000_000, 1511, False, '239.255.42.99'),
        packet(3, b'Bitstream,4.1\0'),
        packet(13, struct.pack('<QQ', 1, 2**63)),
        *(
            natnet_encoder.frame(v, 7, bodies(['a', 'b']), FrameTimes(1.0, 2, 2**63, 4), 2)
            for v in ((3, 0), (4, 1))
        ),
        *(natnet_encoder.model_definitions(v, bodies(['a', 'b'])) for v in ((3, 0), (4, 1))),
    ]
    for data in damaged(valid, fuzz_count(2000, 100_000)):
        for each in hand(data):
            assert abs(each.stamp_ns - time.time_ns()) < 60e9
            assert np.isfinite(each.p_WB).all()
            assert np.isfinite(each.quat_WB).all()
        assert stream.status().message
    assert stream.client.health.malformed > 100
    hand(valid[0])
    stream.client.health.resync()
    assert streams_on(stream, hand, 1)


@pytest.mark.parametrize('make', [NatNetEmulator, OpenVrEmulator])
def test_emulators_survive_their_clients(make: Callable[[list[str]], Any]) -> None:
    emulator = make(['tip'])
    starts = (b'\0\0\x0b\1' + bytes(267), b'\2\0\x20\0Bitstream,', b'\4\0\0\0', b'\x0c\0\x08\0' + bytes(8))
    valid = [start + tail for start in starts for tail in (b'', b'.\0', b'4.1\0', b'0123456789.1\0')]
    port = getattr(emulator, 'command_port', 0) or emulator.port
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        for data in (*valid, *damaged(valid, fuzz_count(2000, 100_000))):
            client.sendto(data, (LOOPBACK, port))
            emulator.serve()
            emulator.send({})
    emulator.close()


# ---- Net F/T ---------------------------------------------------------------------------------------------------------

PAGE = (
    b'<netft><prodname>Net F/T</prodname><calsn>FT1</calsn><cfgnam>c</cfgnam><scfgfu>N</scfgfu><scfgtu>Nmm</scfgtu>'
    b'<cfgcpf>1000000</cfgcpf><cfgcpt>1000</cfgcpt><comrdtrate>1000</comrdtrate></netft>'
)


@pytest.mark.parametrize('tag', [b'cfgcpf', b'cfgcpt', b'comrdtrate'])
@pytest.mark.parametrize(
    'number', [b'1e-300', b'1e-320', b'5e-324', b'1e300', b'inf', b'nan', b'-1', b'9' * 150, b'0']
)
def test_numbers_of_the_page_are_plausible(tag: bytes, number: bytes) -> None:
    old = PAGE[PAGE.index(b'<' + tag) : PAGE.index(b'</' + tag)]
    with pytest.raises(MalformedPacket, match=tag.decode()):
        decode_page(PAGE.replace(old, b'<' + tag + b'>' + number))


@contextmanager
def page_server(pieces: Callable[[], Iterator[bytes]]) -> Iterator[int]:
    """Answer each request with pieces until the client disconnects."""
    with socket.create_server((LOOPBACK, 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                with client:
                    try:
                        client.recv(1000)
                        for piece in pieces():
                            client.sendall(piece)
                    except OSError:
                        pass

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()


HEAD = b'HTTP/1.0 200 OK\r\n\r\n'


def slowly(data: bytes) -> Iterator[bytes]:
    for byte in data:
        yield bytes([byte])
        time.sleep(0.05)


def forever(data: bytes) -> Iterator[bytes]:
    while True:
        yield data


@pytest.mark.parametrize(
    'pieces',
    [
        lambda: slowly(HEAD + PAGE),
        lambda: slowly(b'HTTP/1.0 200 OK\r\nX: ' + bytes(10_000)),
        lambda: iter([HEAD, b'<comrdtrate>' + b' ' * 60_000 + b'x']),
        lambda: forever(b'HTTP/1.1 100 Continue\r\n\r\n'),
        lambda: iter([b'HTTP/1.0 302 Found\r\nLocation: http://127.0.0.1:9/\r\n\r\n']),
        lambda: iter([HEAD, *[b'a' * 1000] * 200]),
        lambda: iter([b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n' + b'f' * 60_000 + b'\r\n']),
        lambda: iter([b'HTTP/1.1 200 OK\r\nContent-Length: ' + b'9' * 5000 + b'\r\n\r\nx']),
        lambda: iter([bytes(1000)]),
        lambda: iter([b'']),
    ],
    ids=[
        'slow',
        'slow_head',
        'spaces',
        'continue',
        'redirect',
        'large',
        'chunk',
        'length',
        'zeros',
        'nothing',
    ],
)
def test_a_page_takes_no_longer_than_its_time_out(pieces: Any) -> None:
    with page_server(pieces) as port, pytest.raises(DeviceError) as caught:
        fetch_calibration(LOOPBACK, port, timeout=0.5)
    assert len(str(caught.value)) < 400


def test_a_page_is_read_in_linear_time() -> None:
    page = b'<comrdtrate>' + b' ' * (MAX_PAGE_BYTES - 14) + b'x'
    with pytest.raises(MalformedPacket):  # the expression that stood here took hours
        decode_page(page)
    with pytest.raises(MalformedPacket, match='more than'):
        decode_page(page + b'  ')


def test_box_fuzzed_through_poll() -> None:
    record = encode_record(1, 1, 0, [2**31 - 1] * 6)
    pages = damaged([PAGE], 10**9, seed=2)
    with (
        page_server(lambda: iter([HEAD + next(pages)])) as port,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as box,
    ):
        box.bind((LOOPBACK, 0))
        client = NetFtClient(FtConfig(LOOPBACK, box.getsockname()[1], port))
        client._backoff.is_due = lambda _: True  # type: ignore[method-assign]
        client.poll(0.0)
        address = box.recvfrom(100)[1]
        taken = 0
        for k, data in enumerate(damaged([record, 3 * record], fuzz_count(2000, 100_000))):
            box.sendto(data, address)
            samples = client.poll(1.0)
            taken += len(samples)
            assert all(math.isfinite(x) for sample in samples for x in (*sample.force, *sample.torque))
            assert client.status().message
            client._is_stale = k % 3 == 0  # makes the client request the page again
        assert client.health.malformed > 100
        assert taken > 10
        client.close()


# ---- fibers ----------------------------------------------------------------------------------------------------------


def measurement(**changes: Any) -> bytes:
    return odisi_emulator.encode_message(odisi_emulator.measurement(1, 10**18, 1, [1.5, 2.5]) | changes)


def metadata(**changes: Any) -> bytes:
    sensor = {'channel': 1, 'units': 'microstrain', 'gage pitch (mm)': 0.65} | changes
    return odisi_emulator.encode_message(
        {'message type': 'metadata', 'product': 'x' * 10**6, 'sensors': [sensor]}
    )


DEEP = b'{"message type":' + b'[' * 100_000 + b']' * 100_000 + b'}\r\n0000\0'


@pytest.mark.parametrize(
    'attack',
    [
        lambda: metadata(**{'gage pitch (mm)': HUGE}),
        lambda: metadata(gages=[{'location (mm)': HUGE}]),
        lambda: metadata(segments=[{'size': HUGE, 'index': HUGE, 'segment name': 'a' * 10**6}]),
        lambda: metadata(units='u' * 10**6),
        lambda: metadata() + measurement(milliseconds=HUGE),
        lambda: metadata() + measurement(**{'sequence number': 1, 'microseconds': 10**300}),
        lambda: metadata() + measurement(data=[HUGE, 1]),
        lambda: metadata() + measurement(data=[1e300, 1]),
        lambda: metadata() + measurement(data=[math.inf, 1]),
        lambda: metadata() + measurement(data=[1.0] * 100_000),
        lambda: metadata() + measurement(year=HUGE),
        lambda: odisi_emulator.encode_message({'message type': 'm' * 10**6}),
        lambda: DEEP,
    ],
)
def test_odisi_with_numbers_and_texts_beyond_measure(attack: Callable[[], bytes]) -> None:
    adapter = odisi.OdisiAdapter()
    assert adapter.feed(attack()) == []
    assert adapter.malformed == 1
    assert 0 < len(adapter.problem) <= 200
    assert all(len(value) <= 100 for value in adapter.info().values())
    (frame,) = adapter.feed(metadata() + measurement())
    assert frame.strain is not None


@pytest.mark.parametrize('number', [b'9' * 4300, b'9' * 5000, b'inf', b'1e999', b'-1e300'])
def test_fbgs_with_any_number_anywhere(number: bytes) -> None:
    strains = np.array([[100.0, 200.0]] * 4)
    fields = fbgs_emulator.encode_illumisense(0, 0, strains)[4:].rstrip(b'\r\n\t').split(b'\t')
    adapter = fbgs.IllumisenseAdapter(np.array([0.0, 0.01]))
    for place in range(len(fields)):
        body = b'\t'.join([*fields[:place], number, *fields[place + 1 :]])
        for frame in adapter.feed(struct.pack('>I', len(body)) + body):
            assert frame.strain is not None
            assert np.abs(frame.strain).max() <= 10.0
    assert 0 < len(adapter.problem) <= 200


@pytest.mark.parametrize('number', [math.inf, -1e30])
def test_shp1_with_numbers_that_no_fiber_has(number: float) -> None:
    points = np.zeros((3, 3))
    assert shp1.decode_frame(encode_frame(0, 0, {1: points}, spacing=0.01)).p_FC_F is not None
    with pytest.raises(MalformedPacket, match='s beyond'):
        shp1.decode_frame(encode_frame(0, 0, {1: points}, spacing=1e30))
    points[1, 1] = number
    with pytest.raises(MalformedPacket, match='p_FC_F beyond'):
        shp1.decode_frame(encode_frame(0, 0, {1: points}, spacing=0.01))


FLOATS = np.array([np.nan, np.inf, -np.inf, 1e38, -1e38, 1e-45, 0.0, 1.0, 1e4, -1e5])


@pytest.mark.filterwarnings('error')
def test_shapes_of_any_numbers_are_finite_or_lost() -> None:
    """From frame to message: published numbers are plausible or NaN."""
    config = FiberConfig(
        protocol='odisi', cores=CoresConfig((5e-3,) * 3, (0.0, 2.1, 4.2)), odisi=OdisiConfig((1, 2, 3))
    )
    for protocol in (FiberConfig(protocol='shp1'), config):
        stream, rng = FiberStream(protocol), np.random.default_rng(1)
        frames: list[tuple[ShapeFrame, int]] = []
        stream._client.read = lambda _, frames=frames: frames  # type: ignore[method-assign]
        for _ in range(fuzz_count(1000, 50_000)):
            s, numbers = np.sort(rng.uniform(0.0, 1.0, 5)), rng.choice(FLOATS, (5, 3))
            fields = {'strain': numbers.T} if protocol is config else {'curvature_C': numbers}
            try:
                frames[:] = [(ShapeFrame(0, 0, None, s, **fields), 0)]
            except MalformedPacket:
                continue
            for shape in stream.poll(0.0):
                assert shape.frame.p_FC_F is not None
                assert not np.any(np.abs(shape.frame.p_FC_F) > LARGEST['p_FC_F'])
                assert not np.any(np.abs(shape.frame.curvature_C) > LARGEST['curvature_C'])


# ---- trackers --------------------------------------------------------------------------------------------------------


class WildBackend:
    """Trackers with ever-changing names, anywhere; sometimes the library itself fails."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(1)
        self.polls = 0

    def connect(self) -> None: ...

    def close(self) -> None: ...

    def devices(self) -> list[str]:
        return []

    def poses(self) -> list[TrackerPose]:
        self.polls += 1
        if self.polls % 10 == 0:
            raise UnicodeDecodeError('utf-8', b'\xff', 0, 1, 'a serial number')
        X_VT = (
            self.random.choice(FLOATS, (3, 4))
            if self.polls % 2
            else self.random.choice([-1.0, 0.0, 1.0], (3, 4))
        )
        matrix = tuple(map(tuple, X_VT.tolist()))
        return [
            TrackerPose(f'{self.polls}', TrackingState.OK, matrix),
            TrackerPose('a', TrackingState.OK, matrix),
        ]


def test_trackers_of_any_name_and_place() -> None:
    trackers = Trackers(WildBackend())
    trackers._backoff.is_due = lambda _: True  # type: ignore[method-assign]
    for _ in range(fuzz_count(2000, 100_000)):
        for each in trackers.poll():
            assert np.isfinite(each.p_WB).all()
            assert np.isfinite(each.quat_WB).all()
        assert len(trackers.trackers) <= 64
        assert trackers.status().message
    assert trackers.refused > 1000


# ---- virtual rig -----------------------------------------------------------------------------------------------------

REQUESTS = [
    json.dumps(request).encode()
    for request in (
        {
            'command': 'fault',
            'device': 'mocap',
            'set': {'silent': True, 'untracked': ['a'], 'clock_jump_s': -5.5},
        },
        {'command': 'fault', 'device': 'ft', 'set': {'drop': 0.5, 'restart': True}},
        {'command': 'load', 'mass': 0.5},
        {'command': 'clear', 'device': 'ft'},
        {'command': 'advance', 'seconds': 0.001},
    )
]
ATTACKS = [
    b'[' * 65_000,
    b'[' * 8000,
    b'{"a":' * 1600,
    b'{"command": "' + b'\\u0000' * 1300 + b'"}',
    *(b'{"command": "fault", "device": %s}' % value for value in (b'[]', b'{}', b'1', b'null')),
    *(
        b'{"command": "fault", "device": "ft", "set": %s}' % value
        for value in (b'[1]', b'{"drop": NaN}', b'{"drop": 1e999}')
    ),
    b'{"command": "fault", "device": "mocap", "set": {"clock_jump_s": %s}}' % (b'9' * 4000),
    b'{"command": "fault", "device": "mocap", "set": {"clock_jump_s": 1e308}}',
    *(
        b'{"command": "load", "mass": %s}' % value
        for value in (b'1e308', b'9' * 4000, b'NaN', b'Infinity', b'1e-320x')
    ),
    *(b'{"command": "advance", "seconds": %s}' % value for value in (b'1e300', b'9' * 4000, b'Infinity')),
    b'{"command": []}',
    b'{"command": %s}' % (b'9' * 5000),
    b'',
]


@pytest.mark.parametrize('attack', ATTACKS)
def test_rig_refuses_and_lives_on(attack: bytes) -> None:
    with running(Rig(RigConfig(pace='stepped'))) as client:
        client._socket.send(attack)
        answer = json.loads(client._socket.recv(65_535))
        assert len(answer['error']) <= 300
        assert client.advance(0.01) == pytest.approx(0.01)


def test_rig_fuzzed_through_its_socket() -> None:
    with running(Rig(RigConfig(pace='stepped'))) as client:
        for data in damaged(REQUESTS, fuzz_count(2000, 100_000)):
            client._socket.send(data)
            client._socket.recv(65_535)
        client.clear()
        client.load(100.0)
        assert client.advance(0.1) > 0.0


# ---- Modbus ----------------------------------------------------------------------------------------------------------


class Answer:
    """A socket that delivers these bytes and then ends."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def recv(self, size: int) -> bytes:
        piece, self.data = self.data[:size], self.data[size:]
        return piece

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: None


def test_modbus_answers_of_any_bytes_are_device_errors() -> None:
    read, write = (
        struct.pack('>HHHBBBHH', 1, 0, 7, 1, 3, 4, 5, 6),
        struct.pack('>HHHBBHH', 1, 0, 6, 1, 16, 0, 2),
    )
    lease = ContactLease()
    lease.start(1000.0)
    refused = 0
    for data in damaged([read, write, read[:5] + b'\x03\x01\x83\x02'], fuzz_count(2000, 100_000)):
        modbus = ModbusTcp(('', 0), 1, 0.2, lease, connect=lambda *_, data=data: Answer(data))
        try:
            assert modbus.read(0, 2).size == 2
        except DeviceError:
            refused += 1
    assert refused > 1000
