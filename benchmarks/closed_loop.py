"""Measure the closed loop on the virtual rig: latency of each stage, CPU of each node.

python -m benchmarks.closed_loop [--seconds 30] [--rate 200] [--realtime 20] [--everything] [--write-docs]
python -m benchmarks.closed_loop --compare 5 [...]    compares the suite's executor and messages with those of rclpy
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from benchmarks.closed_loop_listener import MOMENTS, Listener, Ways, ways
from benchmarks.measure import cpu_seconds, load
from benchmarks.metronome import Metronomes
from benchmarks.page import replace_part
from soft_dynamics.array import Array
from soft_dynamics.commands.arguments import number

METHOD = """
`simulation.launch.xml` at ordinary priority, without F/T sensor and `shape_publisher`. Virtual rig, bridges, estimator,
controller, model and the listener that measures are separate processes on one computer. The configuration controller
follows Wang's figure of eight repeatedly. If states come too late it vents; the last line says how often.

The latency of a frame begins when its packet is on the network and ends when the DDS of another process has the
command. If the virtual Motive was delayed after it stamped a frame, the time counts from when the packet would have
been sent: the stamp plus the shortest time of all frames from stamp to socket. A stage ends when DDS gets the message
from its node: the poses of that frame, the first state begun after them, the next command. CPU is user and system
time, of one core.

A probe process of the highest priority on each core wakes up every 4 ms and records when it was late, which shows
stalls of the machine itself. The row "machine awake" has only the frames during which no probe was late by more than
0.5 ms.
"""
DOCS = Path(__file__).resolve().parent.parent / 'docs' / 'benchmarks' / 'closed_loop.md'
ROBOT = 'honeycomb_arm'
TRACKED = ('segment2', 'segment4')  # also tracked by Vive with --everything
TARGET = 5e-3  # [s] packet to command, p99
PATIENCE = 90.0  # [s] longest wait for the loop
SETTLE = 4.0  # [s] for the clocks
EIGHT = 10.0  # [s]
STRETCH = 30.0  # [s] parts of a long run, reported separately
RUNTIMES = ('lean+flat', 'events+flat', 'events+ordinary', 'single+ordinary')  # executor and messages
STAGES = {
    'mocap_bridge: packet to poses': ('sent', 'pose'),
    'state_estimator: poses to state': ('pose', 'state'),
    'controller: state to command': ('state', 'command'),
    'DDS: command to another process': ('command', 'arrived'),
    '**packet to command**': ('sent', 'arrived'),
}


class Run(NamedTuple):
    """The measurement."""

    ways: Ways
    shares: dict[str, float]  # CPU of one core, by node
    metronomes: Metronomes


def measure(options: argparse.Namespace, say: Callable[[str], None]) -> Run:
    """Start the loop and record it for a time."""
    import rclpy

    import soft_dynamics as sd
    from tools.demo_figures import Eight
    from tools.simulation import Simulation, with_all_sensors

    eight, seconds = Eight(sd.load(ROBOT), EIGHT), options.seconds
    arguments = {name: getattr(options, name) for name in ('rate', 'estimator', 'realtime')}
    rclpy.init()
    with ExitStack() as stack:
        if options.everything:
            folder = Path(stack.enter_context(TemporaryDirectory()))
            robot = str(with_all_sensors(ROBOT, folder, TRACKED))
            arguments |= {'robot': robot, 'vive': 'steamvr', 'fiber': '127.0.0.1'}
        else:
            arguments |= {'robot': ROBOT, 'shape': 'false', 'ft': 'none'}
        simulation = stack.enter_context(Simulation(say, **arguments))
        listener = Listener(simulation.ports['mocap_port'], options.realtime)
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
            metronomes = Metronomes()
            _draw(listener, eight, 1.0)
            pids = dict(simulation.pids)
            cpu, begin, busy = {node: cpu_seconds(pid) for node, pid in pids.items()}, time.time_ns(), _busy()
            _draw(listener, eight, seconds)
            end = time.time_ns()
            shares = {
                node: (cpu_seconds(pid) - cpu[node]) / ((end - begin) * 1e-9) for node, pid in pids.items()
            }
            shares['whole computer'] = (_busy() - busy) / ((end - begin) * 1e-9)
            _draw(listener, eight, 0.5)
            metronomes.stop()
        finally:
            listener.close()
            rclpy.try_shutdown()
    return Run(ways(listener, begin, end), shares, metronomes)


def _draw(listener: Listener, eight: Any, seconds: float) -> None:
    """Repeat the figure of eight for a time."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0.0:
        listener.references.publish(eight.message(time.time() + 0.05))
        until = time.monotonic() + min(left, EIGHT + 0.1)
        listener.run(lambda until=until: time.monotonic() > until)


def _busy() -> float:
    """Return the CPU seconds used by all processes of this computer."""
    user, nice, system = Path('/proc/stat').read_text().split()[1:4]
    return (int(user) + int(nice) + int(system)) / os.sysconf('SC_CLK_TCK')


def tables(run: Run) -> tuple[list[list[str]], list[list[str]]]:
    """Return latencies and CPU as tables with headers."""
    way = dict(zip(MOMENTS, run.ways.moments.T, strict=True))
    stages = [['stage', 'p50', 'p99', 'largest']]
    for name, (start, stop) in STAGES.items():
        stages.append([name, *_quantiles(1e-9 * (way[stop] - way[start]))])
    awake = ~run.metronomes.during(way['sent'], way['arrived'])
    whole = 1e-9 * (way['arrived'] - way['sent'])
    if awake.any():
        stages.append(['**packet to command**, machine awake', *_quantiles(whole[awake])])
    stages.append(['wake-up of the probe: late by', *_quantiles(run.metronomes.lateness)])
    own = sum(share for node, share in run.shares.items() if node != 'whole computer')
    named = run.shares | {'all nodes': own, 'whole computer': run.shares['whole computer']}
    nodes = [['node', 'CPU'], *([node, f'{100.0 * share:.0f} %'] for node, share in named.items())]
    return stages, nodes


def stretches(run: Run) -> list[list[str]]:
    """Return the latency of each part of the run as a table; a shared machine has good and bad times."""
    sent, arrived = run.ways.moments[:, 0], run.ways.moments[:, -1]
    seconds = (sent - sent[0]) * 1e-9
    stalled = run.metronomes.during(sent, arrived)
    rows = [['seconds', 'p50', 'p99', 'largest', 'frames during a stall']]
    for k in range(int(seconds[-1] / STRETCH + 0.01)):  # the last frame arrives a cycle before the end
        part = seconds // STRETCH == k
        share = f'{100.0 * np.mean(stalled[part]):.1f} %'
        name = f'{k * STRETCH:.0f} to {(k + 1) * STRETCH:.0f}'
        rows.append([name, *_quantiles(1e-9 * (arrived - sent)[part]), share])
    return rows


def _quantiles(seconds: Array) -> list[str]:
    return [f'{1e3 * value:.2f} ms' for value in np.quantile(seconds, (0.5, 0.99, 1.0))]


def summary(run: Run, seconds: float) -> str:
    """Return the summary line below the tables."""
    found = run.ways
    whole = 1e-9 * (found.moments[:, -1] - found.moments[:, 0])
    p99 = float(np.quantile(whole, 0.99))
    stalled = float(np.mean(run.metronomes.during(found.moments[:, 0], found.moments[:, -1])))
    return (
        f'{len(whole)} frames in {seconds:g} s, {found.lost} without a command; {found.state_rate:.0f} states '
        f'per second from {", ".join(found.sources)}; {100.0 * found.idle:.0f} % of the commands vented; '
        f'{100.0 * stalled:.1f} % of the frames during a stall of the machine; {os.cpu_count()} cores, load '
        f'{load():.1f}, Python {platform.python_version()}. Target for p99: {1e3 * TARGET:g} ms, '
        f'{"met" if p99 <= TARGET else "missed"}.'
    )


def text(rows: Sequence[Sequence[str]]) -> str:
    """Return a table for a terminal."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return '\n'.join('  '.join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Return a table for the documentation."""
    header, *lines = rows
    return '\n'.join(f'| {" | ".join(line)} |' for line in (header, ['---'] * len(header), *lines))


def compare(options: argparse.Namespace, say: Callable[[str], None]) -> list[list[str]]:
    """Return a table of the suite's executor and messages beside those of rclpy, measured in turn; medians."""
    found: dict[str, list[tuple[float, float, float, float, float]]] = {runtime: [] for runtime in RUNTIMES}
    for k in range(options.compare):
        for runtime in RUNTIMES:
            say(f'{runtime}, run {k + 1} of {options.compare}')
            os.environ['SOFT_ROBOT_RUNTIME'] = runtime
            run = measure(options, lambda _: None)
            whole = 1e-9 * (run.ways.moments[:, -1] - run.ways.moments[:, 0])
            own = sum(share for node, share in run.shares.items() if node != 'whole computer')
            p50, p99 = np.quantile(whole, (0.5, 0.99))
            found[runtime].append((p50, p99, own, run.shares['state_estimator'], run.ways.state_rate))
    rows = [
        ['executor + messages', 'p50', 'p99', 'p99, runs', 'CPU of all nodes', 'of the estimator', 'states']
    ]
    for runtime, runs in found.items():
        p50, p99, own, estimator, rate = np.median(runs, 0)
        spread = (
            f'{1e3 * min(runs, key=lambda r: r[1])[1]:.2f} to {1e3 * max(runs, key=lambda r: r[1])[1]:.2f} ms'
        )
        cells = f'{1e3 * p50:.2f} ms', f'{1e3 * p99:.2f} ms', spread
        rows.append([runtime, *cells, f'{100 * own:.0f} %', f'{100 * estimator:.0f} %', f'{rate:.0f} /s'])
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog='python -m benchmarks.closed_loop', description=(__doc__ or '').partition('\n')[0], epilog=METHOD
    )
    parser.add_argument(
        '--seconds',
        type=number(2.0, 3600.0),
        default=30.0,
        help='duration of the measurement [s], default %(default)g',
    )
    parser.add_argument(
        '--rate', type=number(20.0, 1e3), default=200.0, help='rate of the loop [Hz], default %(default)g'
    )
    parser.add_argument(
        '--estimator', default='model', choices=('model', 'differentiator'), help='default %(default)s'
    )
    parser.add_argument(
        '--realtime',
        type=number(0, 99, int),
        default=0,
        help='real-time priority of all nodes except the model, 1 to 99; default 0: ordinary',
    )
    parser.add_argument(
        '--everything', action='store_true', help='add F/T sensor, Vive trackers, fiber and shape_publisher'
    )
    parser.add_argument(
        '--compare',
        type=number(1, 20, int),
        metavar='RUNS',
        help="run the suite's executor and messages and those of rclpy in turn, this many times each",
    )
    parser.add_argument('--write-docs', action='store_true', help='also write the tables into the docs')
    options = parser.parse_args(arguments)
    if not all(importlib.util.find_spec(name) for name in ('rclpy', 'soft_robot_suite')):
        raise SystemExit('closed_loop: needs ROS: tools/run.py --own-domain python -m benchmarks.closed_loop')
    begin = time.monotonic()

    def say(message: str) -> None:
        print(f'closed_loop {time.monotonic() - begin:4.0f} s: {message}', file=sys.stderr, flush=True)

    flags = ' --everything' * options.everything + f' --realtime {options.realtime}' * bool(options.realtime)
    if options.compare:
        folder = str(Path(__file__).resolve().parent / 'runtimes')
        os.environ['PYTHONPATH'] = os.pathsep.join([folder, *filter(None, [os.environ.get('PYTHONPATH')])])
        rows = compare(options, say)
        print(text(rows))
        if options.write_docs:
            name = f'benchmarks.closed_loop --compare {options.compare}{flags}'
            replace_part(DOCS, f'<!-- {name} -->', f'<!-- end of {name} -->', markdown(rows))
        return 0
    run = measure(options, say)
    parts = list(tables(run))
    if options.seconds >= 2.0 * STRETCH:
        parts.append(stretches(run))
    line = summary(run, options.seconds)
    print('\n\n'.join([*map(text, parts), line]))
    if options.write_docs:
        name = f'benchmarks.closed_loop{flags}'
        method = '' if flags else f'{METHOD.strip()}\n\n'
        part = '\n\n'.join([*map(markdown, parts), line])
        replace_part(DOCS, f'<!-- {name} -->', f'<!-- end of {name} -->', method + part)
    return 0


if __name__ == '__main__':
    sys.exit(main())
