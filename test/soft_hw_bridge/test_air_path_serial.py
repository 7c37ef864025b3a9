"""State machine of the air path with a microcontroller: real stream, guard and device, compiled reference firmware.

Epoch, sequence and validity time close the gap of Modbus: the invariants of test_air_path.py hold without exception.
"""

from __future__ import annotations

from typing import Any

import pytest
from fake_node import CODEC, FakeNode
from fake_valves import WIRE_S, Applied, World
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from test_air_path import CHAMBERS, DURATIONS, FILLED, NAMES, RUNS, VALVES, AirPath, Stop, Stopped, run_steps

from soft_dynamics.diagnostics import OK
from soft_hw_bridge.pressure.guard import PressureLimits
from soft_hw_bridge.pressure.serial_device import SerialConfig, SerialPressure
from soft_hw_bridge.pressure.serial_protocol import VALID_S, WATCHDOG_S, Message
from soft_hw_bridge.pressure.stream import Clock, PressureStream


class SerialAirPath(AirPath):
    """A serial line; the device discards late messages and messages that do not follow from its current state."""

    lateness = VALID_S / WATCHDOG_S
    application_stopped = None  # the device has none
    another_master_insists = None  # needs more than one write
    under_way = 1.5 * WIRE_S
    watchdog_rewritten = None  # impossible on a serial line

    @initialize(
        rate=st.sampled_from([15.0, 30.0, 100.0, 200.0, 1000.0]),
        silence=st.sampled_from([0.02, 0.1, 0.19]),
        slew=st.sampled_from([5e4, 1e6, 1e8]),
        lag=st.sampled_from([0.0, 0.05, 0.3]),
        channels=st.sampled_from([(0, 1, 2), (5, 0, 3)]),
        command_timeout=st.sampled_from([0.05, 0.2, 1.0]),
        t_us=st.sampled_from([0, 2**31, 2**32 - 1_000_000]),
        vacuum=st.sampled_from([0.0, -60e3]),
    )
    def build(self, rate, silence, slew, lag, channels, command_timeout, t_us, vacuum) -> None:
        self.world = World()
        self.limits = PressureLimits(
            pressure_max=240e3,
            pressure_min=vacuum,
            slew=slew,
            vent_time=0.5,
            command_timeout=command_timeout,
            valve_lag=lag,
            cycle=1 / rate,
        )
        self.terminal: Any = FakeNode(self.world, VALVES, lag, t_us)
        stop: Any = Stop(self.world)
        device = SerialPressure(
            SerialConfig(baud=4_000_000, silence=silence),
            channels,
            self.limits,
            rate,
            self.world.now_ns,
            stop,
            self.world.now,
            self.wait,
            self.terminal.connect,
        )
        self.watchdog, self.channels = WATCHDOG_S, list(channels)
        clock = Clock(self.world.now, self.world.now_ns, self.world.sleep)
        self.stream = PressureStream(Stopped(device, self.world), NAMES, self.limits, clock)
        self.start_state()

    def wait(self, duration: float) -> None:
        """Wait the backoff of the device."""
        self.world.point('wait')
        self.world.run_until(self.world.boot + duration)

    @precondition(lambda self: not self.closed)
    @rule(
        valve=st.integers(0, CHAMBERS - 1),
        count=st.sampled_from([0, 1, 500, 2400]),
        kind=st.sampled_from(['follows', 'between read and write', 'opens']),
        is_filled=FILLED,
    )
    def second_master(self, valve: int, count: int, kind: str, is_filled: bool) -> None:
        """I8: the bridge notices the other master within two cycles, whatever it sends."""
        self.lead_to_pressure(is_filled)
        if self.is_open():
            losses = self.stream.losses
            values = list(map(int, self.terminal.setpoints()))
            values[self.channels[valve]] = 100 * count + 7
            if kind == 'between read and write':
                self.stream.poll(lambda: self.terminal.intrude(tuple(values)))
            else:
                self.terminal.intrude(None if kind == 'opens' else tuple(values))
            level = max(self.poll().level, self.poll().level)
            assert self.stream.losses > losses
            assert level > OK

    @precondition(lambda self: not self.closed)
    @rule(
        damage=st.sampled_from(['flip', 'cut', 'empty', 'flood', 'other channels', 'failure']),
        is_filled=FILLED,
    )
    def damaged_answer(self, damage: str, is_filled: bool) -> None:
        """I10: `poll` raises nothing, and the bridge rejects damaged answers."""
        self.lead_to_pressure(is_filled)
        losses, was_open = self.stream.losses, self.is_open()
        head = (1, 1, 1, 1)
        self.terminal.damage = {
            'flip': lambda a: a[:7] + bytes([a[7] ^ 0x55]) + a[8:] if a else a,
            'cut': lambda a: a[:-3] + a[-1:],
            'empty': lambda a: b'',
            'flood': lambda a: b'\x07' * 20_000 + a,
            'other channels': lambda a: CODEC.encode(Message('P', head, (0,) * 2)) if a else a,
            'failure': lambda a: CODEC.encode(Message('E', (3,))) if a else a,
        }[damage]
        self.poll()
        assert self.stream.losses > losses or not was_open
        self.terminal.damage = lambda answer: answer

    @precondition(lambda self: not self.closed)
    @rule(noise=st.lists(st.integers(0, 60), min_size=1, max_size=12), is_filled=FILLED)
    def noise_on_the_line(self, noise: list[int], is_filled: bool) -> None:
        """Damage messages to the device; the bridge repeats them."""
        self.lead_to_pressure(is_filled)
        self.terminal.noise.extend(noise)
        self.go_on()

    @precondition(lambda self: not self.closed)
    @rule(data=st.binary(max_size=300), is_filled=FILLED)
    def garbage_to_the_device(self, data: bytes, is_filled: bool) -> None:
        self.lead_to_pressure(is_filled)
        self.terminal.answer(data, self.world.boot, self.terminal.connections)
        self.go_on(3)

    @precondition(lambda self: not self.closed)
    @rule(duration=DURATIONS, after=st.integers(0, 12))
    def held_while_venting(self, duration: float, after: int) -> None:
        """Deliver old set points that are higher than the current ones."""
        self.lead_to_pressure(True)
        self.terminal.requests.delays.extend([0.0] * after + [duration])
        self.disarm()
        self.go_on(40)

    @precondition(lambda self: not self.closed)
    @rule(duration=DURATIONS, count=st.integers(1, 20), is_filled=FILLED)
    def line_stands_still(self, duration: float, count: int, is_filled: bool) -> None:
        """Deliver all messages of several cycles together, late."""
        self.lead_to_pressure(is_filled)
        self.terminal.requests.delays.extend([duration] * count)
        self.go_on()

    def judge_write(self, applied: Applied) -> None:
        super().judge_write(applied)
        assert self.terminal.ages[self.judged - 1] <= VALID_S + 2e-6, 'the time for which it was valid'

    @invariant()
    def nothing_is_sent_too_late(self) -> None:
        """Contact lease: the host holds set points back if the measurement behind them is too old."""
        assert self.terminal.oldest <= VALID_S

    def is_exempt(self, applied: Applied) -> bool:
        return False


@pytest.mark.parametrize('after', range(4))
def test_an_emergency_stop_is_confirmed_by_what_the_device_holds(after: int) -> None:
    """I12: the venting message is held in transit."""
    build = {'silence': 0.1, 'slew': 1e6, 'lag': 0.0, 'channels': (0, 1, 2), 'command_timeout': 0.2}
    stop = {'is_filled': True, 'held': 0.05, 'after': after}
    machine = SerialAirPath()
    run_steps(machine, build | {'rate': 100.0, 't_us': 0, 'vacuum': 0.0}, [('emergency_stop', stop)])


TestSerialAirPath = SerialAirPath.TestCase
TestSerialAirPath.settings = RUNS
