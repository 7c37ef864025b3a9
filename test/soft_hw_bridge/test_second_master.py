"""Two bridges on one terminal, as after a forgotten second launch: each notices within two cycles, and both vent."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from fake_valves import FakeTerminal, World

from soft_dynamics.diagnostics import ERROR, OK
from soft_hw_bridge.pressure.command import Command
from soft_hw_bridge.pressure.guard import PressureLimits
from soft_hw_bridge.pressure.modbus_device import ModbusConfig, ModbusPressure
from soft_hw_bridge.pressure.register_map import Block, DeviceTimeout, RegisterMap
from soft_hw_bridge.pressure.stream import Clock, PressureStream

LIMITS = PressureLimits(pressure_max=240e3, slew=1e6, vent_time=0.5, valve_lag=0.05, cycle=0.005)
MAP = RegisterMap(1, Block(0), Block(100), 8, 100.0, timeout=DeviceTimeout(200))
WATCHDOG = 0.2  # [s]
MASTER = 'another master writes to it'
PATIENCE = 2000  # cycles


class NoStop:
    """A start that is never cancelled; waiting advances simulated time."""

    def __init__(self, world: World) -> None:
        self._world = world

    def wait(self, duration: float) -> bool:
        self._world.run_until(self._world.boot + duration)
        return False


class Bridge:
    """A stream and its controller."""

    def __init__(self, world: World, terminal: FakeTerminal, channels: tuple[int, ...]) -> None:
        stop: Any = NoStop(world)
        config = ModbusConfig('terminal', response_timeout=0.1, device_timeout=WATCHDOG)
        device = ModbusPressure(
            config, MAP, channels, LIMITS, world.now_ns, stop, world.now, terminal.connect
        )
        clock = Clock(world.now, world.now_ns, world.sleep)
        self.stream = PressureStream(device, ['a', 'b', 'c'], LIMITS, clock)
        self._world, self._numbers = world, itertools.count()

    def cycle(self, pressure: float) -> None:
        begins = self.stream.status().message.endswith('waits for a command near zero')
        wanted = (0.0 if begins else pressure,) * 3
        now = self._world.boot, self._world.now_ns()
        self.stream.command(Command(*now, next(self._numbers), False, b'', wanted))
        self.stream.poll()

    def fill(self, terminal: FakeTerminal, pressure: float) -> None:
        for _ in range(PATIENCE):
            self.cycle(pressure)
            if max(terminal.setpoints()) >= pressure:
                return
        raise AssertionError(self.stream.status())


@pytest.fixture
def rig() -> tuple[FakeTerminal, Bridge]:
    """A terminal whose valves the first bridge has filled."""
    world = World()
    terminal = FakeTerminal(world, 8, 100.0)
    first = Bridge(world, terminal, (0, 1, 2))
    first.stream.arm()
    first.fill(terminal, 100e3)
    return terminal, first


def lost_within_two_cycles(bridge: Bridge, pressure: float) -> None:
    losses = bridge.stream.losses
    for _ in range(2):
        bridge.cycle(pressure)
        if bridge.stream.losses > losses:
            break
    assert bridge.stream.losses == losses + 1
    assert bridge.stream.status().level == ERROR
    assert MASTER in bridge.stream.status().message


def never_rises_by_a_step(terminal: FakeTerminal) -> None:
    most = 2.0 * LIMITS.slew * LIMITS.cycle + terminal.scale
    assert max(b - a for w in terminal.applied for a, b in zip(w.before, w.after, strict=True)) <= most


def test_a_second_bridge_is_noticed_on_either_side_within_two_cycles(rig: Any) -> None:
    terminal, first = rig
    second = Bridge(terminal.world, terminal, (0, 1, 2))
    second.stream.poll()  # opens: zero
    assert max(terminal.setpoints()) == 0.0
    lost_within_two_cycles(first, 100e3)
    assert max(terminal.setpoints()) == 0.0

    for _ in range(
        PATIENCE
    ):  # the first bridge tries to resume; its first write makes the second one lose the device
        first.cycle(100e3)
        losses = second.stream.losses
        second.stream.poll()
        if second.stream.losses > losses:
            break
    else:
        raise AssertionError('the second bridge noticed nothing')
    assert MASTER in second.stream.status().message
    assert max(terminal.setpoints()) <= 4.0 * LIMITS.slew * LIMITS.cycle
    never_rises_by_a_step(terminal)


def test_of_two_bridges_that_both_follow_a_controller_one_gives_up(rig: Any) -> None:
    """The newcomer vents the other bridge, which waits; both are healthy for at most two cycles in a row."""
    terminal, first = rig
    second = Bridge(terminal.world, terminal, (0, 1, 2))
    second.stream.arm()
    begin, both = len(terminal.applied), 0
    for _ in range(PATIENCE):
        first.cycle(100e3)
        second.cycle(150e3)
        both = both + 1 if first.stream.status().level == second.stream.status().level == OK else 0
        assert both <= 2
    left, other = sorted((first, second), key=lambda bridge: bridge.stream.status().level == OK)
    assert left.stream.losses == 3
    assert '3 times within 20 s; deactivate and activate to resume' in left.stream.status().message
    known = left.stream.vented()
    assert known is not None
    assert known[1].startswith('not confirmed, the device is lost')
    assert other.stream.losses <= 3
    assert other.stream.status().level == OK
    turns = [w.connection for w in terminal.applied[begin:]]
    begun = [
        w for w, before in zip(terminal.applied[begin + 1 :], turns, strict=False) if w.connection > before
    ]
    assert not any(any(w.after) for w in begun)
    never_rises_by_a_step(terminal)

    connections = terminal.connections
    with pytest.raises(ValueError, match='another master'):
        left.stream.arm()  # needs a disarm
    for _ in range(PATIENCE):
        left.cycle(100e3)
        other.cycle(150e3)
    assert terminal.connections == connections  # leaves the other bridge alone
    left.stream.disarm()
    left.stream.arm()
    left.fill(terminal, 100e3)


def test_bridges_of_other_valves_do_not_disturb_each_other(rig: Any) -> None:
    """One terminal may serve two robots, if each has its own channels and both set the same watchdog."""
    terminal, first = rig
    second = Bridge(terminal.world, terminal, (4, 5, 6))
    second.stream.arm()
    for _ in range(500):
        first.cycle(100e3)
        second.cycle(50e3)
    assert list(terminal.setpoints()) == [100e3] * 3 + [0.0] + [50e3] * 3 + [0.0]
    assert (first.stream.losses, second.stream.losses) == (0, 0)
