"""Start and stop of a node process: `def main(args=None): return run_node(DynamicsNode, args)`."""

from __future__ import annotations

import faulthandler
import re
import signal
import sys
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.logging import get_logger
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import remove_ros_args

from soft_dynamics.ros.executor import LeanExecutor
from soft_dynamics.ros.help import help_text
from soft_dynamics.ros.realtime import take_priority
from soft_dynamics.ros.report import USER_ERRORS, report

_SWITCH_INTERVAL = (
    5e-4  # [s] switch interval for threads that wait for a device or DDS; Python's default is 5 ms
)
_LONGEST_END = 120.0  # [s] limit for the shutdown of a node, which may have to vent chambers along a ramp
_POLL_PERIOD = 0.1  # [s] longest wait of the executor, and so the longest delay of a signal


def run_node(node_class: type[Node], args: list[str] | None = None) -> int:
    """Create the node, run its callbacks until SIGINT, SIGTERM or SIGHUP, destroy it; return the exit code.

    `--help` prints the purpose and the parameters of the node instead.

    Exit code: 0 after a requested stop; 1, with one line in the log, if the node cannot start with the given
    parameters. Any other exception is raised after the node is destroyed; a callback may `raise SystemExit(code)`.

    rclpy's signal handlers would close the context first, so the last, safe command could not be sent.

    DDS can deadlock while it closes, holding Python's lock, if another process starts or ends at the same time (Fast
    DDS 2.14, `set_listener` against `onWriterDiscovery`). A shutdown that takes too long prints a traceback and ends
    with exit code 1.
    """
    args = sys.argv if args is None else args
    if {'-h', '--help'} & {*args[1:]}:
        print(help_text(node_class))
        return 0
    faulthandler.enable()  # print the location of a crash in compiled code or DDS
    sys.setswitchinterval(_SWITCH_INTERVAL)
    with _StopSignals() as stop:
        try:
            return _run(node_class, args, stop)
        finally:
            rclpy.try_shutdown()
            faulthandler.cancel_dump_traceback_later()


def _run(node_class: type[Node], args: list[str], stop: _StopSignals) -> int:
    node: Node | None = None
    try:
        try:
            _initialise(args)
            node = node_class()
            take_priority(node)
        except KeyboardInterrupt:
            return 0
        except USER_ERRORS as error:
            report(get_logger(Path(sys.argv[0]).stem), 'cannot start', error)
            return 1
        _spin(node, stop)
    finally:
        faulthandler.dump_traceback_later(_LONGEST_END, exit=True)
        if node is not None:
            node.destroy_node()
    return 0


def _initialise(args: list[str]) -> None:
    try:
        strangers = remove_ros_args(args)[1:]
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    except RuntimeError as error:
        reason = re.sub(
            r', at \S+:\d+|Failed to parse ROS arguments: |failed to initialize rcl: ', '', str(error)
        )
        raise ValueError(f'bad ROS arguments: {reason}') from None
    if strangers:
        raise ValueError(
            f'unknown argument {strangers[0]}, parameters are given as --ros-args -p name:=value'
        )


def _spin(node: Node, stop: _StopSignals) -> None:
    stop.interrupts = False
    with LeanExecutor() as executor:
        executor.add_node(node)
        try:
            while rclpy.ok() and not stop.requested:
                executor.spin_once(timeout_sec=_POLL_PERIOD)
        except ExternalShutdownException:
            pass


class _StopSignals:
    """SIGINT, SIGTERM and SIGHUP as a flag to read between callbacks, or as KeyboardInterrupt while `interrupts`.

    SIGHUP arrives when a terminal closes or an ssh connection is lost; under nohup it stays ignored.
    """

    def __init__(self) -> None:
        self.requested = False
        self.interrupts = True
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> _StopSignals:
        numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
            numbers.append(signal.SIGHUP)
        self._previous = {number: signal.signal(number, self._on_signal) for number in numbers}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.requested = True
        if self.interrupts:
            self.interrupts = False
            raise KeyboardInterrupt
