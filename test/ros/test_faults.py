"""Every fault of every device, bridges and virtual rig as processes: told, survived, and over when it ends.

The documented behaviour is in docs/bridges.md. `pytest test/ros/test_faults.py -s` prints how long each took.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from geometry_msgs.msg import PoseStamped, WrenchStamped
from ros.bridge_listener import ERROR, OK, WARN, BridgeListener
from ros.test_virtual_rig import RIG, ft_params, full_robot, mocap_params, ports_of, pressure_params
from soft_robot_suite.msg import ChamberPressures, ShapeSamples

from soft_dynamics.ros.conversions import time_to_seconds
from soft_dynamics.ros.qos import COMMAND, SENSOR
from soft_hw_bridge.rig.control import RigClient

LIMIT = 5.0  # [s] to tell a fault and to recover; the machine may be busy
RATES = {'mocap.rate': 100.0, 'vive.rate': 100.0, 'fiber.rate': 50.0, 'ft.rate': 200.0}
DAMAGE = 0.3  # of the packets


class Case(NamedTuple):
    """A fault, and what tells it: a diagnosis with this text, or a figure of the diagnostics that grows."""

    device: str
    fault: dict[str, Any]
    level: bytes | None = None
    text: str = ''
    counter: str = ''
    is_mute: bool = False  # nothing is published while it lasts

    def __str__(self) -> str:
        return f'{self.device}-{next(iter(self.fault))}'


SILENT, FROZEN, RESTART = {'silent': True}, {'frozen': True}, {'restart': True}
JUMP = {'clock_jump_s': 1000.0}


def damaged(device: str, key: str, counter: str) -> Case:
    return Case(device, {key: DAMAGE}, counter=counter)


CASES = [
    Case('mocap', SILENT, ERROR, 'no answer', is_mute=True),
    Case('mocap', FROZEN, ERROR, 'sends no new frames', is_mute=True),
    damaged('mocap', 'corrupt', 'malformed'),
    damaged('mocap', 'reorder', 'out_of_order'),
    damaged('mocap', 'duplicate', 'duplicate'),
    Case('mocap', JUMP, counter='clock_relocks'),
    Case('mocap', {'untracked': ['plate4']}, WARN, 'not tracked: plate4', is_mute=True),
    Case('mocap', RESTART, counter='reconnects'),
    Case('vive', SILENT, ERROR, is_mute=True),
    Case('vive', FROZEN, WARN, 'does not change', is_mute=True),
    damaged('vive', 'corrupt', 'tracker.duplicate'),
    Case('vive', {'untracked': ['tracker']}, WARN, 'tracker out of range', is_mute=True),
    Case('vive', RESTART, counter='reconnects'),
    Case('fiber', SILENT, ERROR, 'no new frames', is_mute=True),
    Case('fiber', FROZEN, ERROR, 'no new frames', is_mute=True),
    damaged('fiber', 'corrupt', 'malformed'),
    damaged('fiber', 'reorder', 'out_of_order'),
    damaged('fiber', 'duplicate', 'duplicate'),
    Case('fiber', JUMP, counter='clock_relocks'),
    Case('fiber', {'untracked': ['fiber']}, WARN, 'cannot measure', is_mute=True),
    Case('fiber', RESTART, counter='reconnects'),
    Case('ft', SILENT, ERROR, 'no new records', is_mute=True),
    Case('ft', FROZEN, ERROR, 'no new records', is_mute=True),
    damaged('ft', 'corrupt', 'malformed'),
    damaged('ft', 'reorder', 'out_of_order'),
    damaged('ft', 'duplicate', 'duplicate'),
    Case('ft', RESTART, counter='reconnects'),
    Case('pressure', SILENT, ERROR, 'register', is_mute=True),
    Case('pressure', FROZEN, WARN, 'measured far from what was put out'),
    Case('pressure', RESTART, counter='reconnects'),
]


class Bench:
    """A rig, its five bridges, and somebody who commands pressures."""

    def __init__(self, node: Any, start: Any, folder: Path) -> None:
        robot = full_robot(folder)
        self.node = node
        self.ports = ports_of(node, start(RIG, {'robot': robot, **RATES}))
        bridges = {
            'mocap': (mocap_params(self.ports), PoseStamped, 'mocap/plate4/pose'),
            'vive': (
                {'stand_in_port': self.ports['vive']['port'], 'rate': 100.0},
                PoseStamped,
                'vive/tracker/pose',
            ),
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
        self.others: list[PoseStamped] = node.collect(PoseStamped, 'mocap/plate3/pose', SENSOR)
        self.names = [c['name'] for c in yaml.safe_load(Path(robot).read_text())['actuation']['chambers']]
        self.commands = node.announce(ChamberPressures, 'pressure/command', COMMAND)
        self.pressure = 0.0  # [Pa] of all chambers
        node.create_timer(0.02, self._command)
        self.times: list[tuple[Case, float, float]] = []  # [s] until it was told, without data

    def _command(self) -> None:
        pressure = [self.pressure] * len(self.names)
        self.commands.publish(ChamberPressures(names=self.names, pressure=pressure))

    def report(self) -> str:
        """Return a line for each fault: if it stops the data, when they are back after its end, else their gap."""
        lines = [f'\n{"device":9} {"fault":13} {"told after":>10} {"back after":>10} {"longest gap":>11}']
        for case, told, gap in self.times:
            gaps = f'{gap:8.2f} s {"":11}' if case.is_mute else f'{"":10} {gap:9.2f} s'
            lines.append(f'{case.device:9} {next(iter(case.fault)):13} {told:8.2f} s {gaps}'.rstrip())
        return '\n'.join(lines)


@pytest.fixture(scope='module')
def bench(
    module_ros_process: Any, module_ros_client_node: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Bench]:
    made = Bench(module_ros_client_node, module_ros_process, tmp_path_factory.mktemp('robot'))
    for listener in made.listeners.values():
        listener.until_messages()
        listener.until_level(OK)
    yield made
    print(made.report())


@pytest.mark.parametrize('case', CASES, ids=str)
def test_fault_is_told_and_ends_without_a_restart_of_the_bridge(bench: Bench, case: Case) -> None:
    node, listener = bench.node, bench.listeners[case.device]
    before = float(listener.value(case.counter)) if case.counter else 0.0
    with RigClient(bench.ports['control']) as rig:
        listener.until_messages(2)
        rig.fault(case.device, **case.fault)
        start = time.monotonic()
        if case.device == 'pressure':
            bench.pressure = 1e5  # sensors that stand still are seen when the pressure should change
        try:
            if case.level is not None:
                node.spin_until(
                    lambda: listener.status.level == case.level and case.text in listener.status.message,
                    f'diagnosis of {case}, but {listener.status.message!r}',
                    LIMIT,
                )
            else:
                node.spin_until(lambda: float(listener.value(case.counter)) > before, case.counter, LIMIT)
            told = time.monotonic() - start
            while_it_lasts(bench, case)
            gap = longest_gap(listener.messages)
        finally:
            rig.clear()
            bench.pressure = 0.0
    start = time.monotonic()
    listener.messages.clear()
    node.spin_until(lambda: listener.messages, 'new messages', LIMIT)
    bench.times.append((case, told, time.monotonic() - start if case.is_mute else gap))
    node.spin_until(lambda: listener.status.level == OK, 'diagnosis OK', LIMIT)
    process = bench.processes[case.device]
    assert process.process.poll() is None
    assert 'Traceback' not in process.stderr


def longest_gap(messages: list[Any]) -> float:
    """Return the longest time [s] between the stamps of successive messages."""
    stamps = [time_to_seconds(message.header.stamp) for message in messages]
    return max(b - a for a, b in pairwise(stamps))


def while_it_lasts(bench: Bench, case: Case) -> None:
    """Nothing false is published; what is not concerned goes on."""
    node, listener = bench.node, bench.listeners[case.device]
    node.spin_for(0.1)  # what was under way
    bench.others.clear()
    count = len(listener.messages)
    if case.is_mute:
        node.spin_for(0.2)
        assert len(listener.messages) == count
    else:
        node.spin_until(lambda: len(listener.messages) >= count + 10, 'messages while it lasts', LIMIT)
    if 'untracked' in case.fault or case.device != 'mocap':
        node.spin_until(lambda: bench.others, 'other bodies while it lasts', LIMIT)
    if 'clock_jump_s' in case.fault:
        age = time.time() - time_to_seconds(listener.messages[-1].header.stamp)
        assert age == pytest.approx(0.0, abs=0.5)
