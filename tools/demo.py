"""Run the suite for half a minute on a virtual rig: `make demo`.

It launches simulation.launch.xml (a virtual honeycomb arm, the bridges of a real rig, the model), asks the model for
forces and accelerations, bends the arm in a circle through its valves, lets go, and reports what was measured.
A node that dies on the way is named; the launch brings it back after a second (without the virtual rig there is
nothing left to run, and the demo fails). Exit code 0: all of it worked.
"""

from __future__ import annotations

import argparse
import math
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import rclpy
from geometry_msgs.msg import PoseStamped, WrenchStamped
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from soft_robot_suite.msg import ChamberPressures
from soft_robot_suite.srv import ForwardDynamics, InverseDynamics

import soft_dynamics as sd
from soft_dynamics.ros.conversions import time_to_seconds
from soft_dynamics.ros.qos import COMMAND, SENSOR

ROOT = Path(__file__).resolve().parent.parent
ROBOT = 'honeycomb_arm'
NODES = ('virtual_rig', 'dynamics', 'mocap_bridge', 'ft_bridge', 'pressure_bridge')
PORTS = ('mocap_port', 'vive_port', 'fiber_port', 'ft_port', 'ft_http_port', 'pressure_port', 'control_port')
BATCH = 10_000
TURN = 4.0  # [s] of one circle
LINE_START, LINE_END = (
    ('\r', '') if sys.stdout.isatty() else ('', '\n')
)  # one live line, if there is a screen
START_LIMIT = 120.0  # [s] until every node has to be up


class Failure(Exception):
    """Why the demo cannot go on, in one line."""


class Launch:
    """The launched nodes, and what became of them."""

    def __init__(self) -> None:
        ports = [f'{name}:={port}' for name, port in zip(PORTS, free_ports(len(PORTS)), strict=True)]
        command = [
            sys.executable,
            str(ROOT / 'tools' / 'launch.py'),
            'soft_robot_suite',
            'simulation.launch.xml',
        ]
        self.process = subprocess.Popen(
            [*command, f'robot:={ROBOT}', *ports],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.pids: dict[str, int] = {}
        self.deaths: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event = re.search(
                r'\[(?P<node>\w+)-\d+\]: process (started with pid \[(?P<pid>\d+)|has died \[(?P<death>.*?), cmd)',
                line,
            )
            if event is None:
                continue
            if event['death']:
                self.deaths.append(f'{event["node"]} died ({event["death"]})')
                say(f'! {self.deaths[-1]}')
            else:
                if event['node'] in self.pids:
                    say(f'! {event["node"]} is back as process {event["pid"]}')
                self.pids[event['node']] = int(event['pid'])

    def check(self) -> None:
        if self.process.poll() is not None:
            reason = f': {self.deaths[-1]}' if self.deaths else ''
            raise Failure(f'the launch ended with exit code {self.process.returncode}{reason}')

    def stop(self) -> int:
        """Ask the launch to end as Ctrl-C does; returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(30.0)
            except subprocess.TimeoutExpired:
                self.process.terminate()
                self.process.wait(30.0)
        self._reader.join(5.0)
        return self.process.returncode


def free_ports(count: int) -> list[int]:
    """Ports that are free for TCP and UDP now."""
    held, ports = [], []
    while len(ports) < count:
        tcp = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        tcp.bind(('127.0.0.1', 0))
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        held += [tcp, udp]
        try:
            udp.bind(tcp.getsockname())
            ports.append(tcp.getsockname()[1])
        except OSError:
            continue
    for each in held:
        each.close()
    return ports


@dataclass
class Log:
    """What came in, with the time from the device's sample to its arrival here."""

    tip: list[np.ndarray] = field(default_factory=list)
    delay: list[float] = field(default_factory=list)
    force: list[float] = field(default_factory=list)
    highest: float = 0.0
    pressure: float = 0.0


class Client(Node):
    """Listens, commands and asks."""

    def __init__(self, robot: sd.Robot, launch: Launch) -> None:
        super().__init__('demo')
        self.robot, self.launch, self.log = robot, launch, Log()
        self.inverse = self.create_client(InverseDynamics, 'dynamics/inverse')
        self.forward = self.create_client(ForwardDynamics, 'dynamics/forward')
        self.commands = self.create_publisher(ChamberPressures, 'pressure/command', COMMAND)
        self.create_subscription(PoseStamped, 'mocap/plate4/pose', self._on_pose, SENSOR)
        self.wrenches = self.create_subscription(WrenchStamped, 'ft/wrench', self._on_wrench, SENSOR)
        self.create_subscription(ChamberPressures, 'pressure/measured', self._on_pressure, SENSOR)
        self.executor_ = SingleThreadedExecutor()
        self.executor_.add_node(self)

    def _on_pose(self, msg: PoseStamped) -> None:
        p = msg.pose.position
        self.log.tip.append(np.array([p.x, p.y, p.z]))
        self.log.delay.append(self.get_clock().now().nanoseconds * 1e-9 - time_to_seconds(msg.header.stamp))

    def _on_wrench(self, msg: WrenchStamped) -> None:
        f = msg.wrench.force
        self.log.force.append(math.sqrt(f.x**2 + f.y**2 + f.z**2))

    def _on_pressure(self, msg: ChamberPressures) -> None:
        self.log.pressure = max(msg.pressure)
        self.log.highest = max(self.log.highest, self.log.pressure)

    def spin(self, seconds: float, done: Callable[[], bool] = lambda: False) -> bool:
        """Run callbacks for a time or until done; True if done."""
        end = time.monotonic() + seconds
        while not done():
            self.launch.check()
            left = end - time.monotonic()
            if left <= 0.0:
                return False
            self.executor_.spin_once(timeout_sec=min(left, 0.05))
        return True

    def ask(self, client, request):  # type: ignore[no-untyped-def]
        """Call a service; ask again if the node was lost meanwhile."""
        for _ in range(5):
            future = client.call_async(request)
            if self.spin(10.0, future.done):
                return future.result()
            client.remove_pending_request(future)
        raise Failure(f'no answer from {client.srv_name}')

    def command(self, pressure: np.ndarray) -> None:
        msg = ChamberPressures(names=list(self.robot.chamber_names), pressure=pressure.tolist())
        msg.header.stamp = self.get_clock().now().to_msg()
        self.commands.publish(msg)


def say(text: str) -> None:
    print(f'demo: {text}', flush=True)


def wait_for_nodes(client: Client) -> None:
    begun = time.monotonic()

    def ready() -> bool:
        log, services = client.log, (client.inverse, client.forward)
        heard = len(log.tip) > 20 and bool(log.force) and client.commands.get_subscription_count() > 0
        return heard and all(service.service_is_ready() for service in services)

    while not client.spin(5.0, ready):
        if time.monotonic() - begun > START_LIMIT:
            raise Failure('not every node came up')
        say(f'waiting for the nodes, {time.monotonic() - begun:.0f} s')
    pids = ', '.join(f'{name} ({client.launch.pids.get(name, "?")})' for name in NODES)
    say(f'running after {time.monotonic() - begun:.1f} s: {pids}')


def ask_the_model(client: Client) -> list[str]:
    n, rng = client.robot.nq, np.random.default_rng(0)
    one = client.ask(client.inverse, InverseDynamics.Request(q=[0.1] * n))
    if not one.success:
        raise Failure(f'dynamics/inverse refused: {one.message}')
    q, qd, qdd = rng.uniform(-0.5, 0.5, (3, BATCH, n))
    start = time.monotonic()
    there = client.ask(
        client.inverse, InverseDynamics.Request(count=BATCH, q=q.ravel(), qd=qd.ravel(), qdd=qdd.ravel())
    )
    back = client.ask(
        client.forward, ForwardDynamics.Request(count=BATCH, q=q.ravel(), qd=qd.ravel(), tau=there.tau)
    )
    seconds = time.monotonic() - start
    error = np.abs(np.asarray(back.qdd) - qdd.ravel()).max()
    if not error < 1e-6:
        raise Failure(f'forward dynamics does not undo inverse dynamics: {error:.1e} rad/s^2')
    torque = max(one.tau, key=abs)
    say(f'model: holding every joint at 0.1 rad takes up to {torque:.3f} N m')
    return [
        f'{BATCH:,} states to forces and back in {1e3 * seconds:.0f} ms over ROS, error {error:.1e} rad/s^2'
    ]


def circle(robot: sd.Robot, t: float) -> np.ndarray:
    """Pressures that bend all segments alike, in a direction that turns once in TURN."""
    size = 0.45 * robot.description.actuation.pressure_max * min(1.0, t)
    x, y = size * math.cos(2.0 * math.pi * t / TURN), size * math.sin(2.0 * math.pi * t / TURN)
    four = np.array([x + y, x - y, -x + y, -x - y]) / 2.0 + size / math.sqrt(2.0)
    return np.tile(four, len(robot.description.segments))


def move(client: Client, seconds: float) -> list[str]:
    client.spin(1.0)
    still, weight = client.log.tip[-1], float(np.median(client.log.force))
    client.destroy_subscription(client.wrenches)  # 1000 messages a second that nobody looks at any more
    client.log = Log()
    start, shown = time.monotonic(), 0.0
    while (t := time.monotonic() - start) < seconds:
        client.command(circle(client.robot, t))
        client.spin(0.02)
        if client.log.tip and t >= shown:
            shown = t + (0.1 if sys.stdout.isatty() else 1.0)
            x, y, z = client.log.tip[-1]
            status = f'tip at x {x:+.3f} y {y:+.3f} z {z:.3f} m, highest pressure {client.log.pressure / 1e3:5.1f} kPa'
            print(f'{LINE_START}demo: {t:4.1f} s  {status}', end=LINE_END, flush=True)
    print()
    tip, delay = np.array(client.log.tip), 1e3 * np.array(client.log.delay)
    if len(tip) < 10 * seconds:
        raise Failure(f'only {len(tip)} poses of the tip in {seconds:.0f} s')
    reach = np.linalg.norm(tip[:, :2] - still[:2], axis=1).max()
    length = np.linalg.norm(np.diff(tip[:: max(1, len(tip) // int(20 * seconds))], axis=0), axis=1).sum()
    limit = client.robot.description.actuation.pressure_max
    if client.log.highest > limit:
        raise Failure(f'a chamber had {client.log.highest:.0f} Pa, its limit is {limit:.0f} Pa')
    if reach < 0.02:
        raise Failure(f'the tip moved only {1e3 * reach:.0f} mm')
    mass = sum(s.mass for s in client.robot.description.segments)  # type: ignore[union-attr]
    return [
        f'tip moved {100 * reach:.1f} cm aside and {length:.2f} m in all; {len(tip) / seconds:.0f} poses/s',
        f'from exposure to here: median {np.median(delay):.1f} ms, 99 % below {np.percentile(delay, 99):.1f} ms',
        f'weight at rest {weight:.2f} N measured at the base, {9.81 * mass:.2f} N by the robot file',
        f'highest chamber pressure {client.log.highest / 1e3:.0f} kPa of {limit / 1e3:.0f} kPa allowed',
    ]


def let_go(client: Client) -> list[str]:
    start = time.monotonic()
    low = 0.02 * client.robot.description.actuation.pressure_max
    if not client.spin(10.0, lambda: client.log.pressure < low):
        raise Failure('the chambers are not vented 10 s after the last command')
    return [f'without commands the bridge vented the arm in {time.monotonic() - start:.1f} s']


def run(seconds: float) -> int:
    begun = time.monotonic()
    say(f'a virtual {ROBOT} with the bridges of a real rig; about {seconds + 20:.0f} s')
    robot = sd.load(ROBOT)
    launch = Launch()
    rclpy.init()
    client = Client(robot, launch)
    facts: list[str] = []
    try:
        wait_for_nodes(client)
        facts += ask_the_model(client)
        say(f'bending the arm in a circle for {seconds:.0f} s')
        facts += move(client, seconds)
        facts += let_go(client)
        failure = ''
    except Failure as reason:
        failure = str(reason)
    except KeyboardInterrupt:
        failure = 'interrupted'
    finally:
        client.executor_.shutdown()
        client.destroy_node()
        rclpy.try_shutdown()
        code = launch.stop()
    for fact in [*facts, *launch.deaths]:
        say(f'  {fact}')
    if failure:
        say(f'failed: {failure}')
        return 1
    say(
        f'done in {time.monotonic() - begun:.0f} s; the launch ended with exit code {code}, no process is left'
    )
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('--seconds', type=float, default=12.0, help='of motion; default 12')
    return run(parser.parse_args().seconds)


if __name__ == '__main__':
    sys.exit(main())
