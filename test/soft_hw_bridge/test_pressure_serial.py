"""The serial protocol and its transport."""

import socket
import threading
import time
from contextlib import suppress

import numpy as np
import pytest
from fuzz import damaged, growth, refusals

from soft_hw_bridge.emulators import serial as emulator
from soft_hw_bridge.emulators.serial import SerialEmulator
from soft_hw_bridge.errors import DeviceError
from soft_hw_bridge.pressure.microcontroller import (
    BinaryCodec,
    Fault,
    MessageStream,
    TextCodec,
    cobs_decode,
    cobs_encode,
)
from soft_hw_bridge.pressure.serial_port import SerialConfig, SerialPressure, _UnwrappedClock

PATIENCE_S = 30.0
PRESSURES = [0.0, 12_345.0, -2_000.0, 99_999.0]


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
def test_cobs_agrees_with_the_firmware(size):
    for fill in (bytes(size), b'\x07' * size, np.random.default_rng(size).bytes(size)):
        assert 0 not in cobs_encode(fill)
        assert emulator.unstuff(cobs_encode(fill)) == cobs_decode(emulator.stuff(fill)[:-1]) == fill


def test_text_by_hand():
    assert TextCodec().encode(0, [1500.0, -20.0]) == b'S,0,1.500*49\nS,1,-0.020*63\n'
    message = TextCodec().decode(b'P,7,1000,0.0,12.3450*%02X\r' % emulator_xor('P,7,1000,0.0,12.3450'))
    assert (message.sequence, message.t_us) == (7, 1000)
    np.testing.assert_allclose(message.pressure, [0.0, 12_345.0])
    assert TextCodec().decode(b'E,3*%02X' % emulator_xor('E,3')) == Fault(3)
    assert TextCodec().decode(b'H*48') is None


def emulator_xor(text):
    total = 0
    for character in text:
        total ^= ord(character)
    return total


def test_crc_check_value():
    assert emulator.crc_ccitt(b'123456789') == 0x29B1


@pytest.mark.parametrize(
    ('codec', 'report'), [(TextCodec(), emulator.report_text), (BinaryCodec(), emulator.report_binary)]
)
def test_reports_of_the_firmware_are_read(codec, report):
    message = codec.decode(report(5, 123_456, PRESSURES)[:-1])
    assert (message.sequence, message.t_us) == (5, 123_456)
    np.testing.assert_allclose(message.pressure, PRESSURES, atol=0.1)


@pytest.mark.parametrize('codec', [TextCodec(), BinaryCodec()])
def test_set_points_are_rounded_towards_vented(codec):
    device = SerialEmulator(2, binary=isinstance(codec, BinaryCodec))
    try:
        for frame in filter(None, codec.encode(1, [1234.9, -1234.9]).split(codec.delimiter)):
            device._take_binary(frame) if device._binary else device._take_text(frame.decode())
        assert device._setpoints == pytest.approx([1234.0, -1234.0])
        assert device.malformed == 0
    finally:
        device.close()


@pytest.mark.parametrize('codec', [TextCodec(), BinaryCodec()])
@pytest.mark.filterwarnings('error')
def test_decoders_raise_one_error_only(codec):
    report = emulator.report_text if isinstance(codec, TextCodec) else emulator.report_binary
    valid = [report(i, 1000 * i, PRESSURES[: i + 1])[:-1] for i in range(4)]
    assert 0.5 < refusals(codec.decode, valid) < 1.0
    stream = MessageStream(codec)
    packets = (packet + codec.delimiter * (len(packet) % 2) for packet in damaged(valid, 20_000))
    assert growth(stream.feed, packets, warm_up=1000) < 1 << 16
    assert stream.malformed > 0
    assert len(stream.feed(codec.delimiter + valid[0] + codec.delimiter)) >= 1


@pytest.mark.parametrize('protocol', ['text', 'binary'])
def test_exchange_over_a_terminal(protocol):
    device = SerialEmulator(4, binary=protocol == 'binary')
    port = SerialPressure(SerialConfig(device.port, protocol=protocol), [2, 0], rate=50.0)
    try:
        device.set_actual(PRESSURES)
        port.open()
        wanted = pytest.approx([2000.0, 0.0, 1000.0, 0.0])
        readings = exchange_until(
            port, [1000.0, 2000.0], lambda readings: len(readings) >= 20 and device.commanded() == wanted
        )
        np.testing.assert_allclose(readings[-1].pressure, [-2000.0, 0.0], atol=0.1)
        steps = np.diff([reading.device_ns for reading in readings])
        assert np.all(steps > 0)
        port.close()
        wait_until(lambda: not any(device.commanded()))
    finally:
        port.close()
        device.close()


def exchange_until(port, pressure, condition):
    readings = []
    deadline = time.monotonic() + PATIENCE_S
    while not condition(readings):
        assert time.monotonic() < deadline
        readings += port.exchange(np.array(pressure))
        time.sleep(0.005)
    return readings


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return True


class Line:
    """A serial port that keeps what is written."""

    def __init__(self):
        self.written = []

    def write(self, data):
        self.written.append(data)

    def close(self):
        self.written.append('closed')


def test_close_puts_out_zeros_and_does_not_leave_it_to_the_firmware():
    port = SerialPressure(SerialConfig(protocol='text'), [0, 1], rate=50.0)
    port._port = line = Line()
    port.close()
    assert line.written == [TextCodec().encode(1, [0.0, 0.0]), 'closed']


def test_firmware_vents_when_the_host_is_gone():
    device = SerialEmulator(4)
    port = SerialPressure(SerialConfig(device.port), [0, 1, 2, 3], rate=100.0)
    try:
        port.open()
        exchange_until(port, [1000.0] * 4, lambda _: any(device.commanded()))
        wait_until(lambda: not any(device.commanded()))
    finally:
        port.close()
        device.close()


def test_silent_device_is_an_error():
    device = SerialEmulator(2)
    port = SerialPressure(SerialConfig(device.port, silence=1.0), [0, 1], rate=100.0)
    try:
        port.open()
        exchange_until(port, [0.0, 0.0], lambda readings: len(readings) >= 5)
        device.faults.silent = True
        with pytest.raises(DeviceError, match=r'no measurement from .* for 1 s'):
            exchange_until(port, [0.0, 0.0], lambda _: False)
    finally:
        port.close()
        device.close()


def test_device_with_too_few_channels_is_named():
    device = SerialEmulator(2)
    port = SerialPressure(SerialConfig(device.port), [0, 3], rate=100.0)
    try:
        port.open()
        with pytest.raises(DeviceError, match='channel 3 of a device with 2 channels'):
            exchange_until(port, [0.0, 0.0], lambda _: False)
    finally:
        port.close()
        device.close()


def test_serial_server_on_the_network():
    """The socket:// of pyserial reaches boxes that put a serial line on the network."""
    heard = []
    with socket.create_server(('127.0.0.1', 0)) as listener:

        def serve():
            connection, _ = listener.accept()
            with connection, suppress(ConnectionError):  # the port is closed while reports are under way
                while data := connection.recv(4096):
                    heard.append(data)
                    connection.sendall(emulator.report_binary(len(heard), 10, PRESSURES))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        port = SerialPressure(SerialConfig(f'socket://127.0.0.1:{listener.getsockname()[1]}'), [1], rate=50.0)
        try:
            port.open()
            readings = exchange_until(port, [5000.0], lambda readings: readings)
        finally:
            port.close()
        thread.join(PATIENCE_S)
    assert readings[0].pressure == pytest.approx([12_345.0])
    frames = b''.join(heard).split(b'\0')
    assert emulator.unstuff(frames[1])[6:14] == np.array([0, 5000], '<f4').tobytes()


def test_absent_port_is_one_clear_error():
    with pytest.raises(DeviceError, match='no serial port /dev/ttyNothing'):
        SerialPressure(SerialConfig('/dev/ttyNothing'), [0], rate=50.0).open()


def test_line_that_is_too_slow_is_refused():
    with pytest.raises(ValueError, match=r'200 Hz need .* baud with protocol text, got 115200'):
        SerialPressure(SerialConfig(protocol='text'), range(12), rate=200.0)


@pytest.mark.parametrize('change', [{'protocol': 'morse'}, {'baud': 0}, {'silence': -1.0}])
def test_nonsense_is_refused(change):
    with pytest.raises(ValueError, match='must be'):
        SerialConfig(**change)


def test_clock_of_32_bits_runs_on():
    clock = _UnwrappedClock()
    assert [clock.unwrap_us(t) for t in (2**32 - 10, 5, 20)] == [2**32 - 10, 2**32 + 5, 2**32 + 20]
