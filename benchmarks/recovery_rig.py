"""Bags recorded from the virtual rig: devices on the network, bridges of a real rig, and `bag_recorder`."""

from __future__ import annotations

import importlib.util
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from soft_dynamics.array import Array
from soft_dynamics.robot import Robot, load
from soft_estimation.recordings.recording import Recording, read_recording

PATIENCE = 90.0  # [s] longest wait for the rig
PERIOD = 0.01  # [s] between commands
LEAD = 0.5  # [s] of zero pressure before the first command
QUIET, SWING = 0.01, 3.0  # relative to pressure_max, and [s]: less pressure for this time is a free swing
TOPICS = {'mocap': 'mocap/{}/pose', 'vive': 'vive/{}/pose', 'fiber': 'fiber/shape', 'ft': 'ft/wrench'}
Command = Callable[[float], Array]  # pressures [Pa] at a time [s]


def arm(folder: Path, seed: int) -> list[Recording]:
    """Jensen's arm under four random steps of 2 s."""
    robot = load('pneumatic_arm')
    shares = np.random.default_rng(seed).random((4, len(robot.chamber_names)))
    path = record(robot, folder / 'rig', _steps(0.65 * shares * _largest(robot), 2.0), 8.0)
    return [read_recording(path, robot, bandwidth=20.0)]


def bending(folder: Path, _seed: int) -> list[Recording]:
    """Godage's actuator, steps to 119 and 80 kPa and back."""
    robot = load('bending_actuator')
    levels = np.array([[0.0], [119e3], [0.0], [80e3], [0.0]])
    path = record(robot, folder / 'rig', _steps(levels, 1.0), 5.0)
    return [read_recording(path, robot, 250.0, bandwidth=10.0)]


def floating(folder: Path, seed: int) -> list[Recording]:
    """Mehl's actuator, valves opened or shut every 0.5 s."""
    robot = load('floating_actuator')
    levels = np.where(np.random.default_rng(seed).random((32, 3)) > 0.5, _largest(robot), 0.0)
    path = record(robot, folder / 'rig', _steps(levels, 0.5), 16.0, rate=200.0)
    return [read_recording(path, robot, 200.0, bandwidth=30.0)]


def honeycomb(folder: Path, seed: int) -> list[Recording]:
    """Wang's arm, bent to a side and released three times, then inflated slowly."""
    robot, m = load('honeycomb_arm'), np.arange(16)
    angle = np.random.default_rng(seed).uniform(0.0, 2.0 * np.pi, 3)
    sides = np.tile([np.cos(angle), np.sin(angle)], (4, 1)).T @ robot.actuation(robot.rest)
    levels = np.where(sides > 0.0, 0.15 * _largest(robot), 0.0)
    swings = _steps(np.concatenate([[level, 0.0 * level, 0.0 * level] for level in levels]), 2.5)

    def command(t: float) -> Array:
        slow = t - 22.5
        if slow < 0.0:
            return swings(t)
        wave: Array = 1.0 + np.sin(2.0 * np.pi * slow / 20.0 * (1 + m % 5) + m)
        return 60e3 * min(slow / 4.0, 1.0) * wave

    whole = read_recording(record(robot, folder / 'rig', command, 42.5), robot, bandwidth=20.0)
    quiet = np.abs(whole.pressure).max(1) < QUIET * _largest(robot)
    edges = [0, *(np.flatnonzero(np.diff(quiet)) + 1).tolist(), whole.t.size - 1]
    parts = [
        whole.part(whole.t[a], whole.t[b - 1]) for a, b in pairwise(edges) if whole.t[b] - whole.t[a] > SWING
    ]
    return parts[-4:]  # in earlier parts the rig waits for its first command


RIGS: dict[str, Callable[[Path, int], list[Recording]]] = {
    'pneumatic_arm': arm,
    'bending_actuator': bending,
    'floating_actuator': floating,
    'honeycomb_arm': honeycomb,
}


def record(robot: Robot, path: Path, command: Command, seconds: float, rate: float = 100.0) -> Path:
    """Drive a virtual robot for a time, and record its sensors and pressures; rate [Hz] of motion capture and valves.

    Raises SystemExit without ROS, and if the rig does not start.
    """
    if importlib.util.find_spec('rclpy') is None:
        raise SystemExit('recovery: rigs need ROS: tools/run.py --own-domain python -m benchmarks.recovery')
    import rclpy

    from tools.simulation import Simulation

    sensors = robot.description.sensors
    topics = ['pressure/measured', *dict.fromkeys(TOPICS[s.kind].format(s.name) for s in sensors)]
    launched = Simulation(robot=robot.name, rate=rate, controller='none', estimator='none', shape='false')
    rclpy.init()
    try:
        with launched as simulation:
            recorder = _recorder(path, topics)
            try:
                _drive(command, seconds, robot.chamber_names, topics, simulation.check)
            finally:
                recorder.send_signal(signal.SIGINT)
                recorder.wait(30.0)
    finally:
        rclpy.try_shutdown()
    return path


def _recorder(path: Path, topics: list[str]) -> subprocess.Popen[bytes]:
    node = 'import sys; from soft_dynamics.nodes.bag_recorder import main; sys.exit(main())'
    parameters = ['-p', f'output:={path}', '-p', f'topics:={json.dumps(topics)}']
    return subprocess.Popen([sys.executable, '-c', node, '--ros-args', *parameters])


def _drive(
    command: Command, seconds: float, chambers: Sequence[str], topics: list[str], check: Callable[[], None]
) -> None:
    """Wait for all recorded topics, then command; the pressure bridge vents after the last command.

    The bridge follows nothing before a command near zero, so the first commands are zero.
    """
    import rclpy
    from soft_robot_suite.msg import ChamberPressures

    from soft_dynamics.ros.conversions import float64s
    from soft_dynamics.ros.qos import COMMAND, SENSOR

    node = rclpy.create_node('recovery')
    commands = node.create_publisher(ChamberPressures, 'pressure/command', COMMAND)
    message, heard = ChamberPressures(names=list(chambers)), []
    node.create_subscription(ChamberPressures, 'pressure/measured', heard.append, SENSOR)
    deadline = time.monotonic() + PATIENCE
    try:
        while not (heard and all(node.count_subscribers(topic) for topic in topics)):
            rclpy.spin_once(node, timeout_sec=0.0)
            check()
            if time.monotonic() > deadline:
                raise SystemExit(f'recovery: the virtual rig does not run after {PATIENCE:g} s')
            time.sleep(PERIOD)
        start = time.monotonic() + LEAD
        while (passed := time.monotonic() - start) < seconds:
            message.pressure = float64s(command(passed) if passed > 0.0 else np.zeros(len(chambers)))
            message.header.stamp = node.get_clock().now().to_msg()
            commands.publish(message)
            time.sleep(PERIOD)
    finally:
        node.destroy_node()


def _steps(levels: Array, hold: float) -> Command:
    """Return a command that steps through levels (count, m), each held for a time [s]."""
    return lambda t: levels[min(int(t / hold), len(levels) - 1)]


def _largest(robot: Robot) -> float:
    return robot.description.actuation.pressure_max
