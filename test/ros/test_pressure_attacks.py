"""Attacks on the bridge, judged by the terminal's own log of all writes that it applied."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest
from ros.bridge_listener import BridgeListener
from ros.test_pressure_bridge import BRIDGE, NAMES, ROBOT, Commander, N, params, stays_vented, until
from soft_robot_suite.msg import ChamberPressures
from std_srvs.srv import Trigger

from soft_dynamics.ros.qos import COMMAND, SENSOR
from soft_hw_bridge.emulators.modbus import ModbusEmulator, MpaTerminal
from tools.run import own_domain

RATE = 100.0  # [Hz]
MOST_RISE = 2.0 * ROBOT.actuation.slew / RATE + 100.0  # [Pa] in one write: two cycles and a count
FILLED = 100e3  # [Pa] more than MOST_RISE


@pytest.fixture
def valves() -> Iterator[ModbusEmulator]:
    """A terminal whose log must contain no pressure step at the end."""
    emulator = ModbusEmulator(MpaTerminal())
    yield emulator
    emulator.close()
    assert emulator.largest_rise is not None
    assert emulator.largest_rise.rise <= MOST_RISE, emulator.largest_rise


@pytest.fixture
def listener(ros_client_node: Any) -> BridgeListener:
    return BridgeListener(ros_client_node, 'pressure_bridge', ChamberPressures, 'pressure/measured', SENSOR)


@pytest.fixture
def attacked(ros_process: Any, listener: BridgeListener, valves: ModbusEmulator) -> tuple[Any, Commander]:
    """A bridge whose chambers are filled, and a commander that never stops."""
    bridge = ros_process(BRIDGE, params(valves, rate=RATE))
    commander = Commander(ros_process, listener)
    commander.fill(valves, FILLED)
    return bridge, commander


def device_process(bridge: Any) -> int:
    """Return the id of the device process."""
    command = ['pgrep', '-P', str(bridge.process.pid)]
    (found,) = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return int(found)


def comes_back(commander: Commander, listener: BridgeListener, valves: ModbusEmulator) -> None:
    """The bridge follows again only after deactivation and activation, and from zero."""
    listener.change('deactivate', 'activate')
    commander.fill(valves, FILLED)


def test_a_killed_device_process_is_told_and_followed_by_one_that_waits(
    attacked: Any, listener: BridgeListener, valves: ModbusEmulator
) -> None:
    bridge, commander = attacked
    os.kill(device_process(bridge), signal.SIGKILL)
    until(listener.node, valves, 0.0, "venting by the terminal's watchdog")
    listener.until_level(b'\x02', 'the device process ended with signal 9; deactivate and activate to resume')
    received = listener.value('received')
    listener.node.spin_until(lambda: listener.value('received') != received, 'a new device process')
    assert stays_vented(listener.node, valves, 1.0)
    comes_back(commander, listener, valves)


def test_a_stopped_device_process_is_told_and_begins_from_zero(
    attacked: Any, listener: BridgeListener, valves: ModbusEmulator
) -> None:
    bridge, commander = attacked
    pid = device_process(bridge)
    os.kill(pid, signal.SIGSTOP)
    until(listener.node, valves, 0.0, "venting by the terminal's watchdog")
    listener.until_level(b'\x02', 'the device process does not answer')
    os.kill(pid, signal.SIGCONT)
    listener.until_level(b'\x01', 'waits for a command near zero')
    assert stays_vented(listener.node, valves)
    commander.fill(valves, FILLED)


def test_an_emergency_stop_ends_a_device_process_that_does_not_answer(
    attacked: Any, listener: BridgeListener, valves: ModbusEmulator
) -> None:
    bridge, commander = attacked
    os.kill(device_process(bridge), signal.SIGSTOP)
    response = listener.node.call(Trigger, 'pressure/emergency_stop', Trigger.Request())
    assert (
        'the device process did not answer and was killed: the device vents after 0.2 s' in response.message
    )
    until(listener.node, valves, 0.0, "venting by the terminal's watchdog")
    listener.until_level(b'\x02', 'deactivate and activate')
    assert stays_vented(listener.node, valves, 1.0)
    comes_back(commander, listener, valves)


def test_a_stopped_ros_process_is_vented_along_the_ramp_by_the_device_process(
    attacked: Any, listener: BridgeListener, valves: ModbusEmulator
) -> None:
    """Commands stop; the device process keeps contact with the terminal and follows the guard."""
    bridge, commander = attacked
    bridge.process.send_signal(signal.SIGSTOP)
    until(listener.node, valves, 0.0, 'venting')
    falls = [max(a - b for a, b in zip(w.before, w.after, strict=True)) for w in valves.applied]
    assert max(falls) <= 2.0 * ROBOT.actuation.pressure_max / ROBOT.safety.vent_time / RATE + 100.0
    bridge.process.send_signal(signal.SIGCONT)
    listener.until_level(b'\x01', 'waits for a command near zero')
    assert stays_vented(listener.node, valves)
    commander.fill(valves, FILLED)


def test_a_message_of_80_megabytes_stalls_no_valve(
    attacked: Any, listener: BridgeListener, valves: ModbusEmulator, ros_process: Any
) -> None:
    """The command comes from a second publisher, so the chambers vent; the bridge keeps running."""
    bridge, commander = attacked
    shouter = ros_process('ros.nodes_for_test.shouter')
    listener.node.spin_until(lambda: 'sent within' in shouter.stdout, 'big message', timeout=60.0)
    until(listener.node, valves, 0.0, 'venting')
    shouter.stop()
    listener.until_level(b'\x01', 'vented: commands from two publishers')
    assert stays_vented(listener.node, valves, 0.5)
    comes_back(commander, listener, valves)
    assert 'Traceback' not in bridge.stderr


@pytest.mark.parametrize('pressure', [0.0, FILLED])
def test_a_publisher_that_writes_another_name_as_frame_id_is_not_followed(
    attacked: Any, listener: BridgeListener, valves: ModbusEmulator, pressure: float
) -> None:
    """Text proves nothing; with two live publishers the bridge vents, and reports both until it is activated again."""
    _, commander = attacked
    node = listener.node
    rival = node.announce(ChamberPressures, 'pressure/command', COMMAND)
    message = ChamberPressures(names=NAMES, pressure=[pressure] * N, source='/commander')
    message.header.frame_id = '/commander'

    def told() -> bool:
        message.header.stamp = node.get_clock().now().to_msg()
        rival.publish(message)
        return 'vented: commands from two publishers' in listener.status.message

    node.spin_until(told, 'report of two publishers')
    until(node, valves, 0.0, 'venting')
    assert stays_vented(node, valves, 1.0)  # the rival is silent now; the commander keeps commanding
    node.destroy_publisher(rival)
    comes_back(commander, listener, valves)


def test_a_publisher_that_does_not_publish_does_not_count(
    attacked: Any, listener: BridgeListener, valves: ModbusEmulator
) -> None:
    """Like the publisher of an inactive controller."""
    listener.node.announce(ChamberPressures, 'pressure/command', COMMAND)
    listener.node.spin_until(
        lambda: len(listener.value('command_publishers').split()) == 2, 'two publishers in the graph'
    )
    listener.node.spin_for(1.0)
    assert valves.commanded()[:N] == pytest.approx([FILLED] * N, abs=50.0)


def test_a_publisher_that_replaces_another_waits_for_an_activation(
    attacked: Any, listener: BridgeListener, valves: ModbusEmulator, ros_process: Any
) -> None:
    _, commander = attacked
    commander.process.stop(signal.SIGKILL)
    Commander(ros_process, listener)
    listener.until_level(b'\x01', 'commands from two publishers')
    until(listener.node, valves, 0.0, 'venting')
    listener.change('deactivate', 'activate')
    listener.node.spin_until(
        lambda: 'following commands' in listener.status.message, 'the successor followed'
    )


def test_a_forgotten_second_bridge_is_told_on_both_sides_and_vents(
    attacked: Any, listener: BridgeListener, valves: ModbusEmulator, ros_process: Any
) -> None:
    """It runs in another ROS domain: both share only the terminal."""
    bridge, commander = attacked
    second = ros_process(BRIDGE, params(valves, rate=RATE), env={'ROS_DOMAIN_ID': own_domain()})
    line = 'another master writes to it'
    listener.node.spin_until(lambda: line in bridge.stderr, 'report of another master')
    until(listener.node, valves, 0.0, 'venting')
    commander.ask(0.0)
    listener.node.spin_until(lambda: 'following commands' in listener.status.message, 'following zero')
    commander.ask(FILLED)  # this write changes what the second one holds
    listener.node.spin_until(lambda: line in second.stderr, 'report of another master')
    second.stop()
    comes_back(commander, listener, valves)  # after many changes the bridge may have given up


def test_played_commands_reach_no_set_point(
    ros_process: Any, listener: BridgeListener, valves: ModbusEmulator
) -> None:
    """`ros2 bag play --clock` sends old stamps together with a clock."""
    ros_process(BRIDGE, params(valves, rate=RATE))
    node = listener.node
    played = node.announce(ChamberPressures, 'pressure/command', COMMAND)
    listener.until_level(b'\x01', 'vented: no command yet')
    stamp_ns = time.time_ns() - 10**9
    for pressure in [0.0] * 30 + [FILLED] * 30:
        message = ChamberPressures(names=NAMES, pressure=[pressure] * N)
        stamp_ns += 10**7
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp_ns, 10**9)
        played.publish(message)
        node.spin_for(0.01)
    listener.until_level(b'\x01', 'command is not from the last 0.2 s')
    assert not any(valves.highest)
