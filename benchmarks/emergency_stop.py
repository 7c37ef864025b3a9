"""Latency of an emergency stop, from the service call to the terminal at zero.

python -m benchmarks.emergency_stop [--times 50] [--write-docs]

The real bridge drives a virtual terminal and holds 100 kPa. Then a client calls `pressure/emergency_stop`: while the
terminal answers (free), or after the terminal has stopped answering an exchange (held). Its watchdog time is 0.2 s.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import rclpy
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.node import Node
from soft_robot_suite.msg import ChamberPressures
from std_srvs.srv import Trigger

from benchmarks.page import replace_part
from soft_dynamics.description.robot_description import load_description
from soft_dynamics.ros.qos import COMMAND
from soft_hw_bridge.emulators.modbus import ModbusEmulator, MpaTerminal

ROBOT = load_description('pneumatic_arm')
NAMES = [chamber.name for chamber in ROBOT.actuation.chambers]
FILLED = 100e3  # [Pa]
PATIENCE = 60.0  # [s]
TURN = 1.5  # [s] of zero and pressure, more than the chambers take to fill
PAGE = Path(__file__).resolve().parent.parent / 'docs' / 'safety.md'
BEGIN, END = '<!-- emergency stop -->', '<!-- end of emergency stop -->'


class Operator(Node):
    """Commands pressures at 100 Hz, and calls the emergency stop."""

    def __init__(self) -> None:
        super().__init__('operator')
        self.pressure = 0.0
        self._commands = self.create_publisher(ChamberPressures, 'pressure/command', COMMAND)
        self._stop = self.create_client(Trigger, 'pressure/emergency_stop')
        self._change = self.create_client(ChangeState, 'pressure_bridge/change_state')
        self.create_timer(0.01, self._command)

    def _command(self) -> None:
        message = ChamberPressures(names=NAMES, pressure=[self.pressure] * len(NAMES))
        message.header.stamp = self.get_clock().now().to_msg()
        self._commands.publish(message)

    def until(self, condition: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > end:
                raise SystemExit(f'emergency_stop: no {what} within {PATIENCE:g} s')
            rclpy.spin_once(self, timeout_sec=0.01)

    def fill(self, valves: ModbusEmulator) -> None:
        """Deactivate and activate the bridge, begin at zero, and fill the chambers."""
        self._stop.wait_for_service(PATIENCE)
        self._change.wait_for_service(PATIENCE)
        self.pressure = 0.0
        for transition in (Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_ACTIVATE):
            done = self._change.call_async(ChangeState.Request(transition=Transition(id=transition)))
            self.until(done.done, 'change of state')
        begin = time.monotonic()

        def is_filled() -> (
            bool
        ):  # zero and pressure in turn: the bridge may still be connecting at the first zero
            self.pressure = 0.0 if (time.monotonic() - begin) % TURN < 0.2 * TURN else FILLED
            return valves.commanded()[0] >= FILLED

        self.until(is_filled, 'pressure')

    def stop(self, valves: ModbusEmulator) -> float:
        """Return the time [s] from the call to the terminal at zero."""
        started = time.monotonic()
        done = self._stop.call_async(Trigger.Request())
        while any(valves.commanded()):
            if time.monotonic() > started + PATIENCE:
                raise SystemExit('emergency_stop: the chambers stay filled')
            time.sleep(0.0005)
        took = time.monotonic() - started
        self.until(done.done, 'answer')
        return took


def measure(node: Operator, valves: ModbusEmulator, is_held: bool, times: int) -> list[float]:
    """Measure several stops."""
    took = []
    for _ in range(times):
        node.fill(valves)
        valves.faults.silent = is_held
        took.append(node.stop(valves))
        valves.faults.clear()
    return took


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog='emergency_stop', description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--times', type=int, default=50, help='repetitions of each kind of stop; default 50')
    parser.add_argument('--write-docs', action='store_true', help=f'write the table into {PAGE.name}')
    options = parser.parse_args(arguments)
    valves = ModbusEmulator(MpaTerminal())
    named = {'robot': ROBOT.name, 'modbus.host': '127.0.0.1', 'modbus.port': valves.port}
    bridge = subprocess.Popen(
        [sys.executable, '-c', 'from soft_hw_bridge.nodes.pressure_bridge import main; main()', '--ros-args']
        + [word for name, value in named.items() for word in ('-p', f'{name}:={value}')],
        stderr=subprocess.DEVNULL,
    )
    rclpy.init()
    node = Operator()
    lines = ['| exchange | stops | p50 | p99 | largest |', '|---|---|---|---|---|']
    try:
        for name, is_held in (('free', False), ('held', True)):
            took = 1e3 * np.array(measure(node, valves, is_held, options.times))
            p50, p99 = np.percentile(took, [50, 99])
            lines.append(f'| {name} | {took.size} | {p50:.1f} ms | {p99:.1f} ms | {took.max():.1f} ms |')
    finally:
        node.destroy_node()
        rclpy.try_shutdown()
        bridge.terminate()
        bridge.wait(30.0)
        valves.close()
    print(*lines, sep='\n')
    if options.write_docs:
        replace_part(PAGE, BEGIN, END, '\n'.join(lines))
    return 0


if __name__ == '__main__':
    raise SystemExit(main())
