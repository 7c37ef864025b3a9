"""A node that misbehaves as the environment variable AWKWARD demands."""

from __future__ import annotations

import ctypes
import os
import threading
import time

import rclpy
from rclpy.node import Node

from soft_dynamics.ros import node_main

MODE = os.environ['AWKWARD']


class Awkward(Node):
    """Prints its steps."""

    def __init__(self) -> None:
        super().__init__('awkward')
        self.stop = threading.Event()
        if MODE == 'slow to start':
            print('starting', flush=True)
            time.sleep(60.0)
        if MODE == 'refused late':
            threading.Thread(target=self.stop.wait).start()
        self.create_timer(0.0, self.on_timer)

    def on_timer(self) -> None:
        print('running', flush=True)
        if MODE == 'buggy':
            raise ZeroDivisionError
        if MODE == 'finishes':
            raise SystemExit(3)
        if MODE == 'counts threads':
            rclpy.shutdown()
        self.destroy_timer(next(self.timers))

    def destroy_node(self) -> None:
        print('stopping', flush=True)
        self.stop.set()
        if MODE == 'slow to stop':
            time.sleep(1.0)
        if MODE == 'never stops':
            ctypes.PyDLL(None).sleep(60)  # holds the GIL, like a DDS that waits for itself
        super().destroy_node()
        print('stopped', flush=True)


def refuse(_: Node) -> None:
    raise OSError('no such device')


def main(args: list[str] | None = None) -> int:
    if MODE == 'refused late':
        node_main.take_priority = refuse
    if MODE == 'never stops':
        node_main._LONGEST_END = 1.0
    code = node_main.run_node(Awkward, args)
    if MODE == 'counts threads':
        print(*(thread.name for thread in threading.enumerate()), flush=True)
    return code
