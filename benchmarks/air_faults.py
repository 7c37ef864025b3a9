"""Kill, and stop and continue, each process of a closed loop; check what reaches the valves.

python -m benchmarks.air_faults [--times 20] [--seed 1] [--only pressure_bridge ...] [--write-docs]

A virtual honeycomb_arm moves between two poses with filled chambers. Then a process is killed, or stopped for 0.05 to
3 s and continued. The virtual valve terminal logs each write that it applies. The table shows the largest rise of a
chamber in one write; two cycles of the slew rate are allowed. Forty events of one process take three minutes.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from benchmarks.page import replace_part
from soft_dynamics.description.robot_description import load_description
from soft_dynamics.ros.qos import COMMAND, STATE
from soft_hw_bridge.rig.remote_control import RigClient
from tools.simulation import Simulation

ROBOT = 'honeycomb_arm'
RATE = 100.0  # [Hz] rate of the loop
COUNT = 100.0  # [Pa] per count of a register
DEVICE = 'device process'
PROCESSES = ['virtual_rig', 'mocap_bridge', 'ft_bridge', 'pressure_bridge', DEVICE]
PROCESSES += ['state_estimator', 'configuration_controller', 'shape_publisher']
KILLS_PER_LAUNCH = 4  # the launch restarts a node five times at most
NOT_RESTARTED = ('virtual_rig', 'configuration_controller')  # the launch does not restart these after a kill
FILLED = 40e3  # [Pa] in a chamber before an event
PATIENCE = 60.0  # [s] longest wait for filled chambers
STOPS = 0.05, 3.0  # [s]
AFTERWARDS = 1.5  # [s] observed after an event
PAGE = Path(__file__).resolve().parent.parent / 'docs' / 'safety.md'
BEGIN, END = '<!-- air faults -->', '<!-- end of air faults -->'


class Row(NamedTuple):
    """The result of all events of one kind on one process."""

    process: str
    event: str
    times: int
    writes: int
    largest_rise: float  # [Pa]


class Mover(Node):
    """Sends references, and reactivates the pressure bridge when it asks for that."""

    def __init__(self) -> None:
        super().__init__('mover')
        self._names = [f'segment{k}_theta{j}' for k in (1, 2) for j in (1, 2)]
        self._sign = 1.0
        self._line = ''
        self._references = self.create_publisher(JointTrajectory, 'reference/configuration', COMMAND)
        self._bridge = self.create_client(ChangeState, 'pressure_bridge/change_state')
        self.create_subscription(DiagnosticArray, '/diagnostics', self._on_diagnostics, STATE)
        self.create_timer(0.7, self._move)
        self.create_timer(0.5, self._resume)

    def _move(self) -> None:
        self._sign = -self._sign
        point = JointTrajectoryPoint(positions=[0.3 * self._sign] * len(self._names))
        point.time_from_start.nanosec = 500_000_000
        self._references.publish(JointTrajectory(joint_names=self._names, points=[point]))

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name.endswith('pressure_bridge: device'):
                self._line = status.message

    def _resume(self) -> None:
        if 'activate' in self._line or 'two publishers' in self._line:
            for transition in (Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_ACTIVATE):
                self._bridge.call_async(ChangeState.Request(transition=Transition(id=transition)))


def spin(node: Node, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
    """Run callbacks for a time or until a condition; return whether the condition held."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        rclpy.spin_once(node, timeout_sec=0.05)
        if until():
            return True
    return False


def pid_of(simulation: Simulation, process: str) -> int:
    if process != DEVICE:
        return simulation.pids[process]
    parent = simulation.pids['pressure_bridge']
    found = subprocess.run(
        ['pgrep', '-P', str(parent)], capture_output=True, text=True, check=False
    ).stdout.split()
    if not found:
        raise ProcessLookupError
    return int(found[0])


def happen(simulation: Simulation, process: str, event: str, pause: float) -> None:
    """Kill a process, or stop it for a time."""
    pid = pid_of(simulation, process)
    if event == 'kill':
        os.kill(pid, signal.SIGKILL)
        return
    os.kill(pid, signal.SIGSTOP)
    time.sleep(pause)
    os.kill(pid, signal.SIGCONT)


class Launches:
    """A running simulation, restarted after some kills, with the logs of its terminals."""

    def __init__(self) -> None:
        self._simulation: Simulation | None = None
        self._kills = 0

    def running(self, event: str) -> Simulation:
        self._kills += event == 'kill'
        if self._simulation is None or self._kills > KILLS_PER_LAUNCH:
            self.close()
            self._kills = int(event == 'kill')
            self._simulation = Simulation(robot=ROBOT, rate=RATE)
        return self._simulation

    def close(self) -> None:
        if self._simulation is not None:
            self._simulation.stop()
            self._simulation = None


def filled(rig: RigClient) -> Callable[[], bool]:
    def look() -> bool:
        try:
            return max(rig.state()['command']) > FILLED
        except (OSError, ValueError):  # it is starting
            return False

    return look


def row(node: Mover, launches: Launches, process: str, event: str, times: int, rng: random.Random) -> Row:
    """Repeat an event, each time with filled chambers."""
    writes, rise = 0, 0.0
    for number in range(times):
        simulation = launches.running(event)
        with RigClient(simulation.ports['control_port'], timeout=1.0) as rig:
            if not spin(node, PATIENCE, filled(rig)):
                raise SystemExit(
                    f'air_faults: the chambers were not filled before {event} {number} of {process}'
                )
            seen = rig.state()['writes']
            happen(simulation, process, event, STOPS[0] * (STOPS[1] / STOPS[0]) ** rng.random())
            spin(node, AFTERWARDS)
            if event == 'kill' and process == 'virtual_rig':  # its log ends with it
                launches.close()
                continue
            state = rig.state()
            if event == 'kill' and process in NOT_RESTARTED:
                launches.close()
            writes += state['writes'] - seen if state['writes'] >= seen else state['writes']
            rise = max(rise, state['largest_rise'])
    return Row(process, event, times, writes, rise)


@contextmanager
def mover() -> Iterator[Mover]:
    rclpy.init()
    node = Mover()
    try:
        yield node
    finally:
        node.destroy_node()
        rclpy.try_shutdown()


def allowed() -> float:
    """Return the largest rise in one write [Pa] that the slew rate allows."""
    return 2.0 * load_description(ROBOT).actuation.slew / RATE + COUNT


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog='air_faults', description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--times', type=int, default=20, help='number of each event; default 20')
    parser.add_argument('--seed', type=int, default=1, help='seed of the durations; default 1')
    parser.add_argument('--only', nargs='+', choices=PROCESSES, default=PROCESSES, metavar='PROCESS')
    parser.add_argument('--write-docs', action='store_true', help=f'write the table into {PAGE.name}')
    options = parser.parse_args(arguments)
    rng, rows, launches = random.Random(options.seed), [], Launches()
    with mover() as node:
        try:
            for process in options.only:
                for event in ('kill', 'stop'):
                    rows.append(row(node, launches, process, event, options.times, rng))
                    print(*rows[-1], f'of {allowed():.0f} Pa', flush=True)
        finally:
            launches.close()
    lines = ['| process | event | times | writes | largest rise in one write |', '|---|---|---|---|---|']
    lines += [
        f'| {r.process} | {r.event} | {r.times} | {r.writes} | {r.largest_rise / 1e3:.1f} kPa |' for r in rows
    ]
    print(*lines, sep='\n')
    if options.write_docs:
        replace_part(PAGE, BEGIN, END, '\n'.join([*lines, '', f'Allowed: {allowed() / 1e3:.1f} kPa.']))
    return int(max(r.largest_rise for r in rows) > allowed())


if __name__ == '__main__':
    raise SystemExit(main())
