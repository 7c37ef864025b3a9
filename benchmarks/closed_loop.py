"""Close the loop over processes on the virtual rig and measure it: latency of every stage, CPU of every node.

python -m benchmarks.closed_loop [--seconds 30] [--rate 200] [--realtime 20] [--everything] [--write-docs]
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.measure import load
from benchmarks.page import replace_part
from benchmarks.serialized import stamp_ns, taken
from soft_dynamics.arguments import Array

METHOD = """
`simulation.launch.xml` at ordinary priority without F/T sensor and `shape_publisher`: virtual rig, bridges, estimator,
controller and model are
processes of their own on one computer, and so is the listener that measures. The configuration controller is asked
to follow Wang's figure of eight again and again; when states come too late it vents, as the last line tells. A
frame's way begins when the virtual Motive takes it in hand (its encoding counts; the time is in the packet) and
ends when the DDS of another process has the command. Stages end when DDS gets the message from its node: the
poses of the frame, the first state after them, the first command after that. CPU is of one core, user and system.
"""
DOCS = Path(__file__).resolve().parent.parent / 'docs' / 'control.md'
ROBOT = 'honeycomb_arm'
TARGET = 5e-3  # [s] packet to command, 99 %
PATIENCE = 90.0  # [s] until the loop has to run
SETTLE = 4.0  # [s] for the clocks
POLL = 2e-3  # [s]
EIGHT = 10.0  # [s]
SOONEST = 5e-5  # [s] no node answers a message sooner: what is published earlier answers another one
PRESSURES = 16 * 8  # bytes of the pressures, with which a command ends
STAGES = {
    'mocap_bridge: packet to poses': ('sent', 'pose'),
    'state_estimator: poses to state': ('pose', 'state'),
    'controller: state to command': ('state', 'command'),
    'DDS: command to another process': ('command', 'arrived'),
    '**packet to command**': ('sent', 'arrived'),
}


class Heard(NamedTuple):
    """When a message was stamped, published and received [ns], and whether it ends with zeros."""

    stamp: int
    published: int
    received: int
    is_zero: bool  # of a command: all pressures are


@dataclass
class Ear:
    """What came on one topic; the messages stay serialized."""

    subscription: Any
    messages: list[Heard] = field(default_factory=list)

    def drain(self) -> None:
        """Take all that has come."""
        for data, info in taken(self.subscription):
            is_zero = not any(data[-PRESSURES:])
            published, received = info['source_timestamp'], info['received_timestamp']
            self.messages.append(Heard(stamp_ns(data), published, received, is_zero))


class Listener:
    """Hears poses, states and commands, and the packets themselves as a second client of the virtual Motive."""

    def __init__(self, mocap_port: int) -> None:
        import rclpy
        from soft_robot_suite.msg import BodyPoses, ChamberPressures, SoftState
        from trajectory_msgs.msg import JointTrajectory

        from soft_dynamics.ros.qos import COMMAND, SENSOR, STATE
        from soft_hw_bridge.natnet.client import NatNetClient, NatNetConfig

        self.node = rclpy.create_node('closed_loop_listener')
        sensor, state = copy(SENSOR), copy(STATE)
        sensor.depth = state.depth = 2000  # a slow listener loses nothing

        def hear(kind: Any, topic: str, qos: Any) -> Ear:
            return Ear(self.node.create_subscription(kind, topic, lambda _: None, qos))

        self.poses = hear(BodyPoses, 'mocap/frame', sensor)
        self.states = hear(SoftState, 'state', state)
        self.commands = hear(ChamberPressures, 'pressure/command', state)
        self.references = self.node.create_publisher(JointTrajectory, 'reference/configuration', COMMAND)
        here = '127.0.0.1'
        self._tap = NatNetClient(NatNetConfig(server=here, interface=here, command_port=mocap_port))
        self.frames: list[tuple[int, int]] = []  # exposure and sending [ns], host time

    def close(self) -> None:
        self._tap.close()
        self.node.destroy_node()

    def run(self, is_over: Callable[[], bool]) -> None:
        """Listen."""
        while not is_over():
            for ear in (self.poses, self.states, self.commands):
                ear.drain()
            for sample in self._tap.poll(0.0):
                frame, tick_hz = sample.frame, self._tap.info.tick_hz if self._tap.info else 10**9
                waited = (frame.transmit_ticks - frame.mid_exposure_ticks) * 1_000_000_000 // tick_hz
                self.frames.append((sample.stamp_ns, sample.stamp_ns + waited))
            time.sleep(POLL)

    @property
    def is_complete(self) -> bool:
        heard = (self.poses.messages, self.states.messages, self.commands.messages, self.frames)
        return all(len(each) > 50 for each in heard) and self.references.get_subscription_count() > 0


def measure(
    options: argparse.Namespace, say: Callable[[str], None]
) -> tuple[dict[str, Array], dict[str, float]]:
    """Return the moments (s since the start) of every frame's way, and the CPU of the nodes."""
    import rclpy

    import soft_dynamics as sd
    from soft_dynamics.ros.priority import raise_priority
    from tools.demo_figures import Eight
    from tools.simulation import Simulation

    eight, seconds = Eight(sd.load(ROBOT), EIGHT), options.seconds
    arguments = {name: getattr(options, name) for name in ('rate', 'estimator', 'realtime')}
    rclpy.init()
    if not options.everything:
        arguments |= {'shape': 'false', 'ft': 'none'}
    with Simulation(say, robot=ROBOT, **arguments) as simulation:
        listener = Listener(simulation.ports['mocap_port'])
        if options.realtime:
            raise_priority(options.realtime)  # it stands for the next node of the loop
        try:
            deadline = time.monotonic() + PATIENCE

            def is_up() -> bool:
                simulation.check()
                return listener.is_complete or time.monotonic() > deadline

            listener.run(is_up)
            if not listener.is_complete:
                raise SystemExit(f'closed_loop: the loop does not run after {PATIENCE:g} s')
            say(f'the loop runs; measuring for {seconds:g} s')
            _draw(listener, eight, SETTLE)
            pids = dict(simulation.pids)
            cpu, begin, busy = {node: _cpu(pid) for node, pid in pids.items()}, time.time_ns(), _busy()
            _draw(listener, eight, seconds)
            end = time.time_ns()
            shares = {node: (_cpu(pid) - cpu[node]) / ((end - begin) * 1e-9) for node, pid in pids.items()}
            shares['whole computer'] = (_busy() - busy) / ((end - begin) * 1e-9)
            _draw(listener, eight, 0.5)
        finally:
            listener.close()
            rclpy.try_shutdown()
    return moments(listener, begin, end), shares


def _draw(listener: Listener, eight: Any, seconds: float) -> None:
    """Follow the figure of eight again and again for a time."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0.0:
        listener.references.publish(eight.message(time.time() + 0.05))
        until = time.monotonic() + min(left, EIGHT + 0.1)
        listener.run(lambda until=until: time.monotonic() > until)


def moments(listener: Listener, begin_ns: int, end_ns: int) -> dict[str, Array]:
    """Return when each frame of a time was sent, and when pose, state and command that came of it were published [s].

    A frame without one of them is left out and counted in `lost`.
    """
    pose_stamps = np.array([m.stamp for m in listener.poses.messages])
    published = {
        name: np.sort(np.array([m.published for m in ear.messages]))
        for name, ear in (('state', listener.states), ('command', listener.commands))
    }
    arrived = {m.published: m.received for m in listener.commands.messages}
    ways, lost = [], 0
    for exposure, sent in listener.frames:
        if not begin_ns <= sent < end_ns:
            continue
        k = int(np.argmin(np.abs(pose_stamps - exposure)))
        way = [sent, listener.poses.messages[k].published]
        for times in published.values():
            later = int(np.searchsorted(times, way[-1] + SOONEST * 1e9))
            way += [int(times[later])] if later < times.size else []
        if abs(pose_stamps[k] - exposure) > 2e6 or len(way) < 4:
            lost += 1
            continue
        ways.append([*way, arrived[way[-1]]])
    columns = 1e-9 * (np.array(ways).T - begin_ns)
    names = ('sent', 'pose', 'state', 'command', 'arrived')
    idle = np.mean([m.is_zero for m in listener.commands.messages if begin_ns <= m.published < end_ns])
    states = (
        np.mean((published['state'] >= begin_ns) & (published['state'] < end_ns)) * published['state'].size
    )
    counts = {'lost': lost, 'idle': idle, 'state rate': states / (1e-9 * (end_ns - begin_ns))}
    return dict(zip(names, columns, strict=True)) | {name: np.array([x]) for name, x in counts.items()}


def _cpu(pid: int) -> float:
    """Return the seconds of CPU a process has used."""
    stat = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    return (int(stat[11]) + int(stat[12])) / os.sysconf('SC_CLK_TCK')


def _busy() -> float:
    """Return the seconds of CPU that all processes of this computer have used."""
    user, nice, system = Path('/proc/stat').read_text().split()[1:4]
    return (int(user) + int(nice) + int(system)) / os.sysconf('SC_CLK_TCK')


def tables(way: dict[str, Array], shares: dict[str, float]) -> tuple[list[list[str]], list[list[str]]]:
    """Return latencies and CPU as rows, each with its header."""
    stages = [['stage', 'p50', 'p99', 'largest']]
    for name, (start, stop) in STAGES.items():
        quantiles = np.quantile(way[stop] - way[start], (0.5, 0.99, 1.0))
        stages.append([name, *(f'{1e3 * value:.2f} ms' for value in quantiles)])
    own = sum(share for node, share in shares.items() if node != 'whole computer')
    named = shares | {'all of them': own, 'whole computer': shares['whole computer']}
    nodes = [['node', 'CPU'], *([node, f'{100.0 * share:.0f} %'] for node, share in named.items())]
    return stages, nodes


def text(rows: Sequence[Sequence[str]]) -> str:
    """Return a table for a terminal."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return '\n'.join('  '.join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Return a table for the documentation."""
    header, *lines = rows
    return '\n'.join(f'| {" | ".join(line)} |' for line in (header, ['---'] * len(header), *lines))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog='python -m benchmarks.closed_loop', description=(__doc__ or '').partition('\n')[0], epilog=METHOD
    )
    parser.add_argument(
        '--seconds', type=float, default=30.0, help='how long to measure, default %(default)g'
    )
    parser.add_argument('--rate', type=float, default=200.0, help='of the loop [Hz], default %(default)g')
    parser.add_argument(
        '--estimator', default='model', choices=('model', 'differentiator'), help='default %(default)s'
    )
    parser.add_argument(
        '--realtime',
        type=int,
        default=0,
        help='priority of all nodes but the model, 1 to 99; default 0: ordinary',
    )
    parser.add_argument('--everything', action='store_true', help='with F/T sensor and shape_publisher')
    parser.add_argument('--write-docs', action='store_true', help=f'also into docs/{DOCS.name}')
    options = parser.parse_args(arguments)
    if not options.seconds >= 2.0:
        parser.error(f'--seconds: at least 2, got {options.seconds:g}')
    if not all(importlib.util.find_spec(name) for name in ('rclpy', 'soft_robot_suite')):
        raise SystemExit('closed_loop: needs ROS: tools/run.py --own-domain python -m benchmarks.closed_loop')
    begin = time.monotonic()

    def say(message: str) -> None:
        print(f'closed_loop {time.monotonic() - begin:4.0f} s: {message}', file=sys.stderr, flush=True)

    way, shares = measure(options, say)
    stages, nodes = tables(way, shares)
    p99 = float(np.quantile(way['arrived'] - way['sent'], 0.99))
    verdict = 'met' if p99 <= TARGET else 'missed'
    count, lost = way['sent'].size, int(way['lost'][0])
    idle = 100.0 * float(way['idle'][0])
    rate = (
        f'{count} frames in {options.seconds:g} s, {lost} without a command; {way["state rate"][0]:.0f} states a '
        f'second; vented in {idle:.0f} % of the commands'
    )
    where = f'{os.cpu_count()} cores, load {load():.1f}, Python {platform.python_version()}'
    line = f'{rate}; {where}. Target {1e3 * TARGET:g} ms (99 %): {verdict}.'
    print(f'{text(stages)}\n\n{text(nodes)}\n\n{line}')
    if options.write_docs:
        flags = ' --everything' * options.everything + f' --realtime {options.realtime}' * bool(
            options.realtime
        )
        name = f'benchmarks.closed_loop{flags}'
        method = '' if flags else f'{METHOD.strip()}\n\n'
        part = f'{method}{markdown(stages)}\n\n{markdown(nodes)}\n\n{line}'
        replace_part(DOCS, f'<!-- {name} -->', f'<!-- end of {name} -->', part)
    return 0


if __name__ == '__main__':
    sys.exit(main())
