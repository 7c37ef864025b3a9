"""Time from a new process to the first answer, with an empty and with a filled kernel cache."""

from __future__ import annotations

import importlib.util
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

from benchmarks.measure import Settings, load
from benchmarks.table import Figure, Row, Target, quantity
from soft_dynamics.array import Array
from tools.run import own_domain

FIRST_CALLS = """
import numpy as np, soft_dynamics as sd
robot = sd.load('pneumatic_arm')
q = np.zeros(robot.nq)
robot.forward_dynamics(q, q, robot.inverse_dynamics(q, q, q))
"""
NODE = """
import rclpy
from soft_dynamics.nodes.dynamics import DynamicsNode
rclpy.init()
node = DynamicsNode()
print('ready', flush=True)
rclpy.spin(node)
"""
PATIENCE = 300.0  # [s] a slow machine may compile
STARTS = 5


def library(settings: Settings) -> list[Row]:
    """Measure a start with an empty and with a filled cache."""
    with tempfile.TemporaryDirectory() as cache:
        settings.say('start with an empty cache: compiles all needed kernels, about a minute')
        wall, cpu = np.array([_first_calls(cache) for _ in range(1 + STARTS)]).T
    what = 'import, load, inverse, forward'
    return [
        _row('start.library', f'{what}, empty cache', wall[:1], cpu[:1]),
        _row('start.library', f'{what}, filled cache', wall[1:], cpu[1:]),
    ]


def node(settings: Settings) -> list[Row]:
    """Measure the time until the dynamics node is ready, and until a waiting client has its answer (with discovery)."""
    if not all(importlib.util.find_spec(name) for name in ('rclpy', 'soft_robot_suite')):
        settings.say('start.node: skipped, it needs rclpy and the built messages (make bench has them)')
        return []
    import rclpy

    os.environ['ROS_DOMAIN_ID'] = own_domain()
    rclpy.init()
    try:
        settings.say('starting the dynamics node; the first start fills the cache')
        ready, answered, cpu = np.array([_first_answer() for _ in range(1 + STARTS)][1:]).T
    finally:
        rclpy.shutdown()
    return [
        _row('start.node', 'dynamics node until ready, filled cache', ready, cpu, Target(3.0, 's')),
        _row('start.node', 'dynamics node until a client has its answer', answered, cpu),
    ]


def _row(name: str, what: str, wall: Array, cpu: Array, target: Target | None = None) -> Row:
    what = f'{what}, wall time at load {load():.1f} [CPU {quantity(float(np.median(cpu)), "s")}]'
    return Row(name, what, Figure.of(wall, 's'), target=target)


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _first_calls(cache: str) -> tuple[float, float]:
    """Return wall and CPU time [s] of a new process that calls inverse and forward dynamics once."""
    begin, used = time.perf_counter(), _cpu_of_children()
    command, environment = [sys.executable, '-c', FIRST_CALLS], os.environ | {'NUMBA_CACHE_DIR': cache}
    subprocess.run(command, env=environment, check=True, stderr=subprocess.DEVNULL, timeout=PATIENCE)
    return time.perf_counter() - begin, _cpu_of_children() - used


def _first_answer() -> tuple[float, float, float]:
    """Return wall time [s] until a new node is ready and until it refused an empty request, and its CPU time [s]."""
    import rclpy
    from soft_robot_suite.srv import InverseDynamics

    asking = rclpy.create_node('asking')
    client = asking.create_client(InverseDynamics, 'dynamics/inverse')
    begin, used = time.perf_counter(), _cpu_of_children()
    process = subprocess.Popen(
        [sys.executable, '-c', NODE], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    limit = threading.Timer(PATIENCE, process.kill)
    limit.start()
    try:
        if not process.stdout or not process.stdout.readline():
            raise RuntimeError('start.node: the dynamics node did not start')
        ready = time.perf_counter() - begin
        while not client.service_is_ready() and process.poll() is None:
            time.sleep(0.01)
        answer = client.call_async(InverseDynamics.Request())
        rclpy.spin_until_future_complete(asking, answer, timeout_sec=PATIENCE)
        if not answer.done():
            raise RuntimeError('start.node: the dynamics node does not answer')
        answered = time.perf_counter() - begin
    finally:
        limit.cancel()
        process.terminate()
        try:
            process.communicate(timeout=10.0)
        except subprocess.TimeoutExpired:
            process.kill()
        asking.destroy_node()
    return ready, answered, _cpu_of_children() - used
