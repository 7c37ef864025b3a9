"""Run the node NODE (module and class) of the suite under the executor EXECUTOR, like a user's own script."""

from __future__ import annotations

import os
import sys
from importlib import import_module

import rclpy
from rclpy.executors import MultiThreadedExecutor, SingleThreadedExecutor
from rclpy.experimental.events_executor import EventsExecutor

from soft_dynamics.ros.node_main import run_node

EXECUTORS = {
    'single-threaded': SingleThreadedExecutor,
    'multi-threaded': lambda: MultiThreadedExecutor(num_threads=4),
    'events': EventsExecutor,
}


def main(args: list[str] | None = None) -> int:
    module, _, name = os.environ['NODE'].rpartition('.')
    node_class = getattr(import_module(module), name)
    if os.environ['EXECUTOR'] == 'own':
        return run_node(node_class, args)
    rclpy.init(args=sys.argv)
    executor = EXECUTORS[os.environ['EXECUTOR']]()
    executor.add_node(node_class())
    while rclpy.ok():  # EventsExecutor.spin() of rclpy 7.1.6 from PyPI never calls timers
        executor.spin_once(timeout_sec=0.1)
    return 0
