"""pressure_bridge in this process: stops, commands and shutdown in rare states."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import rclpy
from std_srvs.srv import Trigger

from soft_dynamics.timing.boot_time import boot_time
from soft_hw_bridge.emulators.modbus import ModbusEmulator, MpaTerminal, VtemTerminal
from soft_hw_bridge.nodes.pressure_bridge import PressureBridge


@contextmanager
def bridge(terminal: MpaTerminal | VtemTerminal, register_map: str) -> Iterator[tuple[PressureBridge, Any]]:
    """The unconfigured node, and the emulated terminal it connects to."""
    emulator = ModbusEmulator(terminal)
    named = {
        'robot': 'pneumatic_arm',
        'autostart': False,
        'modbus.host': '127.0.0.1',
        'modbus.port': emulator.port,
        'modbus.register_map': register_map,
    }
    rclpy.init(args=['test', '--ros-args', *(x for k, v in named.items() for x in ('-p', f'{k}:={v}'))])
    node = PressureBridge()
    try:
        yield node, emulator
    finally:
        node.destroy_node()
        rclpy.try_shutdown()
        emulator.close()


def until_told(node: PressureBridge, line: str) -> None:
    """Wait until the device process reports this."""
    deadline = time.monotonic() + 30.0
    while node._device is None or line not in node._device.status().message:
        assert time.monotonic() < deadline, node._device and node._device.status()
        time.sleep(0.02)


@pytest.mark.parametrize('configured', [False, True])
def test_an_emergency_stop_is_kept_until_a_deactivation_whatever_the_state(configured: bool) -> None:
    with bridge(MpaTerminal(), 'festo_mpa_vppm') as (node, _):
        if configured:
            node.trigger_configure()
            until_told(node, 'vented: disarmed')  # a process that is still starting would be killed
        response = node._on_emergency_stop(None, Trigger.Response())
        assert response.success
        assert 'not active; the stop holds after activation' in response.message
        if not configured:
            node.trigger_configure()
            until_told(node, 'vented: disarmed')
        for reason in ('emergency stop', 'no command yet'):
            node.trigger_activate()
            assert node.is_active
            assert node._device is not None
            until_told(node, f'vented: {reason}')
            node.trigger_deactivate()


def test_a_cleanup_does_not_wait_for_a_terminal_that_takes_long_to_start() -> None:
    with bridge(VtemTerminal(start_time=60.0), 'festo_vtem') as (node, emulator):
        node.trigger_configure()
        deadline = time.monotonic() + 10.0
        while len(emulator.terminal.started) < 8:  # slots
            assert time.monotonic() < deadline
            time.sleep(0.02)
        start = time.monotonic()
        node.trigger_cleanup()
        assert time.monotonic() - start < 10.0  # of the 20 s that the map allows for a start


def test_a_command_that_is_read_while_the_device_is_given_up_harms_nobody() -> None:
    """The thread of the device takes commands until it has ended."""

    class Reader:
        def read(self, _: bytes) -> Any:
            node._device = None
            raise ValueError('damaged')

    refused: list[str] = []
    device = SimpleNamespace(
        refuse=lambda _, reason: refused.append(reason), command=None, names=[], command_timeout=0.2
    )
    node = SimpleNamespace(_device=device, _read=Reader(), _generation=0, _may_be_successor=lambda *_: False)
    node._filled_in = lambda *command: PressureBridge._filled_in(node, *command)  # type: ignore[arg-type]
    PressureBridge._on_command(node, b'', {})  # type: ignore[arg-type]
    assert refused == ['command failed to parse: damaged']


def test_a_publisher_that_appears_while_commands_have_stopped_may_be_a_successor() -> None:
    """Only then: a publisher that appears beside live commands, as that of an idle controller, changes nothing."""
    found = [SimpleNamespace(endpoint_gid=[1] * 16, node_namespace='/', node_name='controller')]
    node = SimpleNamespace(
        _heard_t=math.inf,
        _seen_t={},
        resolve_topic_name=lambda name: name,
        get_publishers_info_by_topic=lambda _: found,
    )
    node._command_publishers = lambda: PressureBridge._command_publishers(node)  # type: ignore[arg-type]

    def may_be_successor(t: float) -> bool:
        return PressureBridge._may_be_successor(node, t, 0.2)  # type: ignore[arg-type]

    assert not may_be_successor(boot_time())  # the first command
    node._command_publishers()
    node._heard_t = boot_time()
    found.append(SimpleNamespace(endpoint_gid=[2] * 16, node_namespace='/', node_name='idle'))
    assert not may_be_successor(node._heard_t + 0.1)
    node._command_publishers()
    assert may_be_successor(node._heard_t + 0.3)
    node._heard_t = boot_time()
    assert not may_be_successor(node._heard_t + 0.3)  # known since before the silence
