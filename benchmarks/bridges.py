"""Run all bridges at once against emulated devices at full rate: latency, losses and CPU of each, in one table.

python -m benchmarks.bridges [--seconds 60] [--write-docs]
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct
from typing import Any, NamedTuple

import numpy as np

from benchmarks.bridge_devices import BODIES, POINTS, TRACKERS
from benchmarks.measure import cpu_seconds, load
from benchmarks.page import replace_part
from benchmarks.serialized import BODY, STAMP, stamp_ns, taken

METHOD = """
Five emulated devices, five bridges and the listener run as eleven processes on one computer. The devices are those of
the virtual rig without its plant: they send the same packets, each with its send time, and no physics takes CPU from
the bridges.

- **Latency** runs from the hand-over of a sample to the emulated device until DDS has it in the listener's process. It
  includes the emulator's encoding, the network, the bridge and DDS. For pressure it starts in the middle of the Modbus
  request.
- **Vive**: the bridge polls poses 250 times a second; the emulator refreshes them 500 times a second. Up to 2 ms of the
  latency is the age of the pose. A poll that finds the same pose again counts as duplicate; the bridge repeats it a
  millisecond later.
- **Stamp error** is the distance between the stamp and the hand-over. The F/T box only counts samples, so its error
  includes the delay of the emulator.
- **CPU** is user and system time in percent of one core.
- **Counters** are those of the diagnostics; `topic` counts messages that DDS lost on the way to the listener.
"""
DOCS = Path(__file__).resolve().parent.parent / 'docs' / 'benchmarks' / 'bridges.md'
BEGIN, END = '<!-- benchmarks.bridges -->', '<!-- end -->'
PATIENCE = 60.0  # [s] longest wait for all topics
SETTLE = 4.0  # [s] for the clocks
POLL = 0.02  # [s] between two reads; DDS stamps messages on arrival
COMMAND_PERIOD = 0.02  # [s]
COUNTERS = ('lost', 'duplicate', 'out_of_order', 'malformed', 'foreign', 'reconnects')
LENGTH, NUMBER, TWO = (Struct(f'<{layout}') for layout in ('I', 'd', 'dd'))  # of CDR, little-endian
HEADER = (
    *('device', 'messages [1/s]', 'CPU', 'latency p50', 'p99', 'largest', 'stamp error p50', 'p99'),
    *('lost', 'duplicate', 'out of order', 'malformed', 'topic'),
)
LOADS = {
    'mocap': f'mocap, 360 Hz x {len(BODIES)} bodies',
    'vive': f'Vive, 250 Hz x {len(TRACKERS)} trackers',
    'fiber': f'fiber, 250 Hz x {POINTS} points',
    'ft': 'F/T, 1 kHz',
    'pressure': 'pressure, 200 Hz x 16 chambers',
}


class Message(NamedTuple):
    """Send time, stamp and arrival of a sample."""

    sent_ns: int
    stamp_ns: int
    received_ns: int


@dataclass
class Stream:
    """The messages of one topic, kept serialized: reading three numbers costs a tenth of building rclpy's objects."""

    subscription: Any
    sent: Callable[[bytes], tuple[float, float]] | None  # whole seconds and fraction; None: the stamp itself
    messages: list[Message] = field(default_factory=list)
    lost: int = 0
    _next: int = 0  # sequence number

    def drain(self, start_ns: int) -> None:
        """Take all waiting messages."""
        for data, info in taken(self.subscription):
            number = info['publication_sequence_number']
            self.lost += number - self._next if self._next else 0
            self._next = number + 1
            sent_ns = stamp = stamp_ns(data)
            if self.sent:
                seconds, fraction = self.sent(data)
                sent_ns = start_ns + round((seconds + fraction) * 1e9)
            self.messages.append(Message(sent_ns, stamp, info['received_timestamp']))


class Listener:
    """Reads all topics and diagnostics and commands pressures, without an executor to save CPU."""

    def __init__(self, start_ns: int) -> None:
        import rclpy
        from diagnostic_msgs.msg import DiagnosticArray
        from geometry_msgs.msg import PoseStamped, WrenchStamped
        from soft_robot_suite.msg import ChamberPressures, ShapeSamples

        from soft_dynamics.description.robot_description import load_description
        from soft_dynamics.ros.qos import COMMAND, SENSOR, STATE

        self.node = rclpy.create_node('bridges_listener')
        self.start_ns = start_ns
        sensor = copy(SENSOR)
        sensor.depth = 2000  # a slow listener loses no message
        robot = load_description('honeycomb_arm')
        names = [chamber.name for chamber in robot.actuation.chambers]
        self._command = ChamberPressures(names=names, pressure=[0.0] * len(names))
        self._level = 0.5 * robot.actuation.pressure_max
        self._publisher = self.node.create_publisher(ChamberPressures, 'pressure/command', COMMAND)
        self._diagnostics = self.node.create_subscription(DiagnosticArray, '/diagnostics', _ignore, STATE)
        self.values: dict[str, dict[str, str]] = {}  # diagnostics by device
        self.levels: dict[str, bytes] = {}

        def hear(kind: Any, topic: str, sent: Callable[[Any], tuple[float, float]] | None) -> Stream:
            return Stream(self.node.create_subscription(kind, topic, _ignore, sensor), sent)

        self.streams = {
            'mocap': [hear(PoseStamped, f'mocap/{name}/pose', _first_two) for name in BODIES],
            'vive': [hear(PoseStamped, f'vive/{name}/pose', _first_two) for name in TRACKERS],
            'fiber': [hear(ShapeSamples, 'fiber/shape', _of_shape)],
            'ft': [hear(WrenchStamped, 'ft/wrench', _first_two)],
            'pressure': [hear(ChamberPressures, 'pressure/measured', None)],
        }

    def run(self, is_over: Callable[[], bool]) -> None:
        """Read all topics once."""
        commanded = 0.0
        while not is_over():
            for stream in self._all():
                stream.drain(self.start_ns)
            self._drain_diagnostics()
            if time.monotonic() > commanded + COMMAND_PERIOD:
                commanded = time.monotonic()
                if self.levels.get('pressure') == b'\0':  # it follows zero; commands must begin there
                    self._command.pressure = [self._level] * len(self._command.names)
                self._command.header.stamp = self.node.get_clock().now().to_msg()
                self._publisher.publish(self._command)
            time.sleep(POLL)

    @property
    def is_complete(self) -> bool:
        """Whether all topics have messages and all bridges report OK."""
        heard = all(stream.messages for stream in self._all())
        return heard and all(self.levels.get(device) == b'\0' for device in LOADS)

    def missing(self) -> list[str]:
        return [
            d
            for d, s in self.streams.items()
            if not all(x.messages for x in s) or self.levels.get(d) != b'\0'
        ]

    def _all(self) -> Iterator[Stream]:
        return (stream for streams in self.streams.values() for stream in streams)

    def _drain_diagnostics(self) -> None:
        subscription = self._diagnostics
        while True:
            with subscription.handle:
                taken = subscription.handle.take_message(subscription.msg_type, False)
            if taken is None:
                return
            for status in taken[0].status:
                device = status.name.partition('_bridge')[0].strip('/')
                self.levels[device] = status.level
                self.values[device] = {item.key: item.value for item in status.values}


def measure(seconds: float, say: Callable[[str], None]) -> list[list[str]]:
    """Return the rows of the table."""
    import rclpy

    with ExitStack() as stack:
        say('starting devices and bridges')
        start_ns = time.time_ns()
        ports = {device: stack.enter_context(_device(device, start_ns)) for device in LOADS}
        rclpy.init()
        stack.callback(rclpy.try_shutdown)
        pids = {
            device: stack.enter_context(_bridge(device, params)) for device, params in _params(ports).items()
        }
        listener = Listener(start_ns)
        stack.callback(listener.node.destroy_node)
        deadline = time.monotonic() + PATIENCE
        listener.run(lambda: listener.is_complete or time.monotonic() > deadline)
        if not listener.is_complete:
            raise SystemExit(
                f'bridges: no good data from {", ".join(listener.missing())} within {PATIENCE:g} s'
            )
        say(f'all bridges publish; measuring for {seconds:g} s')
        _listen_for(listener, SETTLE)
        before, cpu, begin = (
            _counters(listener),
            {d: cpu_seconds(pid) for d, pid in pids.items()},
            time.time_ns(),
        )
        lost = _lost(listener)
        for left in np.arange(seconds, 0.0, -10.0).tolist():
            _listen_for(listener, min(left, 10.0))
            say(f'{max(left - 10.0, 0.0):g} s left')
        end = time.time_ns()
        shares = {
            device: (cpu_seconds(pid) - cpu[device]) / ((end - begin) * 1e-9) for device, pid in pids.items()
        }
        _listen_for(listener, 1.2)  # until the diagnostics of the last second have arrived
        after = _counters(listener)
        lost = {device: count - lost[device] for device, count in _lost(listener).items()}
        rows = {device: _figures(streams, begin, end) for device, streams in listener.streams.items()}
    table = []
    for device, (rate, *times) in rows.items():
        counts = [str(after[device][key] - before[device][key]) for key in COUNTERS[:4]]
        if device == 'vive':
            counts[0] = counts[2] = '-'
        table.append(
            [LOADS[device], rate, f'{100 * shares[device]:.0f} %', *times, *counts, str(lost[device])]
        )
    return table


def _figures(streams: Sequence[Stream], begin_ns: int, end_ns: int) -> list[str]:
    """Return rate, latencies and stamp errors of the samples received in a time."""
    messages = np.array([message for stream in streams for message in stream.messages])
    sent_ns, stamp_ns, received_ns = messages[(messages[:, 2] >= begin_ns) & (messages[:, 2] < end_ns)].T
    rate = len(sent_ns) / ((end_ns - begin_ns) * 1e-9)
    latency = np.quantile(1e-9 * (received_ns - sent_ns), (0.5, 0.99, 1.0))
    error = np.quantile(1e-9 * np.abs(stamp_ns - sent_ns), (0.5, 0.99))
    return [f'{rate:.0f}', *map(_ms, latency), *(map(_ms, error) if streams[0].sent else '--')]


def _lost(listener: Listener) -> dict[str, int]:
    """Return how many messages DDS lost so far."""
    return {device: sum(s.lost for s in streams) for device, streams in listener.streams.items()}


def _ms(seconds: float) -> str:
    return f'{1e3 * seconds:.2f} ms'


def _ignore(_: Any) -> None: ...


def _first_two(data: bytes) -> tuple[float, float]:
    """Return the first two numbers after the header, such as x and y of a pose or wrench."""
    first, second = TWO.unpack_from(data, _aligned(_after_header(data)))
    return first, second


def _of_shape(data: bytes) -> tuple[float, float]:
    """Return the twist of the first two places: the third number of their curvature."""
    at = _after_header(data)
    for _ in ('arc_length', 'points'):
        (count,) = LENGTH.unpack_from(data, at)
        at = _aligned(at + LENGTH.size) + count * NUMBER.size
    at = _aligned(at + LENGTH.size)
    return NUMBER.unpack_from(data, at + 2 * NUMBER.size)[0], NUMBER.unpack_from(data, at + 5 * NUMBER.size)[
        0
    ]


def _after_header(data: bytes) -> int:
    """Return the offset behind stamp and frame of a message."""
    at = BODY + STAMP.size
    at += LENGTH.size + LENGTH.unpack_from(data, at)[0]
    return at + -at % 4


def _aligned(at: int) -> int:
    return at + (BODY - at) % 8


def _listen_for(listener: Listener, seconds: float) -> None:
    end = time.monotonic() + seconds
    listener.run(lambda: time.monotonic() > end)


def _counters(listener: Listener) -> dict[str, dict[str, int]]:
    """Return the counters of each device, summed over its trackers."""
    return {
        device: {
            key: sum(
                int(value) for name, value in listener.values[device].items() if name.split('.')[-1] == key
            )
            for key in COUNTERS
        }
        for device in LOADS
    }


def _params(ports: dict[str, dict[str, int]]) -> dict[str, dict[str, Any]]:
    here = '127.0.0.1'
    port = {device: of_device['port'] for device, of_device in ports.items()}
    return {
        'mocap': {'server': here, 'interface': here, 'command_port': port['mocap']},
        'vive': {'stand_in_port': port['vive']},
        'fiber': {'host': here, 'port': port['fiber']},
        'ft': {'host': here, 'rdt_port': port['ft'], 'http_port': ports['ft']['http_port']},
        'pressure': {'robot': 'honeycomb_arm', 'modbus.host': here, 'modbus.port': port['pressure']},
    }


@contextmanager
def _device(device: str, start_ns: int) -> Iterator[dict[str, int]]:
    """Run an emulated device in a process of its own."""
    command = [sys.executable, '-m', 'benchmarks.bridge_devices', device, str(start_ns)]
    with _process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield json.loads(process.stdout.readline())


@contextmanager
def _bridge(device: str, params: dict[str, Any]) -> Iterator[int]:
    code = f'from soft_hw_bridge.nodes.{device}_bridge import main; raise SystemExit(main())'
    given = [word for name, value in params.items() for word in ('-p', f'{name}:={json.dumps(value)}')]
    command = [sys.executable, '-c', code, '--ros-args', '--log-level', 'warn', *given]
    with _process(command) as process:
        yield process.pid


@contextmanager
def _process(command: list[str], **options: Any) -> Iterator[Any]:
    process = subprocess.Popen(command, **options)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10.0)
        except subprocess.TimeoutExpired:
            process.kill()


def text(rows: Sequence[Sequence[str]]) -> str:
    """Return the table for a terminal."""
    lines = [HEADER, *rows]
    widths = [max(len(line[k]) for line in lines) for k in range(len(HEADER))]
    return '\n'.join(
        '  '.join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Return the table for the documentation."""
    return '\n'.join(f'| {" | ".join(line)} |' for line in (HEADER, ('---',) * len(HEADER), *rows))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog='python -m benchmarks.bridges',
        description=(__doc__ or '').partition('\n')[0],
        epilog=METHOD,
    )
    parser.add_argument(
        '--seconds', type=float, default=60.0, help='duration of the measurement [s], default %(default)g'
    )
    parser.add_argument('--write-docs', action='store_true', help=f'also write docs/benchmarks/{DOCS.name}')
    options = parser.parse_args(arguments)
    if not options.seconds >= 2.0:
        parser.error(f'--seconds: must be >= 2, got {options.seconds:g}')
    if not all(importlib.util.find_spec(name) for name in ('rclpy', 'soft_robot_suite')):
        raise SystemExit(
            'bridges: needs rclpy and the built messages: tools/run.py python -m benchmarks.bridges'
        )
    begin = time.monotonic()

    def say(message: str) -> None:
        print(f'bridges {time.monotonic() - begin:4.0f} s: {message}', file=sys.stderr, flush=True)

    rows = measure(options.seconds, say)
    where = f'{options.seconds:g} s, {os.cpu_count()} cores, load {load():.1f}, Python {platform.python_version()}'
    print(f'{text(rows)}\n\n{where}')
    if options.write_docs:
        replace_part(DOCS, BEGIN, END, f'{METHOD.strip()}\n\n{markdown(rows)}\n\n{where}.')
    return 0


if __name__ == '__main__':
    sys.exit(main())
