"""Modbus valves: our client and our server, against each other and against pymodbus."""

import asyncio
import math
import socket
import threading
import time
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from pymodbus.client import ModbusTcpClient
from pymodbus.server import ModbusTcpServer
from pymodbus.simulator import DataType, SimData, SimDevice

from soft_hw_bridge.emulators import modbus as emulators
from soft_hw_bridge.emulators.modbus import ModbusEmulator
from soft_hw_bridge.errors import DeviceError
from soft_hw_bridge.pressure.guard import PressureLimits
from soft_hw_bridge.pressure.modbus_client import ModbusTcp
from soft_hw_bridge.pressure.modbus_device import ModbusConfig, ModbusPressure
from soft_hw_bridge.pressure.register_map import Block, RegisterMap, Wait, Write, load_register_map

LIMITS = PressureLimits(pressure_max=150e3)
CHANNELS = [0, 1, 2, 5]
TERMINALS = {
    'generic': emulators.GenericTerminal,
    'festo_mpa_vppm': emulators.MpaTerminal,
    'festo_vtem': emulators.VtemTerminal,
    'festo_cpx_ap': emulators.CpxApTerminal,
}


@pytest.fixture
def terminal():
    emulator = ModbusEmulator(emulators.MpaTerminal())
    yield emulator
    emulator.close()


def exchange(device, pressure):
    """One cycle: read, then write."""
    (reading,) = device.read()
    device.write(pressure)
    return reading


def connect(emulator, name='festo_mpa_vppm', channels=CHANNELS, response_timeout=0.9, device_timeout=1.0):
    """Connect with the longest time-outs that the configuration allows."""
    config = ModbusConfig(
        '127.0.0.1', emulator.port, response_timeout=response_timeout, device_timeout=device_timeout
    )
    device = ModbusPressure(config, load_register_map(name), channels, LIMITS)
    device.open()
    return device


@pytest.mark.parametrize('name', TERMINALS)
def test_every_shipped_map_reaches_the_right_valves(name):
    emulator = ModbusEmulator(TERMINALS[name]())
    try:
        device = connect(emulator, name)
        emulator.set_actual([1000.0 * valve for valve in range(16)])
        reading = exchange(device, np.array([1e3, 2e3, 3e3, 150e3]))
        np.testing.assert_array_equal(reading.pressure, [0.0, 1e3, 2e3, 5e3])
        assert emulator.commanded()[:6] == [1e3, 2e3, 3e3, 0.0, 0.0, 150e3]
        assert emulator.terminal.timeout_s == 1.0
        device.close()
        assert not any(emulator.commanded())
    finally:
        emulator.close()


def test_killed_client_leaves_the_valves_shut(terminal):
    """The device's own time-out, which the client sets, vents: the client does nothing more."""
    device = connect(terminal, device_timeout=1.0)
    exchange(device, np.full(4, 100e3))
    assert any(terminal.commanded())
    deadline = time.monotonic() + 30.0
    while any(terminal.commanded()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    device.close()


def test_limits_hold_on_the_wire_too(terminal):
    device = connect(terminal)
    exchange(device, np.array([1e9, -1e9, np.nan, np.inf]))
    assert terminal.commanded()[:6] == [150e3, 0.0, 0.0, 0.0, 0.0, 0.0]
    device.close()


def test_what_was_put_out_before_is_vented_when_we_connect(terminal):
    terminal.terminal.timeout_s = 60.0
    terminal.terminal.setpoints = {40003 + valve: 500 for valve in range(16)}
    with ModbusTcpClient('127.0.0.1', port=terminal.port) as client:  # so that the registers hold it too
        client.write_registers(40003, [500] * 16, device_id=1)
    device = connect(terminal)
    assert [terminal.commanded()[channel] for channel in CHANNELS] == [0.0] * len(CHANNELS)
    assert terminal.commanded()[3] == 50e3  # belongs to another robot
    device.close()


def test_a_watchdog_that_is_not_taken_is_a_device_error(terminal, monkeypatch):
    write = ModbusTcp.write
    monkeypatch.setattr(
        ModbusTcp,
        'write',
        lambda self, to, words, until=math.inf: None if to == 46100 else write(self, to, words),
    )
    with pytest.raises(DeviceError, match='register 46100 does not hold the watchdog time of 1000 ms'):
        connect(terminal)


def test_map_addresses_and_watchdog_are_told():
    register_map = load_register_map('festo_vtem')
    device = ModbusPressure(ModbusConfig(register_map='festo_vtem'), register_map, [0, 3], LIMITS)
    assert device.watchdog == 0.2
    assert device.about == (
        'register map festo_vtem, unit 1: set points in registers 40004 to 40008, '
        'measured in registers 45396 to 45400, watchdog in 46100'
    )
    device = ModbusPressure(ModbusConfig(), replace(register_map, timeout=None), [0], LIMITS)
    assert device.watchdog is None
    assert device.about.endswith('no watchdog')


def test_a_start_that_takes_long_is_given_up_when_told_to_stop(terminal):
    never = Wait('wait', address=45395, value=1, timeout=60.0)
    slow = replace(load_register_map('festo_mpa_vppm'), start=(never,))
    stop = threading.Event()
    device = ModbusPressure(ModbusConfig('127.0.0.1', terminal.port), slow, CHANNELS, LIMITS, stop=stop)
    threading.Timer(0.1, stop.set).start()
    start = time.monotonic()
    with pytest.raises(DeviceError, match='stopped while the device started'):
        device.open()
    assert time.monotonic() - start < 30.0
    device.close()


def test_vtem_is_switched_on_and_off():
    emulator = ModbusEmulator(emulators.VtemTerminal())
    try:
        device = connect(emulator, 'festo_vtem')
        assert [emulator.terminal.state(slot) for slot in range(8)] == [2] * 8
        exchange(device, np.full(4, 1e3))
        assert [emulator.terminal.state(slot) for slot in range(8)] == [2] * 8
        device.close()
        assert [emulator.terminal.state(slot) for slot in range(8)] == [1] * 8
    finally:
        emulator.close()


def test_restart_of_the_terminal_is_a_device_error_and_a_new_start(terminal):
    device = connect(terminal)
    exchange(device, np.full(4, 1e3))
    terminal.faults.restart = True
    terminal.commanded()
    with pytest.raises(DeviceError, match='register'):
        exchange(device, np.full(4, 1e3))
    device.close()
    device.open()
    exchange(device, np.full(4, 2e3))
    assert terminal.commanded()[0] == 2e3
    device.close()


def test_silent_terminal_is_a_device_error(terminal):
    device = connect(terminal, response_timeout=0.5)
    terminal.faults.silent = True
    with pytest.raises(DeviceError):
        exchange(device, np.full(4, 1e3))
    terminal.faults.clear()
    device.close()


def test_refusal_names_the_register(terminal):
    with pytest.raises(DeviceError, match='refused to write from register 0: illegal address'):
        connect(terminal, 'generic')


def test_nobody_there_is_one_clear_error():
    with socket.create_server(('127.0.0.1', 0)) as taken:
        port = taken.getsockname()[1]
    device = ModbusPressure(ModbusConfig('127.0.0.1', port), load_register_map('generic'), [0], LIMITS)
    with pytest.raises(DeviceError, match=f'no Modbus device at 127.0.0.1:{port}'):
        device.open()


def test_another_client_sees_the_emulator_as_documented(terminal):
    terminal.terminal.timeout_s = 60.0
    with ModbusTcpClient('127.0.0.1', port=terminal.port) as client:
        client.write_register(40003 + 4, 1234, device_id=1)
        terminal.set_actual([0.0, 0.0, 77_700.0])
        words = client.read_holding_registers(45395, count=15, device_id=1).registers
        assert client.read_holding_registers(45395 + 60, count=1, device_id=1).isError()
    assert words[6] == 777
    assert words[3 * 4 + 1] == 1234
    assert terminal.commanded()[4] == 123_400.0


@contextmanager
def plain_server():
    """The port of a pymodbus server with 300 registers, all 4711, and without watchdog."""
    ready, server = threading.Event(), []

    async def serve():
        blocks = SimData(0, count=300, values=4711, datatype=DataType.REGISTERS)
        server.append(ModbusTcpServer(SimDevice(1, simdata=[blocks]), address=('127.0.0.1', 0)))
        await server[0].serve_forever(background=True)
        ready.set()
        await server[0].serving

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(30.0)
    try:
        yield server[0].transport.sockets[0].getsockname()[1]
    finally:
        server[0].loop.call_soon_threadsafe(lambda: server[0].serving.set_result(True))
        thread.join()


def registers(port, first, count):
    with ModbusTcpClient('127.0.0.1', port=port) as client:
        return client.read_holding_registers(first, count=count, device_id=1).registers


SPREAD = RegisterMap(
    1, Block(10, stride=5, group=2), Block(100, stride=2), channels=8, scale=100.0, ambient=101_325.0
)


def test_another_server_gets_exactly_the_registers_of_the_map():
    """Registers between the set points keep their values."""
    with plain_server() as port:
        device = ModbusPressure(ModbusConfig('127.0.0.1', port), SPREAD, [0, 1, 2], LIMITS)
        device.open()
        reading = exchange(device, np.array([1e5, 2e4, 3e4]))
        words = registers(port, 8, 10)
        device.close()
    assert words == [4711, 4711, 2013, 1213, 4711, 4711, 4711, 1313, 4711, 4711]
    np.testing.assert_allclose(reading.pressure, 4711 * 100.0 - 101_325.0)


def test_a_lost_connection_does_not_keep_it_from_being_vented_and_stopped():
    """Without a watchdog only this client can vent."""
    stopped = replace(SPREAD, stop=(Write('write', address=77, value=1),))
    with plain_server() as port:
        device = ModbusPressure(ModbusConfig('127.0.0.1', port), stopped, [0, 1, 2], LIMITS)
        device.open()
        exchange(device, np.array([1e5, 2e4, 3e4]))
        device._connection._socket.shutdown(socket.SHUT_RDWR)
        with pytest.raises(DeviceError):
            exchange(device, np.array([1e5, 2e4, 3e4]))
        device.close()
        assert registers(port, 10, 6) == [1014, 1014, 4711, 4711, 4711, 1014]
        assert registers(port, 77, 1) == [1]


def test_another_client_is_refused_as_modbus_says(terminal):
    """Missing functions, missing registers, and writes to inputs."""
    with ModbusTcpClient('127.0.0.1', port=terminal.port) as client:
        refusals = [
            client.read_coils(0, device_id=1),
            client.read_holding_registers(40002, count=2, device_id=1),
            client.write_registers(40018, [1, 2], device_id=1),
            client.write_register(45395, 1, device_id=1),
        ]
        assert client.read_holding_registers(40018, count=1, device_id=1).registers == [0]
    assert [refusal.exception_code for refusal in refusals] == [1, 2, 2, 2]
    assert not any(terminal.highest)


def test_garbage_does_not_end_the_server(terminal):
    random = np.random.default_rng(0)
    for _ in range(300):
        with socket.create_connection(('127.0.0.1', terminal.port), timeout=10.0) as client:
            body = random.bytes(random.integers(1, 40))
            client.sendall(bytes(4) + len(body).to_bytes(2, 'big') + body)
    device = connect(terminal)
    exchange(device, np.full(4, 1e3))
    assert terminal.commanded()[0] == 1e3
    device.close()


def test_negative_readings_of_a_signed_map():
    register_map = load_register_map('generic')
    counts = np.array([65535, 0, 1], np.uint16)
    np.testing.assert_array_equal(register_map.to_pressure(counts), [-10.0, 0.0, 10.0])


def test_counts_never_round_beyond_a_limit():
    register_map = load_register_map('festo_mpa_vppm')
    odd = PressureLimits(pressure_max=12_345.0)
    counts = register_map.to_counts(np.array([12_345.0, 12_399.0, 49.0, 51.0]), odd)
    assert counts.tolist() == [123, 123, 0, 1]


def test_counts_do_not_wrap_around():
    below = replace(load_register_map('festo_mpa_vppm'), ambient=-101_325.0)
    counts = below.to_counts(
        np.array([0.0, 1e4, 1e9, np.nan]), PressureLimits(pressure_max=5e4, pressure_min=-5e4)
    )
    assert counts.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize('channels', [[0, 0], [-1], [99]])
def test_channels_that_do_not_exist_are_refused(channels):
    with pytest.raises(ValueError, match='channels must differ and be in'):
        ModbusPressure(ModbusConfig(), load_register_map('festo_vtem'), channels, LIMITS)


def test_a_trip_of_a_vtem_is_not_undone_by_the_next_write():
    """Only `start` writes the application words; the terminal stays vented until the client opens it again."""
    emulator = ModbusEmulator(emulators.VtemTerminal(start_time=0.0))
    try:
        device = connect(emulator, 'festo_vtem')
        exchange(device, np.full(4, 100e3))
        with emulator._lock:
            emulator.terminal.apps.clear()  # as a trip does, with the set points unchanged
        device.write(np.full(4, 100e3))
        assert not any(emulator.commanded())
        device.close()
        device.open()
        exchange(device, np.full(4, 1e3))
        assert emulator.commanded()[0] == 1e3
        device.close()
    finally:
        emulator.close()
