"""pressure_bridge as a process: in all cases the emulated valves end vented and never exceed the limit."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ros.bridge_listener import ERROR, OK, WARN, BridgeListener
from soft_robot_suite.msg import ChamberPressures
from std_srvs.srv import Trigger

from soft_dynamics.description.robot_description import load_description
from soft_dynamics.ros.conversions import time_to_ns
from soft_dynamics.ros.qos import COMMAND, SENSOR
from soft_hw_bridge.emulators.modbus import ModbusEmulator, MpaTerminal
from soft_hw_bridge.emulators.serial import SerialEmulator

BRIDGE, COMMANDER = 'soft_hw_bridge.nodes.pressure_bridge', 'ros.nodes_for_test.commander'
ROBOT = load_description('pneumatic_arm')
NAMES = [chamber.name for chamber in ROBOT.actuation.chambers]
LIMIT = ROBOT.actuation.pressure_max
N = len(NAMES)

Valves = ModbusEmulator | SerialEmulator


@pytest.fixture(params=['modbus', 'serial'])
def valves(request: pytest.FixtureRequest) -> Iterator[Valves]:
    emulator: Valves = ModbusEmulator(MpaTerminal()) if request.param == 'modbus' else SerialEmulator(N)
    yield emulator
    emulator.close()
    assert max(emulator.highest) <= LIMIT


@pytest.fixture
def modbus_valves() -> Iterator[ModbusEmulator]:
    emulator = ModbusEmulator(MpaTerminal())
    yield emulator
    emulator.close()
    assert max(emulator.highest) <= LIMIT


@pytest.fixture
def listener(ros_client_node: Any) -> BridgeListener:
    return BridgeListener(ros_client_node, 'pressure_bridge', ChamberPressures, 'pressure/measured', SENSOR)


def params(valves: Valves, **changes: Any) -> dict[str, Any]:
    common = {'robot': ROBOT.name, 'rate': 100.0} | changes
    if isinstance(valves, ModbusEmulator):
        return common | {
            'modbus.host': '127.0.0.1',
            'modbus.port': valves.port,
            'modbus.register_map': 'festo_mpa_vppm',
        }
    return common | {'device': 'serial', 'serial.port': valves.port}


def until(node: Any, valves: Valves, pressure: float, what: str) -> None:
    """Wait until all valves have this set point, rounded to counts; vented means exactly vented."""
    wanted = pytest.approx([pressure] * N, abs=50.0 if pressure else 0.0)
    node.spin_until(lambda: valves.commanded()[:N] == wanted, what)


class Commander:
    """A process that commands; it starts at zero, as the bridge requires."""

    def __init__(self, start: Any, listener: BridgeListener) -> None:
        self.listener = listener
        self.process = start(COMMANDER)

    def ask(self, pressure: float) -> None:
        assert self.listener.node.set_parameter('commander', 'pressure', pressure).successful

    def fill(self, valves: Valves, pressure: float) -> None:
        """Command from zero up to a pressure."""
        self.ask(0.0)
        node, listener = self.listener.node, self.listener
        node.spin_until(lambda: 'following commands' in listener.status.message, 'following zero')
        self.ask(pressure)
        until(node, valves, min(pressure, LIMIT), 'set point')


def stays_vented(node: Any, valves: Valves, duration: float = 0.5) -> bool:
    deadline = time.monotonic() + duration
    while time.monotonic() < deadline:
        node.spin_for(0.02)
        if any(valves.commanded()):
            return False
    return True


def test_commands_out_and_measurements_in(
    ros_process: Any, ros_client_node: Any, listener: BridgeListener, valves: Valves
) -> None:
    process = ros_process(BRIDGE, params(valves))
    valves.set_actual([1000.0 * (k + 1) for k in range(N)])
    about = 'register map festo_mpa_vppm, unit 1: set points in registers 40003 to 40014'
    ros_client_node.spin_until(
        lambda: about in process.stderr or 'protocol binary' in process.stderr, 'line about the channels'
    )
    listener.until_level(WARN, 'vented: no command yet')
    Commander(ros_process, listener).fill(valves, 60e3)
    listener.until_messages(50)
    message = listener.messages[-1]
    assert list(message.names) == NAMES
    assert list(message.pressure) == pytest.approx([1000.0 * (k + 1) for k in range(N)], abs=1.0)
    assert abs(time_to_ns(message.header.stamp) - time.time_ns()) < 5e9
    valves.set_actual([60e3] * N)
    listener.until_level(OK, 'following commands')
    assert listener.value('commands_refused') == '0'
    assert process.stop(signal.SIGINT) == 0
    until(ros_client_node, valves, 0.0, 'venting')
    assert 'Traceback' not in process.stderr


def kill_commander(_: BridgeListener, bridge: Any, commander: Any) -> None:
    commander.process.stop(signal.SIGKILL)


def kill_bridge(_: BridgeListener, bridge: Any, commander: Any) -> None:
    bridge.stop(signal.SIGKILL)


def end_bridge(_: BridgeListener, bridge: Any, commander: Any) -> None:
    assert bridge.stop(signal.SIGTERM) == 0


def deactivate(listener: BridgeListener, bridge: Any, commander: Any) -> None:
    listener.change('deactivate')


def emergency_stop(listener: BridgeListener, bridge: Any, commander: Any) -> None:
    assert listener.node.call(Trigger, 'pressure/emergency_stop', Trigger.Request()).success
    listener.until_level(ERROR, 'emergency stop')


@pytest.mark.parametrize('end', [kill_commander, kill_bridge, end_bridge, deactivate, emergency_stop])
def test_every_end_is_vented(
    ros_process: Any, ros_client_node: Any, listener: BridgeListener, valves: Valves, end: Callable[..., None]
) -> None:
    bridge = ros_process(BRIDGE, params(valves))
    commander = Commander(ros_process, listener)
    commander.fill(valves, 100e3)
    end(listener, bridge, commander)
    until(ros_client_node, valves, 0.0, 'venting')
    assert stays_vented(ros_client_node, valves)


def test_after_an_emergency_stop_it_must_be_activated_again(
    ros_process: Any, ros_client_node: Any, listener: BridgeListener, modbus_valves: ModbusEmulator
) -> None:
    ros_process(BRIDGE, params(modbus_valves))
    commander = Commander(ros_process, listener)
    commander.fill(modbus_valves, 100e3)
    emergency_stop(listener, None, None)
    until(ros_client_node, modbus_valves, 0.0, 'venting')
    commander.ask(0.0)
    commander.ask(100e3)
    assert stays_vented(ros_client_node, modbus_valves)
    listener.change('deactivate', 'activate')
    commander.fill(modbus_valves, 100e3)


def kill_and_start(listener: BridgeListener, start: Callable[[], Any], bridge: Any) -> None:
    bridge.stop(signal.SIGKILL)
    start()


def restart_terminal(listener: BridgeListener, start: Callable[[], Any], bridge: Any) -> None:
    listener.until_value('reconnects', 0)


def activate_again(listener: BridgeListener, start: Callable[[], Any], bridge: Any) -> None:
    listener.change('deactivate', 'activate')


@pytest.mark.parametrize('comes_back', [kill_and_start, restart_terminal, activate_again])
def test_who_comes_back_is_not_filled_by_commands_from_before(
    ros_process: Any,
    ros_client_node: Any,
    listener: BridgeListener,
    modbus_valves: ModbusEmulator,
    comes_back: Callable[..., None],
) -> None:
    """Bridge or terminal: a controller that keeps commanding 100 kPa gets no pressure until it commands zero."""

    def start() -> Any:
        return ros_process(BRIDGE, params(modbus_valves))

    bridge = start()
    commander = Commander(ros_process, listener)
    commander.fill(modbus_valves, 100e3)
    modbus_valves.faults.restart = comes_back is restart_terminal
    modbus_valves.commanded()  # the bridge checks now
    comes_back(listener, start, bridge)
    listener.until_level(WARN, 'vented: waits for a command near zero')
    until(ros_client_node, modbus_valves, 0.0, 'venting along the ramp')
    assert stays_vented(ros_client_node, modbus_valves, 1.0)
    commander.fill(modbus_valves, 100e3)


def test_too_high_a_measurement_ends_it(
    ros_process: Any, ros_client_node: Any, listener: BridgeListener, valves: Valves
) -> None:
    ros_process(BRIDGE, params(valves))
    commander = Commander(ros_process, listener)
    valves.set_actual([100e3] * N)
    commander.fill(valves, 100e3)
    valves.set_actual([100e3] * (N - 1) + [1.2 * LIMIT])
    listener.until_level(ERROR, f'vented: {NAMES[-1]} measured above {1.1 * LIMIT:g} Pa')
    until(ros_client_node, valves, 0.0, 'venting')
    valves.set_actual([0.0] * N)
    assert stays_vented(ros_client_node, valves)


def test_parameters_that_do_not_go_together_are_refused_while_it_runs(
    ros_process: Any, ros_client_node: Any, modbus_valves: ModbusEmulator
) -> None:
    """The error is the one that a start would print; the next configure uses the previous values."""
    ros_process(BRIDGE, params(modbus_valves, autostart=False))
    for name, value, reason in [
        ('robot', 'no_arm', "no robot 'no_arm'; shipped are"),
        ('channels', [1, 2], f'channels must have {N} entries'),
        ('rate', 5.0, 'rate must be at least 10 Hz for pneumatic_arm, got 5'),
        ('modbus.register_map', 'none', "no register map 'none'; shipped are"),
        ('modbus.device_timeout', 1.5, 'device_timeout must be > 0 and <= 1 s'),
        ('modbus.response_timeout', 0.3, 'response_timeout must be > 0 and < device_timeout 0.2 s'),
    ]:
        result = ros_client_node.set_parameter('pressure_bridge', name, value)
        assert (result.successful, reason in result.reason) == (False, True)


def test_unusable_commands_vent(
    ros_process: Any, ros_client_node: Any, listener: BridgeListener, modbus_valves: ModbusEmulator
) -> None:
    ros_process(BRIDGE, params(modbus_valves))
    publisher = ros_client_node.announce(ChamberPressures, 'pressure/command', COMMAND)

    good = ChamberPressures(names=NAMES)

    def command(pressure: float) -> None:
        good.pressure = [pressure] * N
        good.header.stamp = ros_client_node.get_clock().now().to_msg()
        publisher.publish(good)

    def follows_zero() -> bool:
        command(0.0)
        return 'following commands' in listener.status.message

    def is_filled() -> bool:
        command(50e3)
        return modbus_valves.commanded()[:N] == pytest.approx([50e3] * N, abs=50.0)

    for names, pressure, age, reason in [
        (NAMES, [float('nan')] * N, 0.0, 'not finite'),
        (NAMES, [50e3] * (N - 1) + [float('inf')], 0.0, 'not finite'),
        (NAMES, [50e3] * (N - 1), 0.0, f'{N - 1} pressures for {N} names'),
        (NAMES, [1e308] + [0.0] * (N - 1), 0.0, 'more than 2 times the largest pressure'),
        (NAMES[:-1], [50e3] * (N - 1), 0.0, 'must name every chamber'),
        ([*NAMES[:-1], 'wing'], [50e3] * N, 0.0, 'must name every chamber'),
        (NAMES, [50e3] * N, None, 'command has no stamp'),
        (NAMES, [50e3] * N, 3.0, 'not from the last 0.2 s'),
        (NAMES, [50e3] * N, -3.0, 'stamp is in the future'),
    ]:
        ros_client_node.spin_until(follows_zero, 'following zero')
        ros_client_node.spin_until(is_filled, 'set point')
        bad = ChamberPressures(names=names, pressure=pressure)
        if age is not None:
            stamp_ns = time.time_ns() - round(age * 1e9)
            bad.header.stamp.sec, bad.header.stamp.nanosec = divmod(stamp_ns, 10**9)
        publisher.publish(bad)
        listener.until_level(WARN, reason)
        until(ros_client_node, modbus_valves, 0.0, f'venting after: {reason}')


def test_too_much_is_never_put_out(
    ros_process: Any, ros_client_node: Any, listener: BridgeListener, valves: Valves
) -> None:
    ros_process(BRIDGE, params(valves))
    Commander(ros_process, listener).fill(valves, 1.9 * LIMIT)
    listener.until_value('commands_clamped', 10)
    assert max(valves.highest) == pytest.approx(LIMIT)


def test_nothing_is_inflated_before_activation(
    ros_process: Any, ros_client_node: Any, listener: BridgeListener, modbus_valves: ModbusEmulator
) -> None:
    ros_process(BRIDGE, params(modbus_valves, autostart=False))
    commander = Commander(ros_process, listener)
    commander.ask(100e3)
    listener.change('configure')
    listener.until_level(OK, 'vented: disarmed')
    assert stays_vented(ros_client_node, modbus_valves, 1.0)
    assert listener.messages == []
    assert max(modbus_valves.highest) == 0.0
    listener.change('activate')
    commander.fill(modbus_valves, 100e3)


def test_lost_device_is_told_and_filled_again_when_it_is_back(
    ros_process: Any, ros_client_node: Any, listener: BridgeListener, modbus_valves: ModbusEmulator
) -> None:
    process = ros_process(BRIDGE, params(modbus_valves))
    commander = Commander(ros_process, listener)
    modbus_valves.set_actual([100e3] * N)
    commander.fill(modbus_valves, 100e3)
    modbus_valves.faults.restart = True
    modbus_valves.commanded()
    listener.until_value('reconnects', 0)
    commander.fill(modbus_valves, 100e3)
    modbus_valves.faults.silent = True
    listener.until_level(ERROR, 'register')
    until(ros_client_node, modbus_valves, 0.0, 'venting by the terminal itself')
    modbus_valves.faults.clear()
    commander.fill(modbus_valves, 100e3)
    listener.until_level(OK, 'following commands')
    assert process.stop(signal.SIGTERM) == 0
    assert 'Traceback' not in process.stderr


@pytest.mark.parametrize(
    ('changes', 'line'),
    [
        ({'robot': 'no_arm'}, "no robot 'no_arm'; shipped are"),
        ({'device': 'can'}, "device must be one of modbus, serial, got 'can'"),
        ({'channels': [1, 2]}, f'channels must have {N} entries, one per chamber of pneumatic_arm, got 2'),
        ({'modbus.register_map': 'none'}, "no register map 'none'; shipped are"),
    ],
)
def test_bad_parameter_is_one_line_and_exit_code_1(
    ros_process: Any, changes: dict[str, Any], line: str
) -> None:
    assert f'cannot start: {line}' in ros_process(BRIDGE, {'robot': ROBOT.name} | changes).refusal()
