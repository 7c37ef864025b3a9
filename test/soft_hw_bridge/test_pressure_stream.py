"""Guard, stream and device together: what the emulated valves see."""

import queue
import threading
import time

import numpy as np
import pytest

from soft_dynamics.boot_time import boot_time
from soft_dynamics.counters import ERROR, OK, WARN
from soft_hw_bridge.emulators.modbus import ModbusEmulator, MpaTerminal
from soft_hw_bridge.emulators.serial import SerialEmulator
from soft_hw_bridge.errors import DeviceError
from soft_hw_bridge.pressure.command import Command, in_order
from soft_hw_bridge.pressure.config import PressureConfig, make_stream
from soft_hw_bridge.pressure.device import Reading
from soft_hw_bridge.pressure.modbus import ModbusConfig, ModbusPressure
from soft_hw_bridge.pressure.register_map import load_register_map
from soft_hw_bridge.pressure.safety import PressureLimits
from soft_hw_bridge.pressure.serial_port import SerialConfig, SerialPressure
from soft_hw_bridge.pressure.stream import PressureStream

LIMITS = PressureLimits(maximum=100e3, slew=1e6, vent_time=0.2, command_timeout=0.2, valve_lag=0.1)
CHANNELS = (0, 1, 2)
NAMES = ['base', 'middle', 'tip']
PATIENCE_S = 30.0


@pytest.fixture(params=['modbus', 'serial'])
def valves(request):
    emulator = ModbusEmulator(MpaTerminal()) if request.param == 'modbus' else SerialEmulator(3)
    yield emulator
    emulator.close()


class Runner:
    """Polls a stream in a thread, as the device process does, and commands in each cycle what is wanted."""

    def __init__(self, stream):
        self.stream = stream
        self.measured = []
        self.wanted = None  # None: no commands
        self._commands = Commands(stream)
        self._requests = queue.SimpleQueue()
        self._running = True
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def request(self, action):
        """Do this between two cycles, as the device process does with requests; wait for it."""
        done = threading.Event()
        self._requests.put(lambda: (action(), done.set()))
        assert done.wait(PATIENCE_S)

    def close(self):
        self._running = False
        self._thread.join()
        self.stream.close()

    def _run(self):
        while self._running:
            self.measured += self.stream.poll(self._take)

    def _take(self):
        while not self._requests.empty():
            self._requests.get()()
        if self.wanted is not None:
            self._commands.send(self.wanted)


class Commands:
    """A publisher that begins near zero when it has to."""

    def __init__(self, stream):
        self.stream, self.sequence = stream, 0

    def send(self, pressure):
        self.sequence += 1
        if 'near zero' in self.stream.status().message:
            pressure = [0.0] * 3
        command = Command(boot_time(), time.time_ns(), self.sequence, False, b'', tuple(pressure))
        self.stream.command(command)


@pytest.fixture
def runner(valves):
    if isinstance(valves, ModbusEmulator):
        config = ModbusConfig('127.0.0.1', valves.port, response_timeout=0.15, device_timeout=0.2)
        device = ModbusPressure(config, load_register_map('festo_mpa_vppm'), CHANNELS, LIMITS)
    else:
        device = SerialPressure(SerialConfig(valves.port), CHANNELS, LIMITS, rate=200.0)
    runner = Runner(PressureStream(device, NAMES, LIMITS))
    yield runner
    runner.close()


@pytest.fixture
def stream(runner):
    return runner.stream


def until(condition, runner, pressure=None):
    """Wait for the condition; command the pressure meanwhile, if there is one."""
    runner.wanted = pressure
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f'nothing after {PATIENCE_S} s: {runner.stream.status()}'
        time.sleep(0.01)


def fill(valves, runner, pressure):
    """Arm, and command the pressure until it is there."""
    runner.request(runner.stream.arm)
    until(is_at(valves, pressure), runner, pressure)


def is_at(valves, pressure):
    return lambda: valves.commanded()[:3] == pytest.approx(pressure, abs=100.0)


def test_commands_out_measurements_in(valves, runner, stream):
    fill(valves, runner, [10e3, 20e3, 30e3])
    valves.set_actual([1000.0, 2000.0, 3000.0])
    runner.measured.clear()
    until(lambda: len(runner.measured) > 50, runner, [10e3, 20e3, 30e3])
    stamps = [measured.stamp_ns for measured in runner.measured]
    assert stamps == sorted(stamps)
    np.testing.assert_allclose(runner.measured[-1].pressure, [1000.0, 2000.0, 3000.0], atol=1.0)


def test_chamber_that_does_not_follow_is_told(valves, runner, stream):
    fill(valves, runner, [50e3] * 3)
    valves.set_actual([50e3, 50e3, 0.0])
    told = (WARN, 'following commands; measured far from what was put out')
    until(lambda: stream.status()[:2] == told, runner, [50e3] * 3)
    assert stream.status().values['astray'] == 'tip'
    valves.set_actual([50e3, 0.0, 0.0])
    until(lambda: stream.status().values['astray'] == 'middle tip', runner, [50e3] * 3)
    assert stream.status()[:2] == told  # the state is the same, and so is its line
    valves.set_actual([50e3] * 3)
    until(lambda: stream.status()[:2] == (OK, 'following commands'), runner, [50e3] * 3)


def test_vents_when_commands_stop(valves, runner):
    fill(valves, runner, [50e3] * 3)
    until(is_at(valves, [0.0] * 3), runner)
    assert max(valves.highest) <= LIMITS.maximum


@pytest.mark.parametrize('bad', [[float('nan')] * 3, [float('inf'), 0.0, 0.0], [1.0], []])
def test_bad_commands_vent(valves, runner, bad):
    fill(valves, runner, [50e3] * 3)
    until(is_at(valves, [0.0] * 3), runner, bad)


def test_too_much_is_never_put_out(valves, runner):
    fill(valves, runner, [50e3] * 3)
    until(is_at(valves, [100e3, 0.0, 100e3]), runner, [199e3, -199e3, 100e3 + 1])
    assert max(valves.highest) <= LIMITS.maximum


def test_disarm_and_emergency_stop_vent(valves, runner, stream):
    for vent in (stream.disarm, stream.emergency_stop):
        runner.request(stream.disarm)
        fill(valves, runner, [50e3] * 3)
        runner.request(vent)
        until(is_at(valves, [0.0] * 3), runner, [50e3] * 3)


def test_close_vents(valves, runner):
    fill(valves, runner, [50e3] * 3)
    runner.close()
    until(is_at(valves, [0.0] * 3), runner)


def test_restarted_device_is_lost_and_filled_again_from_zero(valves, runner, stream):
    fill(valves, runner, [50e3] * 3)
    losses = stream.losses
    valves.faults.restart = True
    valves.commanded()  # it looks now
    until(lambda: stream.losses > losses, runner, [50e3] * 3)
    until(is_at(valves, [50e3] * 3), runner, [50e3] * 3)
    assert stream.health.reconnects >= 1


def test_a_chamber_measured_too_high_ends_it_with_a_line(valves, runner, stream):
    fill(valves, runner, [50e3] * 3)
    valves.set_actual([50e3, 115e3, 50e3])
    line = 'vented: middle measured above 110000 Pa'
    until(lambda: line in stream.status().message, runner, [50e3] * 3)
    assert stream.status().level == ERROR
    until(is_at(valves, [0.0] * 3), runner, [50e3] * 3)
    valves.set_actual([0.0] * 3)
    received = stream.health.received
    until(lambda: stream.health.received > received + 50, runner, [0.0] * 3)
    assert is_at(valves, [0.0] * 3)()
    assert 'middle' in stream.status().message


def test_silent_device_is_reported_and_found_again(valves, runner, stream):
    until(lambda: stream.health.received > 5, runner)
    valves.faults.silent = True
    until(lambda: stream.error, runner)
    assert stream.status().level == ERROR
    valves.faults.clear()
    received = stream.health.received
    until(lambda: not stream.error and stream.health.received > received + 5, runner)
    assert stream.health.reconnects >= 1


def test_state_is_told(valves, runner, stream):
    until(lambda: stream.status()[:2] == (OK, 'vented: disarmed'), runner)
    runner.request(stream.arm)
    until(lambda: stream.status()[:2] == (WARN, 'vented: no command yet'), runner)
    until(lambda: stream.status()[:2] == (OK, 'following commands'), runner, [1e3] * 3)
    until(lambda: stream.status()[:2] == (WARN, 'vented: no command for 0.2 s'), runner)
    runner.request(stream.emergency_stop)
    until(lambda: stream.status()[:2] == (ERROR, 'vented: emergency stop'), runner)


def test_names_may_come_in_any_order_but_must_be_the_robots():
    assert in_order(NAMES[::-1], [10e3, 20e3, 30e3], NAMES) == (30e3, 20e3, 10e3)
    with pytest.raises(ValueError, match='command for other chambers than those of the robot'):
        in_order(['left', 'right', 'top'], [10e3] * 3, NAMES)
    with pytest.raises(ValueError, match='2 pressures for 3 names'):
        in_order(NAMES, [10e3] * 2, NAMES)


class Obedient:
    """A device that measures what was put out, and notes it; it does not answer the first few times."""

    sequence_bits = 32
    malformed = 0
    about, watchdog, late_writes_excluded = 'obedient', 0.2, True

    def __init__(self, mute=0):
        self.mute = mute
        self.outputs = []

    def open(self):
        pass

    def read(self):
        is_mute = len(self.outputs) < self.mute
        return [] if is_mute else [Reading(self.outputs[-1] if self.outputs else np.zeros(3), time.time_ns())]

    def write(self, pressure):
        self.outputs.append(pressure)

    def close(self):
        pass


def drive(stream, pressure, condition):
    """Poll and command until the condition holds."""
    commands = Commands(stream)
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, stream.status()
        stream.poll(lambda: commands.send(pressure))


def test_a_device_is_vented_until_it_answers():
    device = Obedient(mute=20)
    stream = PressureStream(device, NAMES, LIMITS)
    stream.arm()
    drive(stream, [50e3] * 3, lambda: device.outputs and device.outputs[-1].all())
    assert not np.any(device.outputs[: device.mute + 1])  # the last of them is the first that it answers


def test_deactivation_and_close_are_a_ramp():
    """The largest step is that of the longest cycle which counts."""
    for disarm in (False, True):
        device = Obedient()
        stream = PressureStream(device, NAMES, LIMITS)
        stream.arm()
        drive(stream, [50e3] * 3, lambda device=device: device.outputs and device.outputs[-1].min() >= 50e3)
        first = len(device.outputs) - 1
        if disarm:
            stream.disarm()
            drive(stream, [50e3] * 3, lambda device=device: not device.outputs[-1].any())
        stream.close()
        falls = -np.diff(device.outputs[first:], axis=0)
        assert np.all((falls >= 0.0) & (falls <= 2.0 * LIMITS.vent_rate * LIMITS.cycle + 1e-6))
        assert not device.outputs[-1].any()


class Absent:
    """A device that is not there; it notes when it was looked for."""

    sequence_bits = 32
    malformed = 0
    about, watchdog, late_writes_excluded = 'absent', 0.2, True

    def __init__(self):
        self.times = []

    def open(self):
        self.times.append(time.monotonic())
        raise DeviceError('nobody')

    def close(self):
        pass


def test_absent_device_is_looked_for_with_growing_pauses():
    device = Absent()
    stream = PressureStream(device, NAMES, LIMITS)
    deadline = time.monotonic() + PATIENCE_S
    while len(device.times) < 4:
        assert time.monotonic() < deadline
        stream.poll()
    assert np.all(np.diff(device.times) >= [0.125, 0.25, 0.5])  # half: it may be held up on the way
    assert stream.status()[:2] == (ERROR, 'nobody')


def test_limits_and_names_are_those_of_the_robot():
    stream = make_stream(PressureConfig(robot='pneumatic_arm'))
    assert stream.names[:5] == ['joint1_p0', 'joint1_p1', 'joint1_p2', 'joint1_p3', 'joint2_p0']
    assert stream._guard.limits == PressureLimits(150e3, 0.0, 2e6, 1.0, 0.2, 0.05)


@pytest.mark.parametrize(
    ('change', 'problem'),
    [
        ({'device': 'can'}, 'device must be one of modbus, serial'),
        ({'rate': 0.0}, 'rate'),
        ({'rate': 9.0}, 'rate must be at least 10 Hz for honeycomb_arm, got 9'),
        (
            {'rate': 14.0, 'device': 'serial'},
            'rate must be at least 15 Hz for a device that vents after 0.2 s, got 14',
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
