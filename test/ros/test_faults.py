"""Every fault of every device, with bridges and virtual rig as processes: reported, survived, and over when cleared.

docs/bridges/*.md describe the behaviour. `pytest test/ros/test_faults.py -s` prints how long each fault took.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped, WrenchStamped
from ros.bridge_listener import ERROR, OK, WARN, BridgeListener, value_of
from ros.test_virtual_rig import RIG, ft_params, full_robot, mocap_params, ports_of, pressure_params
from soft_robot_suite.msg import ChamberPressures, ShapeSamples

from soft_dynamics.ros.conversions import time_to_seconds
from soft_dynamics.ros.qos import COMMAND, SENSOR
from soft_hw_bridge.emulators.serial import SerialEmulator
from soft_hw_bridge.rig.remote_control import RigClient

LIMIT = 1.0  # [s] from a fault to its diagnosis, plus waits for a CPU
RATES = {'mocap.rate': 50.0, 'vive.rate': 50.0, 'fiber.rate': 50.0, 'ft.rate': 100.0}
DAMAGE = 0.3  # of the packets


class Case(NamedTuple):
    """A fault and its sign: a diagnosis with this text, a growing counter, or uninterrupted data."""

    device: str
    fault: dict[str, Any]
    level: bytes | None = None
    text: str = ''
    counter: str = ''
    is_mute: bool = False  # the bridge publishes nothing meanwhile

    def __str__(self) -> str:
        return f'{self.device}-{next(iter(self.fault))}'

    def is_told(self, status: DiagnosticStatus, before: int) -> bool:
        """Return whether a diagnosis shows the fault; before: the earlier value of the counter."""
        if self.counter:
            return int(value_of(status, self.counter) or 0) > before
        return status.level == self.level and self.text in status.message


SILENT, FROZEN, RESTART = {'silent': True}, {'frozen': True}, {'restart': True}
JUMP = {'clock_jump_s': 1000.0}


def damaged(device: str, key: str, counter: str) -> Case:
    return Case(device, {key: DAMAGE}, counter=counter)


CASES = [
    Case('mocap', SILENT, ERROR, 'no answer', is_mute=True),
    Case('mocap', FROZEN, ERROR, 'sends no new frames', is_mute=True),
    damaged('mocap', 'drop', 'lost'),
    damaged('mocap', 'corrupt', 'malformed'),
    damaged('mocap', 'reorder', 'out_of_order'),
    damaged('mocap', 'duplicate', 'duplicate'),
    Case('mocap', JUMP, counter='clock_relocks'),
    Case('mocap', {'untracked': ['plate4']}, WARN, 'not tracked: plate4', is_mute=True),
    Case('mocap', RESTART, counter='reconnects'),
    Case('vive', SILENT, ERROR, is_mute=True),
    Case('vive', FROZEN, WARN, 'does not change', is_mute=True),
    damaged('vive', 'corrupt', 'tracker.duplicate'),
    Case('vive', {'reorder': DAMAGE}),  # no sequence numbers: looks like tremor
    Case('vive', {'duplicate': DAMAGE}),
    Case('vive', {'untracked': ['tracker']}, WARN, 'tracker out of range', is_mute=True),
    Case('vive', RESTART, counter='reconnects'),
    Case('fiber', SILENT, ERROR, 'no new frames', is_mute=True),
    Case('fiber', FROZEN, ERROR, 'no new frames', is_mute=True),
    damaged('fiber', 'drop', 'lost'),
    damaged('fiber', 'corrupt', 'malformed'),
    damaged('fiber', 'reorder', 'out_of_order'),
    damaged('fiber', 'duplicate', 'duplicate'),
    Case('fiber', JUMP, counter='clock_relocks'),
    Case('fiber', {'untracked': ['fiber']}, WARN, 'cannot measure', is_mute=True),
    Case('fiber', RESTART, counter='reconnects'),
    Case('ft', SILENT, ERROR, 'no new records', is_mute=True),
    Case('ft', FROZEN, ERROR, 'no new records', is_mute=True),
    damaged('ft', 'drop', 'lost'),
    damaged('ft', 'corrupt', 'malformed'),
    damaged('ft', 'reorder', 'out_of_order'),
    damaged('ft', 'duplicate', 'duplicate'),
    Case('ft', RESTART, counter='reconnects'),
    Case('pressure', SILENT, ERROR, 'register', is_mute=True),
    Case('pressure', FROZEN, WARN, 'measured pressure far from its set point'),
    Case('pressure', RESTART, counter='reconnects'),
    Case('serial', SILENT, ERROR, 'no measurement from', is_mute=True),
    Case('serial', FROZEN, ERROR, 'no measurement from', is_mute=True),
    damaged('serial', 'drop', 'lost'),
    damaged('serial', 'corrupt', 'malformed'),
    damaged('serial', 'reorder', 'out_of_order'),
    damaged('serial', 'duplicate', 'duplicate'),
    Case('serial', JUMP, counter='clock_relocks'),
    Case('serial', RESTART, counter='reconnects'),
]


class Took(NamedTuple):
    """Duration [s] of the phases of a fault."""

    told: float  # from the fault to the stamp of its diagnosis
    waited: float  # waits for a CPU meanwhile
    gap: float  # from its end to the first new data if the bridge was mute, else the longest gap in the data


class Bench:
    """A rig with its five bridges, valves on a serial line with their bridge, and a publisher of pressures."""

    def __init__(self, node: Any, start: Any, folder: Path) -> None:
        robot = full_robot(folder)
        self.node = node
        self.valves = SerialEmulator(16)
        self.rig = start(RIG, {'robot': robot, **RATES})
        self.ports = ports_of(node, self.rig)
        pose = PoseStamped
        bridges = {
            'mocap': (mocap_params(self.ports), pose, 'mocap/plate4/pose'),
            'vive': ({'stand_in_port': self.ports['vive']['port'], 'rate': 50.0}, pose, 'vive/tracker/pose'),
            'fiber': (
                {'host': '127.0.0.1', 'port': self.ports['fiber']['port']},
                ShapeSamples,
                'fiber/shape',
            ),
            'ft': (ft_params(self.ports), WrenchStamped, 'ft/wrench'),
            'pressure': (
                pressure_params(self.ports, robot) | {'rate': 50.0},
                ChamberPressures,
                'pressure/measured',
            ),
        }
        self.processes, self.listeners = {}, {}
        for device, (params, message, topic) in bridges.items():
            self.processes[device] = start(f'soft_hw_bridge.nodes.{device}_bridge', params)
            self.listeners[device] = BridgeListener(node, f'{device}_bridge', message, topic, SENSOR)
        self.processes['serial'] = start(
            'soft_hw_bridge.nodes.pressure_bridge',
            {'robot': robot, 'device': 'serial', 'serial.port': self.valves.port, 'rate': 50.0},
            {'__ns': '/serial', 'pressure/command': '/pressure/command'},
        )
        self.listeners['serial'] = BridgeListener(
            node, 'serial/pressure_bridge', ChamberPressures, 'serial/pressure/measured', SENSOR
        )
        self.others = BridgeListener(node, 'mocap_bridge', pose, 'mocap/plate3/pose', SENSOR)
        self.names = [c['name'] for c in yaml.safe_load(Path(robot).read_text())['actuation']['chambers']]
        self.commands = node.announce(ChamberPressures, 'pressure/command', COMMAND)
        self.pressure = 0.0  # [Pa] of all chambers
        self._timer = node.create_timer(0.02, self._command)
        self.times: list[tuple[Case, Took]] = []

    def fault(self, device: str, fault: dict[str, Any]) -> None:
        """Make a device fail; pressures must change first, or frozen sensors could not be detected."""
        if fault == FROZEN:
            self.pressure = 1e5
        if device == 'serial':
            for name, value in fault.items():
                setattr(self.valves.faults, name, value)
            return
        with RigClient(self.ports['control']) as rig:
            rig.fault(device, **fault)

    def clear(self) -> None:
        """Clear all faults."""
        self.pressure = 0.0
        self.valves.faults.clear()
        with RigClient(self.ports['control']) as rig:
            rig.clear()

    def close(self) -> None:
        """Stop commanding."""
        self._timer.cancel()  # destroying it ended the process now and then
        self.valves.close()

    def waits(self, device: str) -> Waits:
        """Watch the bridges that a fault of the device affects."""
        return Waits([self.rig.process.pid, self.processes[device].process.pid, os.getpid()])

    def report(self) -> str:
        """Return a line for each fault."""
        lines = [
            f'\n{"device":9} {"fault":13} {"told after":>10} {"waited":>10} {"back after":>10} {"longest gap":>11}'
        ]
        for case, (told, wait, gap) in self.times:
            gaps = f'{gap:8.2f} s {"":11}' if case.is_mute else f'{"":10} {gap:9.2f} s'
            fault = next(iter(case.fault))
            lines.append(f'{case.device:9} {fault:13} {told:8.2f} s {wait:8.2f} s {gaps}'.rstrip())
        return '\n'.join(lines)

    def _command(self) -> None:
        message = ChamberPressures(names=self.names, pressure=[self.pressure] * len(self.names))
        message.header.stamp = self.node.get_clock().now().to_msg()
        self.commands.publish(message)


class Waits:
    """Time that threads were ready to run but had no CPU, as the kernel counts it, from now on.

    Near zero on an idle machine, so that a second is a second.
    """

    def __init__(self, processes: Iterable[int]) -> None:
        self._folders = [Path(f'/proc/{process}/task') for process in processes]
        self._before = self._read()

    def longest(self) -> float:
        """Return the wait [s] of the thread that waited longest."""
        return max((now - self._before.get(path, 0.0) for path, now in self._read().items()), default=0.0)

    def _read(self) -> dict[Path, float]:
        waits = {}
        for folder in self._folders:
            for path in folder.glob('*/schedstat'):
                with suppress(OSError):  # a thread that has ended
                    waits[path] = 1e-9 * int(path.read_text().split()[1])
        return waits


@pytest.fixture(scope='module')
def bench(
    module_ros_process: Any, module_ros_client_node: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Bench]:
    with ExitStack() as stack:

        def start(*args: Any) -> Any:
            """A second try must not find nodes of the first one."""
            process = module_ros_process(*args)
            stack.callback(process.kill)
            return process

        made = Bench(module_ros_client_node, start, tmp_path_factory.mktemp('robot'))
        stack.callback(made.close)
        for listener in made.listeners.values():
            listener.until_messages()
            listener.until_level(OK)
        yield made
        print(made.report())


@pytest.mark.parametrize('case', CASES, ids=str)
def test_fault_is_told_within_a_second_and_ends_without_a_restart_of_the_bridge(
    bench: Bench, case: Case
) -> None:
    listener, process = bench.listeners[case.device], bench.processes[case.device]
    listener.until_messages(2)
    before = int(listener.value(case.counter)) if case.counter else 0
    waits, start = bench.waits(case.device), time.time()
    try:
        bench.fault(case.device, case.fault)
        told = until_told(bench, case, before, start)
        wait = waits.longest()
        while_it_lasts(bench, case, told)
        gap = longest_gap(listener.messages)
    finally:
        bench.clear()
    end = time.time()
    bench.node.spin_until(lambda: listener.messages_since(end), 'new messages')
    if case.is_mute:
        gap = time_to_seconds(listener.messages_since(end)[0].header.stamp) - end
    listener.until_told(lambda status: status.level == OK, end, 'diagnosis OK')
    bench.times.append((case, Took(told - start, wait, gap)))
    assert process.process.poll() is None
    assert 'Traceback' not in process.stderr
    assert told - start - wait < LIMIT


def until_told(bench: Bench, case: Case, before: int, start: float) -> float:
    """Wait for the diagnosis of a fault that began at a time [s]; return the time of the diagnosis."""
    listener = bench.listeners[case.device]
    if case.counter or case.level is not None:
        return listener.until_told(lambda status: case.is_told(status, before), start, f'diagnosis of {case}')
    bench.node.spin_until(lambda: listener.messages_since(start), 'messages during the fault')
    return time_to_seconds(listener.messages_since(start)[0].header.stamp)


def longest_gap(messages: list[Any]) -> float:
    """Return the longest time [s] between the stamps of successive messages."""
    stamps = [time_to_seconds(message.header.stamp) for message in messages]
    return max(b - a for a, b in pairwise(stamps))


def while_it_lasts(bench: Bench, case: Case, told: float) -> None:
    """After the diagnosis the bridge publishes no false data; devices without a fault keep publishing."""
    node, listener = bench.node, bench.listeners[case.device]
    others = bench.others if case.device != 'mocap' or 'untracked' in case.fault else bench.listeners['ft']
    others.messages.clear()
    node.spin_until(lambda: others.messages_since(told + 0.2), 'messages of other devices during the fault')
    if case.is_mute:
        assert listener.messages_since(told) == []
    else:
        node.spin_until(lambda: len(listener.messages_since(told)) > 10, 'messages during the fault')
    if 'clock_jump_s' in case.fault:
        age = time.time() - time_to_seconds(listener.messages[-1].header.stamp)
        assert 0.0 <= age < 0.1 * JUMP['clock_jump_s']
