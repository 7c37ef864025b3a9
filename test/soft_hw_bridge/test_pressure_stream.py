"""Guard, stream and device together, seen from the emulated valves."""

import itertools
import time

import numpy as np
import pytest

from soft_dynamics.diagnostics import ERROR, OK, WARN
from soft_dynamics.timing.boot_time import boot_time
from soft_hw_bridge.emulators.modbus import ModbusEmulator, MpaTerminal
from soft_hw_bridge.emulators.serial import SerialEmulator
from soft_hw_bridge.errors import DeviceError
from soft_hw_bridge.pressure.command import Command, in_order
from soft_hw_bridge.pressure.config import PressureConfig, make_stream
from soft_hw_bridge.pressure.device import PressureDevice, Reading
from soft_hw_bridge.pressure.guard import PressureLimits
from soft_hw_bridge.pressure.modbus_device import ModbusConfig, ModbusPressure
from soft_hw_bridge.pressure.register_map import load_register_map
from soft_hw_bridge.pressure.serial_device import SerialConfig, SerialPressure
from soft_hw_bridge.pressure.stream import PressureStream

LIMITS = PressureLimits(pressure_max=100e3, slew=1e6, vent_time=0.2, command_timeout=0.2, valve_lag=0.1)
CHANNELS = (0, 1, 2)
NAMES = ['base', 'middle', 'tip']
PATIENCE_S = 30.0
NUMBERS = itertools.count(1)


@pytest.fixture(params=['modbus', 'serial'])
def valves(request):
    emulator = ModbusEmulator(MpaTerminal()) if request.param == 'modbus' else SerialEmulator(3)
    yield emulator
    emulator.close()


@pytest.fixture
def stream(valves):
    device: PressureDevice
    if isinstance(valves, ModbusEmulator):
        config = ModbusConfig('127.0.0.1', valves.port, response_timeout=0.9, device_timeout=1.0)
        device = ModbusPressure(config, load_register_map('festo_mpa_vppm'), CHANNELS, LIMITS)
    else:
        device = SerialPressure(SerialConfig(valves.port), CHANNELS, LIMITS, rate=200.0)
    stream = PressureStream(device, NAMES, LIMITS)
    yield stream
    stream.close()


def command(stream, pressure):
    stream.command(Command(boot_time(), time.time_ns(), next(NUMBERS), False, b'', tuple(pressure)))


def until(condition, stream, pressure=None):
    """Poll until the condition holds, with a command in every cycle if one is given; return the measurement."""
    deadline, measured = time.monotonic() + PATIENCE_S, []
    while not condition():
        assert time.monotonic() < deadline, f'nothing after {PATIENCE_S} s: {stream.status()}'
        measured += stream.poll(lambda: pressure is None or command(stream, pressure))
    return measured


def fill(valves, stream, pressure):
    """Command zero until the guard follows, as a controller does, then the pressure until the chambers reach it."""
    until(lambda: 'following commands' in stream.status().message, stream, [0.0] * 3)
    until(is_at(valves, pressure), stream, pressure)


def is_at(valves, pressure):
    return lambda: valves.commanded()[:3] == pytest.approx(pressure, abs=1.0)


def test_commands_out_measurements_in(valves, stream):
    stream.arm()
    valves.set_actual([1000.0, 2000.0, 3000.0])
    fill(valves, stream, [10e3, 20e3, 30e3])
    received = stream.health.received
    measured = until(lambda: stream.health.received > received + 50, stream)
    stamps = [each.stamp_ns for each in measured]
    assert stamps == sorted(stamps)
    np.testing.assert_allclose(measured[-1].pressure, [1000.0, 2000.0, 3000.0], atol=1.0)
    assert stream.health.lost == 0


def test_chamber_that_does_not_follow_is_told(valves, stream):
    stream.arm()
    valves.set_actual([50e3, 50e3, 30e3])
    fill(valves, stream, [50e3] * 3)
    told = (WARN, 'following commands; measured pressure far from its set point')
    until(lambda: stream.status()[:2] == told, stream, [50e3] * 3)
    assert stream.status().values['astray'] == 'tip'
    valves.set_actual([50e3, 30e3, 30e3])
    until(lambda: stream.status().values['astray'] == 'middle tip', stream, [50e3] * 3)
    assert stream.status()[:2] == told  # same state, same diagnostics line
    valves.set_actual([50e3] * 3)
    until(lambda: stream.status()[:2] == (OK, 'following commands'), stream, [50e3] * 3)


def test_vents_when_commands_stop(valves, stream):
    stream.arm()
    fill(valves, stream, [50e3] * 3)
    until(is_at(valves, [0.0] * 3), stream)
    assert max(valves.highest) <= LIMITS.pressure_max


@pytest.mark.parametrize('bad', [[float('nan')] * 3, [float('inf'), 0.0, 0.0], [1.0], []])
def test_bad_commands_vent(valves, stream, bad):
    stream.arm()
    fill(valves, stream, [50e3] * 3)
    until(is_at(valves, [0.0] * 3), stream, bad)


def test_names_may_come_in_any_order_but_must_be_the_robots():
    assert in_order(NAMES[::-1], [1.0, 2.0, 3.0], NAMES) == (3.0, 2.0, 1.0)
    for names in (['left', 'right', 'top'], NAMES[:2], [*NAMES[:2], NAMES[0]]):
        with pytest.raises(ValueError, match='must name every chamber of the robot once'):
            in_order(names, [0.0] * len(names), NAMES)
    with pytest.raises(ValueError, match='2 pressures for 3 names'):
        in_order(NAMES, [0.0] * 2, NAMES)


def test_too_much_is_never_put_out(valves, stream):
    stream.arm()
    fill(valves, stream, [50e3] * 3)
    until(is_at(valves, [100e3, 0.0, 100e3]), stream, [190e3, -190e3, 100e3 + 1])
    assert max(valves.highest) <= LIMITS.pressure_max


def test_disarm_and_emergency_stop_vent(valves, stream):
    for vent in (stream.disarm, stream.emergency_stop):
        stream.disarm()
        stream.arm()
        fill(valves, stream, [50e3] * 3)
        vent()
        until(is_at(valves, [0.0] * 3), stream, [50e3] * 3)


def test_close_vents(valves, stream):
    stream.arm()
    fill(valves, stream, [50e3] * 3)
    stream.close()
    assert is_at(valves, [0.0] * 3)()


def test_restarted_device_is_filled_again_only_by_who_begins_at_zero(valves, stream):
    stream.arm()
    fill(valves, stream, [50e3] * 3)
    received, reconnects = stream.health.received, stream.health.reconnects
    valves.faults.restart = True
    valves.commanded()  # the stream checks now
    until(lambda: stream.health.reconnects > reconnects, stream, [50e3] * 3)
    until(lambda: 'waits for a command near zero' in stream.status().message, stream, [50e3] * 3)
    until(lambda: stream.health.received > received + 20, stream, [50e3] * 3)
    assert not any(valves.commanded()[:3])
    fill(valves, stream, [50e3] * 3)


def test_a_chamber_measured_too_high_ends_it_with_a_line(valves, stream):
    stream.arm()
    valves.set_actual([50e3] * 3)
    fill(valves, stream, [50e3] * 3)
    valves.set_actual([50e3, 115e3, 50e3])
    until(lambda: 'vented: middle measured above 110000 Pa' in stream.status().message, stream, [50e3] * 3)
    assert stream.status().level == ERROR
    until(is_at(valves, [0.0] * 3), stream, [50e3] * 3)
    valves.set_actual([0.0] * 3)
    received = stream.health.received
    until(lambda: stream.health.received > received + 50, stream, [0.0] * 3)
    assert is_at(valves, [0.0] * 3)()
    assert 'middle' in stream.status().message


def test_silent_device_is_reported_and_found_again(valves, stream):
    until(lambda: stream.health.received > 5, stream)
    valves.faults.silent = True
    until(lambda: stream.error, stream)
    assert stream.status().level == ERROR
    valves.faults.clear()
    received = stream.health.received
    until(lambda: not stream.error and stream.health.received > received + 5, stream)
    assert stream.health.reconnects >= 1


class Obedient:
    """A device that reports its outputs as measurements and records them; the first few requests time out."""

    sequence_bits = 32
    malformed = 0
    about, watchdog, late_writes_excluded = 'obedient', 1.0, True

    def __init__(self, mute=0):
        self.mute = mute
        self.outputs = []

    def open(self):
        pass

    def read(self):
        held = self.outputs[-1] if self.outputs else np.zeros(3)
        return [Reading(held, time.time_ns())] if len(self.outputs) > self.mute else []

    def write(self, pressure, decided_t=None):
        self.outputs.append(pressure)

    def close(self):
        pass


def fill_obedient(device, limits):
    """Return a stream that has brought the device from zero to 50 kPa."""
    stream = PressureStream(device, NAMES, limits)
    stream.arm()
    follows = lambda: bool(device.outputs) and np.min(device.outputs[-1]) >= 50e3  # noqa: E731
    until(lambda: stream.status().message == 'following commands', stream, [0.0] * 3)
    until(follows, stream, [50e3] * 3)
    return stream


def test_a_device_is_vented_until_it_answers():
    device = Obedient(mute=20)
    fill_obedient(device, LIMITS)
    assert not np.any(device.outputs[: device.mute + 1])  # the last one precedes the first answer


@pytest.mark.parametrize('disarm', [False, True])
def test_deactivation_and_close_are_a_ramp(disarm):
    """The largest step is that of the longest cycle that counts: two cycles."""
    device = Obedient()
    stream = fill_obedient(device, LIMITS)
    first = len(device.outputs) - 1
    if disarm:
        stream.disarm()
        until(lambda: not device.outputs[-1].any(), stream)
    stream.close()
    falls = -np.diff(device.outputs[first:], axis=0)
    assert np.all((falls >= 0.0) & (falls <= LIMITS.vent_rate * 2.0 * LIMITS.cycle + 1e-6))
    assert not device.outputs[-1].any()


class Absent:
    """An absent device; it records each attempt to connect."""

    sequence_bits = 32
    malformed = 0
    about, watchdog, late_writes_excluded = 'absent', 1.0, True

    def __init__(self):
        self.times = []

    def open(self):
        self.times.append(time.monotonic())
        raise DeviceError('nobody')

    def read(self):
        raise AssertionError

    def close(self):
        pass


def test_absent_device_is_looked_for_with_growing_pauses():
    device = Absent()
    stream = PressureStream(device, NAMES, LIMITS)
    deadline = time.monotonic() + PATIENCE_S
    while len(device.times) < 4:
        assert time.monotonic() < deadline
        stream.poll()
    assert np.all(np.diff(device.times) >= [0.125, 0.25, 0.5])  # half: a message may be delayed in transit
    assert stream.status()[:2] == (ERROR, 'nobody')


def test_state_is_told(valves, stream):
    until(lambda: stream.status()[:2] == (OK, 'vented: disarmed'), stream)
    stream.arm()
    until(lambda: stream.status()[:2] == (WARN, 'vented: no command yet'), stream)
    until(lambda: stream.status()[:2] == (OK, 'following commands'), stream, [1e3] * 3)
    until(lambda: stream.status()[:2] == (WARN, 'vented: no command for 0.2 s'), stream)
    stream.emergency_stop()
    until(lambda: stream.status()[:2] == (ERROR, 'vented: emergency stop'), stream)


def test_limits_and_names_are_those_of_the_robot():
    stream = make_stream(PressureConfig(robot='pneumatic_arm'))
    assert stream.names[:5] == ['joint1_p0', 'joint1_p1', 'joint1_p2', 'joint1_p3', 'joint2_p0']
    assert stream._guard.limits == PressureLimits(150e3, 0.0, 2e6, 1.0, 0.2, 0.05, 0.005)


WATCHDOG = ModbusConfig(response_timeout=0.05, device_timeout=0.1)


@pytest.mark.parametrize(
    ('change', 'problem'),
    [
        ({'device': 'can'}, 'device must be one of modbus, serial'),
        ({'rate': 0.0}, 'rate'),
        ({'rate': 9.0}, 'rate must be at least 10 Hz for honeycomb_arm, got 9'),
        ({'rate': 14.0}, 'rate must be at least 15 Hz for a device with a watchdog of 0.2 s, got 14'),
        (
            {'device': 'serial', 'rate': 14.0},
            'rate must be at least 15 Hz for a device with a watchdog of 0.2 s',
        ),
        (
            {'rate': 29.0, 'modbus': WATCHDOG},
            'rate must be at least 30 Hz for a device with a watchdog of 0.1 s',
        ),
        ({'robot': 'no_arm'}, "no robot 'no_arm'; shipped are"),
        ({'channels': (1, 2)}, 'channels must have 16 entries'),
        ({'modbus': ModbusConfig(register_map='none')}, "no register map 'none'; shipped are"),
        ({'device': 'serial', 'serial': SerialConfig(baud=9600)}, 'baud'),
    ],
)
def test_nonsense_is_refused(change, problem):
    with pytest.raises((ValueError, OSError), match=problem):
        make_stream(PressureConfig(**change))


@pytest.mark.parametrize(
    ('changes', 'problem'),
    [
        ({'device_timeout': 1.001}, 'device_timeout must be > 0 and <= 1 s, got 1.001'),
        ({'device_timeout': 0.0}, 'device_timeout must be > 0'),
        ({'device_timeout': float('nan')}, 'device_timeout must be > 0'),
        ({'response_timeout': 0.2}, 'response_timeout must be > 0 and < device_timeout 0.2 s, got 0.2'),
        ({'response_timeout': float('nan')}, 'response_timeout must be > 0'),
    ],
)
def test_time_outs_that_protect_nothing_are_refused(changes, problem):
    """I13."""
    with pytest.raises(ValueError, match=problem):
        ModbusConfig(**changes)
