"""Guard, stream and device together: what the emulated valves see."""

import threading
import time

import numpy as np
import pytest

from soft_dynamics.counters import ERROR, OK, WARN
from soft_hw_bridge.emulators.modbus import ModbusEmulator, MpaTerminal
from soft_hw_bridge.emulators.serial import SerialEmulator
from soft_hw_bridge.errors import DeviceError
from soft_hw_bridge.pressure.config import PressureConfig, make_stream
from soft_hw_bridge.pressure.device import Reading
from soft_hw_bridge.pressure.modbus import ModbusConfig, ModbusPressure
from soft_hw_bridge.pressure.register_map import load_register_map
from soft_hw_bridge.pressure.safety import PressureLimits
from soft_hw_bridge.pressure.serial_port import SerialConfig, SerialPressure
from soft_hw_bridge.pressure.stream import PressureStream

LIMITS = PressureLimits(pressure_max=100e3, slew=1e6, vent_time=0.2, command_timeout=0.2)
CHANNELS = (0, 1, 2)
NAMES = ['base', 'middle', 'tip']
PATIENCE_S = 30.0


@pytest.fixture(params=['modbus', 'serial'])
def valves(request):
    emulator = ModbusEmulator(MpaTerminal()) if request.param == 'modbus' else SerialEmulator(3)
    yield emulator
    emulator.close()


class Runner:
    """Polls a stream in a thread, as the node does."""

    def __init__(self, stream):
        self.stream = stream
        self.measured = []
        self.running = True
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while self.running:
            self.measured += self.stream.poll()

    def close(self):
        self.running = False
        self.thread.join()
        self.stream.close()


@pytest.fixture
def runner(valves):
    if isinstance(valves, ModbusEmulator):
        config = ModbusConfig('127.0.0.1', valves.port, response_timeout=1.0)
        device = ModbusPressure(config, load_register_map('festo_mpa_vppm'), CHANNELS, LIMITS)
    else:
        device = SerialPressure(SerialConfig(valves.port, silence=1.0), CHANNELS, rate=200.0)
    runner = Runner(PressureStream(device, NAMES, LIMITS, 200.0))
    yield runner
    runner.close()


@pytest.fixture
def stream(runner):
    return runner.stream


def until(condition, stream, pressure=None):
    """Wait for the condition, sending the command meanwhile if there is one."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f'nothing after {PATIENCE_S} s: {stream.status()}'
        if pressure is not None:
            stream.command(NAMES, pressure)
        time.sleep(0.01)


def fill(valves, stream, pressure):
    """Command zero until that is followed, as a controller does, and then the pressure until it is there."""
    until(lambda: 'following commands' in stream.status().message, stream, [0.0] * 3)
    until(is_at(valves, pressure), stream, pressure)


def is_at(valves, pressure):
    return lambda: valves.commanded()[:3] == pytest.approx(pressure, abs=1.0)


def test_commands_out_measurements_in(valves, runner, stream):
    stream.arm()
    valves.set_actual([1000.0, 2000.0, 3000.0])
    fill(valves, stream, [10e3, 20e3, 30e3])
    runner.measured.clear()
    until(lambda: len(runner.measured) > 50, stream)
    stamps = [measured.stamp_ns for measured in runner.measured]
    assert stamps == sorted(stamps)
    np.testing.assert_allclose(runner.measured[-1].pressure, [1000.0, 2000.0, 3000.0], atol=1.0)
    assert stream.health.lost == 0


def test_chamber_that_does_not_follow_is_told(valves, stream):
    stream.arm()
    valves.set_actual([50e3, 50e3, 0.0])
    fill(valves, stream, [50e3] * 3)
    told = (WARN, 'following commands; measured far from what was put out')
    until(lambda: stream.status()[:2] == told, stream, [50e3] * 3)
    assert stream.status().values['astray'] == 'tip'
    valves.set_actual([50e3, 0.0, 0.0])
    until(lambda: stream.status().values['astray'] == 'middle tip', stream, [50e3] * 3)
    assert stream.status()[:2] == told  # the state is the same, and so is its line
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


def test_names_may_come_in_any_order_but_must_be_the_robots(valves, stream):
    stream.arm()
    fill(valves, stream, [1e3, 2e3, 3e3])
    deadline = time.monotonic() + PATIENCE_S
    while not is_at(valves, [30e3, 20e3, 10e3])():
        assert time.monotonic() < deadline
        stream.command(NAMES[::-1], [10e3, 20e3, 30e3])
        time.sleep(0.01)
    stream.command(['left', 'right', 'top'], [10e3] * 3)
    level, line, _ = stream.status()  # that nothing was measured meanwhile may follow in the line
    assert level == WARN
    assert line.startswith('vented: command for other chambers than those of the robot')
    until(is_at(valves, [0.0] * 3), stream)


def test_too_much_is_never_put_out(valves, stream):
    stream.arm()
    fill(valves, stream, [50e3] * 3)
    until(is_at(valves, [100e3, 0.0, 100e3]), stream, [1e12, -1e12, 100e3 + 1])
    assert max(valves.highest) <= LIMITS.pressure_max


def test_disarm_and_emergency_stop_vent(valves, stream):
    for vent in (stream.disarm, stream.emergency_stop):
        stream.disarm()
        stream.arm()
        fill(valves, stream, [50e3] * 3)
        vent()
        until(is_at(valves, [0.0] * 3), stream, [50e3] * 3)


def test_close_vents(valves, runner, stream):
    stream.arm()
    fill(valves, stream, [50e3] * 3)
    runner.close()
    until(is_at(valves, [0.0] * 3), stream)


def test_restarted_device_is_filled_again_only_by_who_begins_at_zero(valves, stream):
    stream.arm()
    fill(valves, stream, [50e3] * 3)
    received, reconnects = stream.health.received, stream.health.reconnects
    valves.faults.restart = True
    valves.commanded()  # it looks now
    if isinstance(valves, ModbusEmulator):
        until(lambda: stream.health.reconnects > reconnects, stream, [50e3] * 3)
        until(lambda: 'waits for a command near zero' in stream.status().message, stream, [50e3] * 3)
    until(lambda: stream.health.received > received + 20, stream, [50e3] * 3)
    if isinstance(valves, ModbusEmulator):
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
    time.sleep(0.3)
    until(is_at(valves, [0.0] * 3), stream, [0.0] * 3)
    assert 'middle' in stream.status().message


class Intruder:
    """A lock that another thread gets just ahead of whoever asks for it, and commands."""

    def __init__(self, guard):
        self.guard, self.reasons = guard, []

    def __enter__(self):
        time.sleep(0.001)
        self.guard.command(time.monotonic(), [0.0] * 3)

    def __exit__(self, *_):
        self.reasons.append(self.guard.reason)


def test_a_command_of_another_thread_just_ahead_of_a_cycle_is_followed():
    stream = PressureStream(Obedient(), NAMES, LIMITS, 100.0)
    stream.arm()
    stream.poll()  # it answers
    stream._lock = Intruder(stream._guard)
    for _ in range(5):
        stream.poll()
    assert set(stream._lock.reasons) == {''}


def test_silent_device_is_reported_and_found_again(valves, stream):
    until(lambda: stream.health.received > 5, stream)
    valves.faults.silent = True
    until(lambda: stream.error, stream)
    if isinstance(valves, SerialEmulator):  # its port opens all the same
        reconnects = stream.health.reconnects
        until(lambda: stream.health.reconnects > reconnects, stream)
        assert stream.status().level == ERROR
    valves.faults.clear()
    received = stream.health.received
    until(lambda: not stream.error and stream.health.received > received + 5, stream)
    assert stream.health.reconnects >= 1


class Obedient:
    """A device that measures what was put out, and notes it; it does not answer the first few times."""

    sequence_bits = 32
    malformed = 0
    about, has_watchdog = 'obedient', True

    def __init__(self, mute=0):
        self.mute = mute
        self.outputs = []

    def open(self):
        pass

    def exchange(self, pressure):
        self.outputs.append(pressure)
        return [Reading(pressure, time.time_ns())] if len(self.outputs) > self.mute else []

    def close(self):
        pass


def test_a_device_is_vented_until_it_answers():
    device = Obedient(mute=20)
    stream = PressureStream(device, NAMES, LIMITS, 1000.0)
    stream.arm()
    deadline = time.monotonic() + PATIENCE_S
    while not device.outputs or not device.outputs[-1].all():
        assert time.monotonic() < deadline, stream.status()
        for pressure in (0.0, 50e3):
            stream.command(NAMES, [pressure] * 3)
        stream.poll()
    assert not np.any(device.outputs[: device.mute + 1])  # the last of them is the first that it answers


def test_deactivation_and_close_are_a_ramp():
    """The largest step is that of the longest cycle which counts."""
    for disarm in (False, True):
        device = Obedient()
        stream = PressureStream(device, NAMES, LIMITS, 200.0)
        stream.arm()
        deadline = time.monotonic() + PATIENCE_S
        while not device.outputs or np.max(device.outputs[-1]) < 50e3:
            assert time.monotonic() < deadline, stream.status()
            stream.command(NAMES, [0.0 if stream._guard.reason else 50e3] * 3)
            stream.poll()
        first = len(device.outputs) - 1
        if disarm:
            stream.disarm()
            while device.outputs[-1].any():
                assert time.monotonic() < deadline
                stream.poll()
        stream.close()
        falls = -np.diff(device.outputs[first:], axis=0)
        assert np.all((falls >= 0.0) & (falls <= LIMITS.vent_rate * 0.05 + 1e-6))
        assert not device.outputs[-1].any()


class Absent:
    """A device that is not there; it notes when it was looked for."""

    sequence_bits = 32
    malformed = 0
    about, has_watchdog = 'absent', True

    def __init__(self):
        self.times = []

    def open(self):
        self.times.append(time.monotonic())
        raise DeviceError('nobody')

    def exchange(self, _):
        raise AssertionError

    def close(self):
        pass


def test_absent_device_is_looked_for_with_growing_pauses():
    device = Absent()
    stream = PressureStream(device, NAMES, LIMITS, 100.0)
    deadline = time.monotonic() + PATIENCE_S
    while len(device.times) < 4:
        assert time.monotonic() < deadline
        stream.poll()
    assert np.all(np.diff(device.times) >= [0.125, 0.25, 0.5])  # half: it may be held up on the way
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
    assert stream._guard.limits == PressureLimits(150e3, 0.0, 2e6, 1.0, 0.2)


@pytest.mark.parametrize(
    ('change', 'problem'),
    [
        ({'device': 'can'}, 'device must be one of modbus, serial'),
        ({'rate': 0.0}, 'rate'),
        ({'rate': 9.0}, 'rate must be at least 10 Hz for honeycomb_arm, got 9'),
        ({'robot': 'no_arm'}, "no robot 'no_arm'; shipped are"),
        ({'channels': (1, 2)}, 'channels must have 16 entries'),
        ({'modbus': ModbusConfig(register_map='none')}, "no register map 'none'; shipped are"),
        ({'device': 'serial', 'serial': SerialConfig(baud=9600)}, 'baud'),
    ],
)
def test_nonsense_is_refused(change, problem):
    with pytest.raises((ValueError, OSError), match=problem):
        make_stream(PressureConfig(**change))
