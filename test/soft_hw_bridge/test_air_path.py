"""State machine of the air path: no fault between command and valve inflates a chamber without the ramp.

The real stream, guard and devices drive a fake terminal in simulated time (fake_valves.py). This module injects faults;
air_path_judge.py checks the invariants.
"""

from __future__ import annotations

import contextlib
import math
import os
from typing import Any

import pytest
from air_path_judge import AirPathJudge
from fake_valves import WIRE_S, FakeTerminal, World
from fuzz import fuzz_count
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from soft_dynamics.diagnostics import ERROR, OK
from soft_hw_bridge.pressure.command import Command
from soft_hw_bridge.pressure.guard import PressureLimits
from soft_hw_bridge.pressure.modbus_device import ModbusConfig, ModbusPressure
from soft_hw_bridge.pressure.register_map import Block, DeviceTimeout, RegisterMap, Wait, Write
from soft_hw_bridge.pressure.stream import Clock, PressureStream

CHAMBERS = 3
VALVES = 8
NAMES = ['a', 'b', 'c']
APP = 300
POINTS = ('sleep', 'compose', 'send', 'sent', 'wait', 'answer', 'decide', 'decided')
FILLED = st.booleans()
MOST_CYCLES = 40  # of a rule that inflates
DURATIONS = st.sampled_from([0.001, 0.01, 0.05, 0.12, 0.16, 0.19, 0.21, 0.3, 0.6, 1.1, 3.0])
PRESSURES = st.lists(
    st.sampled_from([0.0, 1e3, 50e3, 240e3, 300e3, -1e3, -50e3, -90e3]), min_size=CHAMBERS, max_size=CHAMBERS
)
NONSENSE = {
    'not finite': [math.nan] * 3,
    'infinite': [math.inf, 0.0, 0.0],
    'huge': [1e308, 0.0, 0.0],
    'huge vacuum': [-1e308] * 3,
    'too few': [1.0],
    'none': [],
    'too many': [0.0] * 10_000,
}


class AirPath(AirPathJudge):
    """Modbus has neither epoch nor validity time, so writes delayed after their last check are counted apart."""

    @initialize(
        rate=st.sampled_from([30.0, 100.0, 200.0, 1000.0]),
        watchdog=st.sampled_from([0.1, 0.2, 1.0]),
        part=st.sampled_from([0.1, 0.5, 0.99]),
        slew=st.sampled_from([5e4, 1e6, 1e8]),
        lag=st.sampled_from([0.0, 0.05, 0.3]),
        ambient=st.sampled_from([0.0, 101_325.0]),
        channels=st.sampled_from([(0, 1, 2), (5, 0, 3)]),
        with_app=st.booleans(),
        command_timeout=st.sampled_from([0.05, 0.2, 1.0]),
        vacuum=st.sampled_from([0.0, -60e3]),
    )
    def build(
        self, rate, watchdog, part, slew, lag, ambient, channels, with_app, command_timeout, vacuum
    ) -> None:
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
        app = APP if with_app else None
        self.terminal = FakeTerminal(self.world, VALVES, 100.0, ambient, lag, app)
        switch: dict[str, Any] = {}
        if with_app:
            switch = {
                'start': (Write('write', APP, 1), Wait('wait', APP, 1)),
                'stop': (Write('write', APP, 0),),
            }
        register_map = RegisterMap(
            1, Block(0), Block(100), VALVES, 100.0, ambient, timeout=DeviceTimeout(200), **switch
        )
        config = ModbusConfig('terminal', response_timeout=part * watchdog, device_timeout=watchdog)
        stop: Any = Stop(self.world)
        device = ModbusPressure(
            config,
            register_map,
            channels,
            self.limits,
            self.world.now_ns,
            stop,
            self.world.now,
            self.terminal.connect,
        )
        self.watchdog, self.channels = watchdog, list(channels)
        self.stream = PressureStream(
            Stopped(device, self.world),
            NAMES,
            self.limits,
            Clock(self.world.now, self.world.now_ns, self.world.sleep),
        )
        self.start_state()

    def lead_to_pressure(self, is_filled: bool) -> None:
        """Inflate the chambers, so that the next fault can do harm; or leave them as they are."""
        if not is_filled:
            return
        self.terminal.listening = True
        if self.stopped or self.rivals_t is not None or self.stream.status().level == ERROR:
            self.disarm()
        if not self.armed:
            self.arm()
        for _ in range(MOST_CYCLES):
            self.follow_once([240e3] * CHAMBERS)
            if max(self.terminal.setpoints()) > 100e3:
                break

    def follow_once(self, pressure: list[float]) -> None:
        """One cycle; the controller starts near zero where the guard requires it."""
        begins = self.stream.status().message.endswith('waits for a command near zero')
        self.command([0.0] * CHAMBERS if begins else pressure)
        self.poll()

    def go_on(self, count: int = 8) -> None:
        """Cycles with a controller that has not noticed the fault."""
        for _ in range(count):
            self.command([240e3] * CHAMBERS)
            self.poll()

    # ---- rules ---------------------------------------------------------------------------------------------------

    @precondition(lambda self: not self.closed)
    @rule(count=st.integers(1, 30))
    def cycles(self, count: int) -> None:
        """Cycles without faults."""
        for _ in range(count):
            self.poll()

    @precondition(lambda self: not self.closed)
    @rule(count=st.integers(1, 100))
    def commands_stop(self, count: int) -> None:
        """I3."""
        self.lead_to_pressure(True)
        for _ in range(count):
            self.poll()

    @precondition(lambda self: not self.closed)
    @rule(pressure=PRESSURES, count=st.integers(1, 40))
    def follow(self, pressure: list[float], count: int) -> None:
        """Command in every cycle, starting near zero where the guard requires it."""
        for _ in range(count):
            self.follow_once(pressure)

    @precondition(lambda self: not self.closed)
    @rule(pressure=PRESSURES, age=st.sampled_from([0.0, 0.04, 0.15, 0.9, 5.0, -0.04, -5.0]))
    def one_command(self, pressure: list[float], age: float) -> None:
        self.command(pressure, age)

    @precondition(lambda self: not self.closed)
    @rule(pressure=PRESSURES, held=DURATIONS, is_hidden=st.booleans(), after=DURATIONS, is_filled=FILLED)
    def late_command(
        self, pressure: list[float], held: float, is_hidden: bool, after: float, is_filled: bool
    ) -> None:
        """Deliver a command late; a wall clock set back hides the delay."""
        self.lead_to_pressure(is_filled)
        decided_t, stamp_ns = self.world.boot, self.world.now_ns()
        self.world.run_until(decided_t + held)
        if is_hidden:
            self.world.wall_offset -= held
        self.command(pressure, age=(self.world.now_ns() - stamp_ns) * 1e-9, decided_t=decided_t)
        self.poll()
        self.world.run_until(self.world.boot + after)
        self.command(pressure, age=(self.world.now_ns() - stamp_ns) * 1e-9, decided_t=decided_t)
        self.poll()

    @precondition(lambda self: not self.closed)
    @rule(
        pressures=st.lists(st.sampled_from([0.0, 240e3, -60e3]), min_size=1, max_size=5),
        held=DURATIONS,
        while_held=st.sampled_from(['nothing', 'trip', 'link', 'arm', 'arm again']),
        is_filled=FILLED,
    )
    def mailbox_held(self, pressures: list[float], held: float, while_held: str, is_filled: bool) -> None:
        """The ROS process receives commands in time, but the device process takes them late: they must not inflate."""
        self.lead_to_pressure(is_filled)
        heard_t, stamp_ns = self.world.boot, self.world.now_ns()
        if while_held == 'trip':
            self.terminal.advance()
            self.terminal.trip()
        elif while_held == 'link':
            self.terminal.listening = False
            self.go_on(2)
            self.terminal.listening = True
        elif while_held in ('arm', 'arm again'):
            self.disarm()
            if while_held == 'arm again':
                self.poll_for(self.limits.ramp_time + 2.0 * self.cycle)
                heard_t, stamp_ns = self.world.boot, self.world.now_ns()
                self.world.run_until(self.world.boot + 1e-3)
            self.arm()
        self.world.run_until(self.world.boot + held)
        for pressure in pressures:
            age = (self.world.now_ns() - stamp_ns) * 1e-9
            self.command([pressure] * CHAMBERS, age, decided_t=heard_t, heard_t=heard_t)
        self.go_on(20)

    @precondition(lambda self: not self.closed)
    @rule(kind=st.sampled_from(sorted(NONSENSE)))
    def nonsense(self, kind: str) -> None:
        self.command(NONSENSE[kind])

    @precondition(lambda self: not self.closed)
    @rule(publisher=st.sampled_from([0, 1]), is_filled=FILLED)
    def unreadable(self, publisher: int, is_filled: bool) -> None:
        """I9, I10: a command that the ROS process cannot read still counts for its publisher."""
        self.lead_to_pressure(is_filled)
        self.sequences[publisher] += 1
        number, refused = self.sequences[publisher], self.refused()
        self.stream.refuse(
            Command(self.world.boot, 0, number, False, b'', ()), 'a command that cannot be read'
        )
        assert self.refused() > refused
        if self.armed:
            self.note_publisher(publisher, is_handover=False)
        self.poll()

    @precondition(lambda self: not self.closed)
    @rule(
        pressure=PRESSURES,
        count=st.integers(1, 40),
        gap=st.sampled_from([3, -3, 10**6, -(10**6)]),
        is_filled=FILLED,
    )
    def second_publisher(self, pressure: list[float], count: int, gap: int, is_filled: bool) -> None:
        """I9: two publishers command at once, with any sequence numbers; the bridge notices in the second round."""
        self.lead_to_pressure(is_filled)
        self.sequences[1] = self.sequences[0] + gap
        for k in range(count):
            for publisher in (0, 1):
                self.command(pressure, publisher=publisher)
            self.poll()
            assert k == 0 or not self.armed or self.stream.status().level > OK

    @precondition(lambda self: not self.closed)
    @rule(
        pressure=PRESSURES,
        declares=st.sampled_from(['both', 'first', 'second', 'none']),
        silent=DURATIONS,
        is_filled=FILLED,
    )
    def successor(self, pressure: list[float], declares: str, silent: float, is_filled: bool) -> None:
        """I9: one publisher replaces another; the chambers vent unless both declare a hand-over."""
        self.lead_to_pressure(is_filled)
        first = self.master or 0
        self.sequences[1 - first] = self.sequences[first] + 10**7
        self.command(pressure, publisher=first)
        self.command(pressure, publisher=first, is_handover=declares in ('both', 'first'))
        self.world.sleep(silent)
        for _ in range(3):
            self.command(pressure, publisher=1 - first, is_handover=declares in ('both', 'second'))
            self.poll()

    @precondition(lambda self: not self.closed)
    @rule()
    def arm(self) -> None:
        if not self.stopped:
            with contextlib.suppress(ValueError):  # a measurement above the limit has stopped the stream
                self.stream.arm()
                self.armed, self.armed_t = True, self.world.boot
                self.forget_publishers()

    @precondition(lambda self: not self.closed)
    @rule(is_filled=FILLED)
    def disarm_and_go_on(self, is_filled: bool) -> None:
        """I6."""
        self.lead_to_pressure(is_filled)
        self.disarm()
        self.go_on(min(int(self.limits.ramp_time / self.cycle) + 8, 300))

    @precondition(lambda self: not self.closed)
    @rule()
    def disarm(self) -> None:
        self.forget_publishers()
        self.stream.disarm()
        self.disarmed_t = self.world.boot if self.armed else self.disarmed_t
        self.armed = self.stopped = False

    @precondition(lambda self: not self.closed)
    @rule(is_filled=FILLED, held=st.sampled_from([0.0, 0.01, 0.05]), after=st.integers(0, 3))
    def emergency_stop(self, is_filled: bool, held: float, after: int) -> None:
        """I12, while a message in transit is held."""
        self.lead_to_pressure(is_filled)
        self.terminal.requests.delays.extend([0.0] * after + [held])
        self.stream.emergency_stop()
        self.armed, self.stopped = False, True
        asked, planned = self.world.boot, self.planned()
        self.stopped_t = asked
        while self.filled() and self.world.boot < asked + 5.0:
            self.poll()
            known = self.stream.vented()
            assert known is None or not known[0] or not self.filled()
        assert self.world.boot <= asked + self.watchdog + 2.0 * self.cycle + 3.0 * WIRE_S + planned

    @precondition(lambda self: not self.closed)
    @rule(point=st.sampled_from(POINTS), duration=DURATIONS, after=st.integers(0, 6), is_filled=FILLED)
    def pause(self, point: str, duration: float, after: int, is_filled: bool) -> None:
        """Stop the process or suspend the machine at this point."""
        self.lead_to_pressure(is_filled)
        queue = self.world.pauses.setdefault(point, type(self.terminal.requests.delays)())
        queue.extend([0.0] * after + [duration])
        self.go_on()

    @precondition(lambda self: not self.closed)
    @rule(
        duration=DURATIONS | st.just(math.inf),
        is_request=st.booleans(),
        after=st.integers(0, 6),
        is_filled=FILLED,
    )
    def hold(self, duration: float, is_request: bool, after: int, is_filled: bool) -> None:
        """Hold or drop a message, or deliver it after its connection has closed."""
        self.lead_to_pressure(is_filled)
        way = self.terminal.requests if is_request else self.terminal.answers
        way.delays.extend([0.0] * after + [duration])
        self.go_on()

    @precondition(lambda self: not self.closed)
    @rule(is_filled=FILLED)
    def trip(self, is_filled: bool) -> None:
        self.lead_to_pressure(is_filled)
        self.terminal.advance()
        self.terminal.trip()
        self.go_on()

    @precondition(lambda self: not self.closed)
    @rule(is_filled=FILLED)
    def reset(self, is_filled: bool) -> None:
        self.lead_to_pressure(is_filled)
        self.terminal.advance()
        self.terminal.reset()
        self.go_on()

    @precondition(lambda self: not self.closed)
    @rule(valve=st.integers(0, CHAMBERS - 1), count=st.sampled_from([0, 1, 500, 2400]))
    def second_master(self, valve: int, count: int) -> None:
        """I8: the bridge notices within two cycles."""
        place = self.channels[valve]
        if self.is_open() and self.terminal.registers[place] != count + self.terminal.zero:
            losses = self.stream.losses
            self.terminal.write(range(place, place + 1), (count + self.terminal.zero,), self.world.boot, 0)
            self.judged = len(self.terminal.applied)
            level = max(self.poll().level, self.poll().level)
            assert self.stream.losses > losses
            assert level > OK

    @precondition(lambda self: not self.closed)
    @rule(count=st.integers(3, 6))
    def another_master_insists(self, count: int) -> None:
        """I8: after three changes within 20 s the bridge leaves the terminal alone until it is disarmed and armed."""
        self.lead_to_pressure(True)
        place, changes = self.channels[0], 0
        for _ in range(count):
            until = self.world.boot + 2.5
            while not self.is_open() and self.world.boot < until:
                self.world.run_until(self.world.boot + 0.1)
                self.poll()
            if self.is_open():
                self.terminal.write(range(place, place + 1), (7 + self.terminal.zero,), self.world.boot, 0)
                self.judged = len(self.terminal.applied)
                self.poll()
                self.poll()
                changes += 1
        assert changes <= 3
        if changes == 3:
            assert 'deactivate and activate' in self.stream.status().message
            connections = self.terminal.connections
            self.world.run_until(self.world.boot + 6.0)
            self.go_on(3)
            assert self.terminal.connections == connections

    @precondition(lambda self: not self.closed)
    @rule(milliseconds=st.sampled_from([0, 50, 60_000]))
    def watchdog_rewritten(self, milliseconds: int) -> None:
        """I4: the bridge reads the watchdog register once a second."""
        if self.is_open():
            losses = self.stream.losses
            self.terminal.registers[200] = milliseconds
            self.poll_for(1.0 + 3.0 * self.cycle)
            assert self.stream.losses > losses

    @precondition(lambda self: not self.closed)
    @rule(is_filled=FILLED)
    def application_stopped(self, is_filled: bool) -> None:
        """I8: a device that vents but keeps its set points is also lost: the bridge reads its state once a second."""
        self.lead_to_pressure(is_filled)
        if self.is_open() and self.terminal.app is not None:
            losses = self.stream.losses
            self.terminal.advance()
            self.terminal.registers[self.terminal.app] = 0
            self.poll_for(1.0 + 3.0 * self.cycle)
            assert self.stream.losses > losses

    @precondition(lambda self: not self.closed)
    @rule(lie=st.sampled_from(['stuck', 'zero', 'offset', 'scaled', 'swapped', 'none']), is_filled=FILLED)
    def sensors_lie(self, lie: str, is_filled: bool) -> None:
        """I15."""
        self.lead_to_pressure(is_filled)
        still = self.terminal.pressure.copy()
        self.terminal.lie = {
            'stuck': lambda p: still,
            'zero': lambda p: 0.0 * p,
            'offset': lambda p: p + 30e3,
            'scaled': lambda p: 10.0 * p,
            'swapped': lambda p: p[::-1],
            'none': lambda p: p,
        }[lie]
        self.lying = lie != 'none'
        self.go_on(20)

    @precondition(lambda self: not self.closed)
    @rule(step=st.sampled_from([-1e4, -0.1, 0.1, 1e4]), is_filled=FILLED)
    def wall_clock_steps(self, step: float, is_filled: bool) -> None:
        self.lead_to_pressure(is_filled)
        self.world.wall_offset += step
        self.go_on()

    @precondition(lambda self: not self.closed)
    @rule(is_filled=FILLED)
    def link_lost(self, is_filled: bool) -> None:
        self.lead_to_pressure(is_filled)
        self.terminal.listening = False
        self.go_on()

    @precondition(lambda self: not self.closed)
    @rule()
    def link_back(self) -> None:
        self.terminal.listening = True

    @precondition(lambda self: not self.closed)
    @rule(
        damage=st.sampled_from(['flip', 'cut', 'long', 'empty', 'refuse', 'other request']), is_filled=FILLED
    )
    def damaged_answer(self, damage: str, is_filled: bool) -> None:
        """I10: `poll` raises nothing, and the bridge rejects damaged answers and answers to another request."""
        self.lead_to_pressure(is_filled)
        losses, was_open = self.stream.losses, self.is_open()
        change = {
            'flip': lambda a: a[:7] + bytes([a[7] ^ 0x55]) + a[8:],
            'cut': lambda a: a[:-1],
            'long': lambda a: a[:4] + b'\xff\xff' + a[6:],
            'empty': lambda a: b'',
            'refuse': lambda a: a[:4] + b'\0\3' + a[6:7] + bytes([a[7] | 128]) + b'\4',
            'other request': lambda a: bytes([a[0], (a[1] + 1) % 256]) + a[2:],
        }[damage]
        self.terminal.damage = change
        self.poll()
        assert self.stream.losses > losses or not was_open
        self.terminal.damage = lambda answer: answer

    @rule()
    def close(self) -> None:
        if not self.closed:
            self.stream.close()
            self.closed = True
            self.disarmed_t = self.world.boot
            self.armed = False
            self.world.run_until(self.world.boot + 5.0)
            self.judge()


class Stopped:
    """A device whose process can be stopped between a decision and its write."""

    def __init__(self, device: Any, world: World) -> None:
        self._device, self._world = device, world

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    def write(self, *decision: Any) -> None:
        self._world.point('decided')
        self._device.write(*decision)


class Stop:
    """An event that is never set; waiting for it advances simulated time."""

    def __init__(self, world: World) -> None:
        self._world = world

    def wait(self, duration: float) -> bool:
        self._world.run_until(self._world.boot + duration)
        return False


UNTIL_FOUND = (Phase.generate,)  # the mutation run needs only the failure, not the shortest example
RUNS = settings(
    phases=UNTIL_FOUND if os.environ.get('UNTIL_FOUND') else tuple(Phase),
    max_examples=int(os.environ.get('AIR_PATH_RUNS', 0)) or fuzz_count(300, 2000),
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def run_steps(machine: AirPath, build: dict[str, Any], steps: list[tuple[str, dict[str, Any]]]) -> None:
    """Replay a sequence that once broke an invariant; the state machine finds such sequences by chance."""
    machine.build(**build)
    for name, arguments in steps:
        getattr(machine, name)(**arguments)
        machine.judge()


BUILD = {
    'rate': 100.0,
    'watchdog': 0.2,
    'part': 0.5,
    'slew': 1e6,
    'lag': 0.0,
    'ambient': 101_325.0,
    'channels': (0, 1, 2),
    'with_app': False,
    'command_timeout': 1.0,
    'vacuum': -60e3,
}
HELD = {'pressures': [0.0], 'held': 0.01, 'is_filled': True}
SLOW = {'watchdog': 1.0, 'command_timeout': 0.05}
STEPS: dict[str, tuple[dict[str, Any], list[tuple[str, dict[str, Any]]]]] = {
    'near zero from before a trip': ({}, [('mailbox_held', HELD | {'while_held': 'trip'})]),
    'near zero from before a loss': ({}, [('mailbox_held', HELD | {'while_held': 'link'})]),
    'near zero from before an arm': ({}, [('mailbox_held', HELD | {'while_held': 'arm'})]),
    'near zero from before an arm, vented': ({}, [('mailbox_held', HELD | {'while_held': 'arm again'})]),
    'stopped between decision and write': (
        SLOW,
        [('pause', {'point': 'decided', 'duration': 0.6, 'after': 0, 'is_filled': True})],
    ),
    'stopped before the last check': (
        SLOW,
        [('pause', {'point': 'compose', 'duration': 0.6, 'after': 4, 'is_filled': True})],
    ),
    'another master that insists': ({}, [('another_master_insists', {'count': 4})]),
    'another master that insists after a long loss': (
        {},
        [
            ('link_lost', {'is_filled': True}),
            ('trip', {'is_filled': False}),
            ('cycles', {'count': 1000}),
            ('another_master_insists', {'count': 8}),
        ],
    ),
    'vacuum that is not measured': (
        {},
        [
            ('lead_to_pressure', {'is_filled': True}),
            ('sensors_lie', {'lie': 'zero', 'is_filled': False}),
            ('follow', {'pressure': [-50e3] * CHAMBERS, 'count': 40}),
        ],
    ),
}


@pytest.mark.parametrize('name', STEPS)
def test_steps_that_broke_an_invariant_once(name: str) -> None:
    build, steps = STEPS[name]
    run_steps(AirPath(), BUILD | build, steps)


@pytest.mark.parametrize('held', [0.12, 0.19, 0.29])
def test_the_next_connection_waits_for_a_write_that_the_network_holds(held: float) -> None:
    """I7: such a write may arrive up to response time-out + watchdog later; the next connection opens after that."""
    path = AirPath()
    path.build(**BUILD)
    path.lead_to_pressure(True)
    steady_t = path.world.boot + 1.5
    while path.world.boot < steady_t:  # then the backoff allows the next attempt at once
        path.follow_once([240e3] * CHAMBERS)
    first, count = path.terminal.connections, len(path.terminal.applied)
    path.command([240e3] * CHAMBERS)
    path.stream.poll(lambda: path.terminal.requests.delays.append(held))  # the next message is the write
    failed_t = path.world.boot
    assert path.stream.error
    path.go_on(100)
    applied = path.terminal.applied[count:]
    late = [write for write in applied if write.t - write.sent_t > held]
    opened_t = min(write.sent_t for write in applied if write.connection > first)
    assert [(write.connection, write.is_newest) for write in late] == [(first, True)]
    assert late[0].t < opened_t
    assert opened_t >= failed_t + path.watchdog - 1e-9


TestAirPath = AirPath.TestCase
TestAirPath.settings = RUNS
