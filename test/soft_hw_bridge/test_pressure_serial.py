"""The serial protocol and its transport."""

import socket
import threading
import time
from contextlib import suppress

import numpy as np
import pytest
from fake_node import FakeNode
from fake_valves import World
from firmware import Firmware
from fuzz import damaged, growth, refusals
from test_air_path import Stop

from soft_hw_bridge.emulators import serial as emulator
from soft_hw_bridge.emulators.serial import SerialEmulator
from soft_hw_bridge.errors import DeviceError, MalformedPacket, SetpointsChangedError
from soft_hw_bridge.pressure.guard import PressureLimits
from soft_hw_bridge.pressure.serial_device import SerialConfig, SerialPressure, _UnwrappedClock
from soft_hw_bridge.pressure.serial_protocol import (
    NO_PRESSURE,
    BinaryCodec,
    Message,
    MessageStream,
    TextCodec,
    cobs_decode,
    cobs_encode,
)

PATIENCE_S = 30.0
LIMITS = PressureLimits(pressure_max=100_000.9, pressure_min=-50_000.9)
STATE = (4_000_000_000, 5, 123_456, 7)
SETPOINTS = (0, 100_000, 1, -2000)
ACTUAL = (0, 12_345, NO_PRESSURE, 99_999)
CODECS = pytest.mark.parametrize('codec', [TextCodec(), BinaryCodec()], ids=['text', 'binary'])
SENT = [Message('V', (2**32 - 1,)), Message('Q', (0,)), Message('S', (1, 2, 3), SETPOINTS)]


@pytest.mark.parametrize(
    ('plain', 'stuffed'),
    [
        ('00', '0101'),
        ('0000', '010101'),
        ('11220033', '0311220233'),
        ('11223344', '0511223344'),
        ('11000000', '0211010101'),
        ('45000000 2c4c79', '0245010104 2c4c79'),
    ],
)
def test_cobs_examples(plain, stuffed):
    plain, stuffed = bytes.fromhex(plain), bytes.fromhex(stuffed)
    assert cobs_encode(plain) == stuffed == emulator.stuff(plain)[:-1]
    assert cobs_decode(stuffed) == plain == emulator.unstuff(stuffed)


@pytest.mark.parametrize('size', [0, 1, 253, 254, 255, 508, 509, 1000])
def test_cobs_agrees_with_the_emulator(size):
    for fill in (bytes(size), b'\x07' * size, np.random.default_rng(size).bytes(size)):
        assert 0 not in cobs_encode(fill)
        assert emulator.unstuff(cobs_encode(fill)) == cobs_decode(emulator.stuff(fill)[:-1]) == fill


def test_messages_by_hand():
    """The check values of CRC-16/CCITT-FALSE are those of crccalc.com."""
    assert emulator.crc_ccitt(b'123456789') == 0x29B1
    assert TextCodec().encode(SENT[2]) == b'S,1,2,3,0,100000,1,-2000*%04X\n' % emulator.crc_ccitt(
        b'S,1,2,3,0,100000,1,-2000'
    )
    body = b'Q' + bytes([1, 2, 0, 0])
    crc = emulator.crc_ccitt(body).to_bytes(2, 'little')
    assert BinaryCodec().encode(Message('Q', (0x0201,))) == emulator.stuff(body + crc)


@CODECS
def test_answers_of_the_emulator_are_read(codec):
    frame = emulator.report(STATE, SETPOINTS, ACTUAL, isinstance(codec, BinaryCodec))
    assert codec.decode(frame[:-1]) == Message('P', STATE, SETPOINTS + ACTUAL)
    assert TextCodec().decode(b'E,3*%04X\r' % emulator.crc_ccitt(b'E,3')) == Message('E', (3,))


@CODECS
@pytest.mark.parametrize('message', SENT)
def test_what_is_sent_is_read_by_the_emulator(codec, message):
    read = emulator.read_binary if isinstance(codec, BinaryCodec) else emulator.read_text
    numbers = [number % 2**32 for number in message.head + message.values]
    assert read(codec.encode(message)[:-1]) == (message.kind, numbers)
    assert codec.decode(codec.encode(message)[:-1]) == message


@pytest.mark.parametrize(
    'body',
    [
        *(b'P,1,2,3,4,5', b'P,1,2,3', b'P,1,2,3,4' + b',0' * 130, b'S,1,2', b'S,1,2,3,2147483648'),
        *(b'V,-1', b'V,4294967296', b'V,1.5', b'V,nan', b'V,' + b'0' * 5000 + b'1', b'E', b'E,1,2'),
        *(b'X,1', b''),
    ],
)
def test_numbers_that_cannot_be_are_refused(body):
    with pytest.raises(MalformedPacket):
        TextCodec().decode(b'%s*%04X' % (body, emulator.crc_ccitt(body)))


@CODECS
@pytest.mark.filterwarnings('error')
def test_decoders_raise_one_error_only(codec):
    binary = isinstance(codec, BinaryCodec)
    valid = [emulator.report(STATE, SETPOINTS[:k], ACTUAL[:k], binary)[:-1] for k in range(1, 5)]
    assert 0.5 < refusals(codec.decode, valid) < 1.0
    stream = MessageStream(codec)
    packets = (packet + codec.delimiter * (len(packet) % 2) for packet in damaged(valid, 20_000))
    assert growth(stream.feed, packets, warm_up=1000) < 1 << 16
    assert stream.malformed > 0
    assert len(stream.feed(codec.delimiter + valid[0] + codec.delimiter)) >= 1


class Bench:
    """A serial port to the reference firmware, in simulated time."""

    def __init__(self):
        self.world = World()
        self.node = FakeNode(self.world, 4, lag=0.0, t_us=0)
        self.port = SerialPressure(
            SerialConfig(),
            [2, 0],
            LIMITS,
            50.0,
            self.world.now_ns,
            Stop(self.world),
            self.world.now,
            lambda duration: self.world.run_until(self.world.boot + duration),
            self.node.connect,
        )
        self.port.open()

    def cycle(self, *pressure):
        """Run one cycle; return the set points of the device and the measurement."""
        readings = self.port.read()
        self.port.write(np.array(pressure))
        self.world.run_until(self.world.boot + 0.02)
        return self.node.setpoints(), readings


@pytest.fixture
def bench():
    return Bench()


@pytest.mark.parametrize(
    ('wanted', 'written'),
    [
        ([1234.9, -1234.9], [1234.0, -1234.0]),
        ([1e9, -1e9], [100_000.0, -50_000.0]),
        ([np.nan, np.inf], [0.0, 0.0]),
    ],
)
def test_set_points_are_rounded_towards_vented_within_the_limits(bench, wanted, written):
    assert bench.cycle(*wanted)[0] == (written[1], 0.0, written[0], 0.0)


def test_measured_pressures_are_in_the_order_of_the_channels(bench):
    bench.node.lie = lambda _: np.array([1.0, 2.0, 3.0, 4.0])
    (reading,) = bench.cycle(0.0, 0.0)[1]
    assert reading.pressure.tolist() == [3.0, 1.0]


def test_nothing_is_written_after_the_device_was_out_of_contact(bench):
    bench.cycle(1000.0, 1000.0)
    bench.port.read()
    bench.world.run_until(bench.world.boot + 0.16)
    with pytest.raises(DeviceError, match='no contact for'):
        bench.port.write(np.array([2000.0, 2000.0]))
    bench.world.run_until(bench.world.boot + 0.01)
    assert bench.node.setpoints() == (1000.0, 0.0, 1000.0, 0.0)
    bench.world.run_until(bench.world.boot + 0.1)
    assert not any(bench.node.setpoints())


@pytest.mark.parametrize('pressure', [0.0, 1000.0])
def test_a_device_that_was_reset_is_noticed_at_once(bench, pressure):
    bench.cycle(pressure, pressure)
    bench.node.reset()
    with pytest.raises(DeviceError, match='another epoch: it was reset') as caught:
        bench.port.read()
    assert not isinstance(caught.value, SetpointsChangedError)  # that would be another master


@pytest.mark.parametrize('values', [(0, 0, 0, 0), (1000, 0, 1000, 0), (2000, 0, 1000, 0), None])
def test_another_master_is_noticed_at_once(bench, values):
    bench.cycle(1000.0, 1000.0)
    bench.node.intrude(values)
    with pytest.raises(DeviceError, match='another master'):
        bench.port.read()


def test_set_points_that_were_lost_are_sent_again(bench):
    bench.node.noise.extend([0, 5])  # of the question and the set points
    assert bench.cycle(1000.0, 2000.0)[0] == (0.0,) * 4
    assert bench.port.read()
    assert bench.node.setpoints() == (2000.0, 0.0, 1000.0, 0.0)


def test_silent_device_is_an_error(bench):
    bench.node.damage = lambda _: b''
    with pytest.raises(DeviceError, match=r'no measurement from .* for 0.1 s'):
        bench.port.read()


def test_a_failure_of_the_device_is_told(bench):
    bench.node.damage = lambda _: bench.node.firmware.fail(42)
    with pytest.raises(DeviceError, match='reports error 42'):
        bench.port.read()


def test_device_with_too_few_channels_is_named(bench):
    bench.port.close()
    bench.node.damage = lambda answer: BinaryCodec().encode(Message('P', vented(answer), (0,) * 4))
    with pytest.raises(DeviceError, match='channel 2 does not exist: the device has 2 channels'):
        bench.port.open()


def test_a_device_that_holds_set_points_when_told_to_vent_is_refused(bench):
    bench.port.close()
    bench.node.damage = lambda answer: BinaryCodec().encode(Message('P', vented(answer), (0, 1, 0, 0) * 2))
    with pytest.raises(DeviceError, match='still holds set points after a command to vent'):
        bench.port.open()


def vented(answer):
    """Return the head of an answer."""
    return MessageStream(BinaryCodec()).feed(answer)[0].head


def test_a_start_can_be_stopped(bench):
    bench.port.close()
    bench.node.damage = lambda _: b''
    bench.port._stop = Stopped()
    with pytest.raises(DeviceError, match='stopped before the device was opened'):
        bench.port.open()
    bench.port.close()


class Stopped:
    """A stop request that is already waiting."""

    def wait(self, timeout):
        return True


@pytest.fixture(params=['text', 'binary'])
def device(request):
    device = SerialEmulator(4, binary=request.param == 'binary')
    device.protocol = request.param
    yield device
    device.close()


@pytest.fixture
def port(device):
    port = SerialPressure(SerialConfig(device.port, protocol=device.protocol), [2, 0], LIMITS, rate=50.0)
    yield port
    port.close()


def cycles(port, pressures):
    """Read and write for each pressure; start over if this computer was too busy in between."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        with suppress(DeviceError):
            port.open()
            readings = []
            for pressure in pressures:
                readings += port.read()
                port.write(np.array(pressure))
            return readings + port.read()
        port.close()
    raise AssertionError(f'not done within {PATIENCE_S:g} s')


def test_read_and_write_over_a_terminal(device, port):
    device.set_actual(ACTUAL)
    readings = cycles(port, [[1000.0 + k, 2000.0] for k in range(20)])
    assert device.highest == [2000.0, 0.0, 1019.0, 0.0]
    np.testing.assert_equal(readings[-1].pressure, [np.nan, 0.0])
    assert np.all(np.diff([reading.device_ns for reading in readings]) > 0)
    port.close()
    assert not any(device.commanded())


def test_lost_and_doubled_answers_are_asked_for_again(device, port):
    device.faults.drop = device.faults.corrupt = device.faults.duplicate = 0.2
    cycles(port, [[1000.0 * k, 0.0] for k in range(5)])
    assert device.highest == [0.0, 0.0, 4000.0, 0.0]


def test_firmware_vents_when_the_host_is_gone(device, port):
    cycles(port, [[1000.0, 1000.0]])
    deadline = time.monotonic() + PATIENCE_S
    while any(device.commanded()):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_port_is_taken_once(device, port):
    cycles(port, [])
    with pytest.raises(DeviceError, match='no serial port'):
        SerialPressure(SerialConfig(device.port), [0], LIMITS, rate=50.0).open()


def test_serial_server_on_the_network_with_the_reference_firmware():
    """pyserial's socket:// reaches boxes that put a serial line on the network."""
    firmware = Firmware(2)
    firmware.measure([1000, 12_345])
    held = []
    with socket.create_server(('127.0.0.1', 0)) as listener:

        def serve():
            with suppress(OSError):  # until the listener closes
                while True:
                    connection, _ = listener.accept()
                    with connection, suppress(ConnectionError):
                        while data := connection.recv(4096):
                            connection.sendall(firmware.feed(data, time.monotonic_ns() // 1000))
                            held.append(firmware.valves)

        threading.Thread(target=serve, daemon=True).start()
        url = f'socket://127.0.0.1:{listener.getsockname()[1]}'
        port = SerialPressure(SerialConfig(url), [1], LIMITS, rate=50.0)
        readings = cycles(port, [[5000.9]])
        port.close()
    assert [0, 5000] in held
    assert held[-1] == [0, 0]
    assert readings[-1].pressure.tolist() == [12_345.0]


def test_absent_port_is_one_clear_error():
    with pytest.raises(DeviceError, match='no serial port /dev/ttyNothing'):
        SerialPressure(SerialConfig('/dev/ttyNothing'), [0], LIMITS, rate=50.0).open()


def test_line_that_is_too_slow_is_refused():
    """The messages of a cycle count in both directions, since each waits for the other."""
    with pytest.raises(ValueError, match=r'200 Hz needs .* baud with protocol text, got 115200'):
        SerialPressure(SerialConfig(protocol='text', baud=115200), range(12), LIMITS, rate=200.0)


@pytest.mark.parametrize(
    'change', [{'protocol': 'morse'}, {'baud': 0}, {'silence': -1.0}, {'silence': 0.2}, {'silence': 0.0}]
)
def test_nonsense_is_refused(change):
    with pytest.raises(ValueError, match='must be'):
        SerialConfig(**change)


def test_pressures_beyond_the_protocol_are_refused():
    with pytest.raises(ValueError, match='limits must be <'):
        SerialPressure(SerialConfig(), [0], PressureLimits(pressure_max=3e9), rate=50.0)


def test_clock_of_32_bits_runs_on():
    clock = _UnwrappedClock()
    assert [clock.unwrap_us(t) for t in (2**32 - 10, 5, 20)] == [2**32 - 10, 2**32 + 5, 2**32 + 20]
