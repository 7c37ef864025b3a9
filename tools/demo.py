"""Run the whole loop on a virtual rig for less than a minute: `make demo`.

The demo launches simulation.launch.xml: a virtual honeycomb arm, the bridges of a real rig, state estimator and
controllers, each in its own process. The configuration controller draws a figure of eight. The task controller takes
over without a bump, an unmodelled load is hung on the tip, and the controller draws a star. The demo ends with a table
of tracking errors and a picture. Exit code 0: all steps succeeded.

The demo names a node that dies. The launch restarts bridges and estimator; the arm vents meanwhile, and the figure
starts over. If the controller in command or the virtual rig dies, the demo fails. States and commands may be 0.5 s old
here (0.1 s and 0.2 s in the robot file), so that a busy computer does not vent the arm.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

import numpy as np
import rclpy
from rclpy.signals import SignalHandlerOptions
from soft_robot_suite.srv import ForwardDynamics, InverseDynamics

import soft_dynamics as sd
from soft_dynamics.commands.arguments import number
from tools.demo_client import Client, Failure, Log, Vented
from tools.demo_figures import Drawn, Eight, Star, drawn, picture, table
from tools.simulation import ROOT, Ended, Simulation, patient

ROBOT = 'honeycomb_arm'
NODES = ('virtual_rig', 'mocap_bridge', 'ft_bridge', 'pressure_bridge', 'state_estimator')
NODES += ('configuration_controller', 'task_controller', 'dynamics')
LOAD = 0.2  # [kg]
BATCH = 10_000
START_LIMIT = 120.0  # [s] limit for all nodes to start
TRIES = 4  # attempts per figure, if the arm vents
WORST = 0.1  # [m] largest acceptable RMS error of the tip; the figures are 0.3 to 0.7 m wide
CLEAR = '\x1b[K'  # erase the rest of a longer line


class Screen:
    """Prints lines; on a terminal also a live line, overwritten until the next ordinary line."""

    def __init__(self, out: TextIO = sys.stdout) -> None:
        self._out, self.is_terminal, self._is_live = out, out.isatty(), False
        self._lock = threading.Lock()  # another thread reports nodes that die

    def say(self, text: str) -> None:
        with self._lock:
            begin = '\n' if self._is_live else ''
            print(f'{begin}demo: {text}', file=self._out, flush=True)
            self._is_live = False

    def show(self, text: str) -> None:
        """Overwrite the live line, cut to the width of the terminal."""
        if not self.is_terminal:
            self.say(text)
            return
        with self._lock:
            line = f'demo: {text}'[: shutil.get_terminal_size().columns - 1]
            print(f'\r{line}{CLEAR}', end='', file=self._out, flush=True)
            self._is_live = True


SCREEN = Screen()
say = SCREEN.say


class Show:
    """The live line."""

    def __init__(self, client: Client, what: str) -> None:
        self.client, self.what, self._due = client, what, 0.0

    def __call__(self, t: float) -> None:
        if t < self._due or not self.client.log.tip:
            return
        self._due = t + (0.1 if SCREEN.is_terminal else 1.0)
        x, y, z = self.client.log.tip[-1].value
        where = f'tip x {x:+.3f} y {y:+.3f} z {z:.3f} m'  # the whole line fits 80 columns
        SCREEN.show(f'{self.what}, {t:4.1f} s: {where}, up to {self.client.pressure / 1e3:3.0f} kPa')


def missing(client: Client) -> list[str]:
    """Return the names of nodes and topics that are still missing."""
    log, services = client.log, [client.inverse, client.forward, *client.transitions.values()]
    there = {
        'poses of the tip': len(log.tip) > 20,
        'states': len(log.q) > 20,
        'commands': len(log.command) > 20,
        'wrenches': client.weight > 0.0,
        'configuration_controller': client.trajectories.get_subscription_count() > 0,
        'task_controller': client.poses.get_subscription_count() > 0,
        **{service.srv_name: service.service_is_ready() for service in services},
    }
    return [what for what, is_there in there.items() if not is_there]


def wait_for_nodes(client: Client) -> None:
    begun = time.monotonic()
    while not client.spin(5.0, lambda: not missing(client)):
        if time.monotonic() - begun > START_LIMIT:
            raise Failure(f'nodes or topics are missing: {", ".join(missing(client))}')
        SCREEN.show(f'{time.monotonic() - begun:2.0f} s, waiting for {", ".join(missing(client))}')
    pids = ', '.join(f'{name} ({client.simulation.pids.get(name, "?")})' for name in NODES)
    say(f'running after {time.monotonic() - begun:.1f} s: {pids}')


def ask_the_model(client: Client) -> str:
    """Compute forces from states and back through the services; return a line about it."""
    n, rng = client.robot.nq, np.random.default_rng(0)
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
    return (
        f'{BATCH:,} states to forces and back in {1e3 * seconds:.0f} ms over ROS, error {error:.1e} rad/s^2'
    )


def weigh(client: Client) -> str:
    """Return a line with the weight of the arm: measured, and from the robot file."""
    client.spin(1.0)
    client.stop_weighing()
    mass = sum(segment.mass for segment in client.robot.description.segments)  # type: ignore[union-attr]
    return (
        f'weight at rest {client.weight:.2f} N measured at the base, {9.81 * mass:.2f} N from the robot file'
    )


def persist(client: Client, draw: Callable[[], Drawn]) -> Drawn:
    """Draw a figure; if the arm vents, wait and start the figure over."""
    for _ in range(TRIES):
        try:
            result = draw()
        except Vented as reason:
            say(f'! {reason}; the figure starts over')
            client.until_vented(30.0)
            client.until_ready(START_LIMIT)
            continue
        if not result.rms < WORST:
            raise Failure(f'the {result.name} was missed by {1e3 * result.rms:.0f} mm RMS')
        return result
    raise Failure(f'the arm vented in each of {TRIES} attempts')


def draw_eight(client: Client, seconds: float) -> Drawn:
    eight = Eight(client.robot, seconds)
    client.log = Log()
    start = client.now + 0.3
    client.follow(eight.message(start), seconds + 0.5, Show(client, eight.name))
    return drawn(eight, client.log, start, 0.0)


def draw_star(client: Client, part: float) -> Drawn:
    star = Star(client.robot, part)
    client.follow(star.approach(), 5.0, Show(client, 'to the star'))
    client.log = Log()
    start = client.now
    client.follow(star.message(), star.seconds + 0.2, Show(client, star.name))
    return drawn(star, client.log, start, LOAD)


def hand_over(client: Client) -> str:
    """Switch to the task controller; return a line about the gap and the jump of the commands."""
    client.log = Log()
    client.spin(0.5)
    last = client.now
    client.hand_over('task_controller')
    client.spin(0.5)
    around = [sample for sample in client.log.command if sample.t > last - 0.2]
    gap = max(b.t - a.t for a, b in itertools.pairwise(around))
    jump = max(float(np.max(np.abs(b.value - a.value))) for a, b in itertools.pairwise(around))
    pause = f'{1e3 * gap:.0f} ms between two commands'
    return f'task controller took over: {pause}, largest difference {jump / 1e3:.2f} kPa'


def let_go(client: Client) -> str:
    """Deactivate the controller; return a line about how long the arm took to vent."""
    name, client.in_command = client.in_command, ''
    client.change(name, 'deactivate')
    return f'without commands the bridge vented the arm in {client.until_vented(30.0):.1f} s'


def perform(client: Client, options: argparse.Namespace, facts: list[str]) -> list[Drawn]:
    """Run the demo and return what was drawn."""
    wait_for_nodes(client)
    facts += [ask_the_model(client), weigh(client)]
    figures = [persist(client, lambda: draw_eight(client, options.seconds))]
    facts.append(hand_over(client))
    with client.simulation.rig as rig:
        rig.load(LOAD)
    say(f'{1e3 * LOAD:.0f} g were hung on the tip')
    figures.append(persist(client, lambda: draw_star(client, options.star)))
    delay = 1e3 * np.array(client.log.delay)
    limit = client.robot.description.actuation.pressure_max
    facts += [
        f'from exposure to this node: median {np.median(delay):.1f} ms, 99 % below {np.percentile(delay, 99):.1f} ms',
        f'highest chamber pressure {client.highest / 1e3:.0f} kPa of {limit / 1e3:.0f} kPa allowed',
    ]
    if client.highest > 1.01 * limit:
        raise Failure(f'a chamber reached {client.highest:.0f} Pa, the limit is {limit:.0f} Pa')
    facts.append(let_go(client))
    return figures


def run(options: argparse.Namespace) -> int:
    begun = time.monotonic()
    say(f'a virtual {ROBOT}, the bridges of a real rig, estimator and controllers; less than a minute')
    log = ROOT / 'log'
    log.mkdir(exist_ok=True)
    folder = tempfile.TemporaryDirectory(prefix='demo_', dir=log)
    file = patient(ROBOT, Path(folder.name))
    robot = sd.load(str(file))
    simulation = Simulation(
        lambda line: say(f'! {line}'),
        robot=file,
        standby='task',
        shape='false',
        rate=options.rate,
        estimator=options.estimator,
    )
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    client = Client(robot, simulation)
    facts: list[str] = []
    figures, failure = list[Drawn](), ''
    try:
        figures = perform(client, options, facts)
    except (Failure, Ended, Vented, TimeoutError) as reason:
        failure = str(reason)
    except KeyboardInterrupt:
        failure = 'interrupted'
    finally:
        client.close()
        rclpy.try_shutdown()
        code = simulation.stop()
        folder.cleanup()
    for line in [*facts, *simulation.deaths, *table([figure.row() for figure in figures])]:
        say(f'  {line}')
    if failure:
        say(f'failed: {failure}')
        return 1
    picture(figures, options.figure)
    say(f'picture: {options.figure}')
    say(
        f'done in {time.monotonic() - begun:.0f} s; the launch ended with exit code {code}, no process is left'
    )
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument(
        '--seconds',
        type=number(4.0, 1e3),
        default=12.0,
        help='duration of the figure of eight [s]; default 12',
    )
    parser.add_argument(
        '--star', type=number(0.05, 1.0), default=1.0, help='fraction of the star to draw, up to 1'
    )
    parser.add_argument(
        '--rate', type=number(20.0, 1e3), default=100.0, help='rate of the loop [Hz]; default 100'
    )
    parser.add_argument('--estimator', default='model', choices=('model', 'differentiator'))
    parser.add_argument('--figure', type=Path, default=ROOT / 'log' / 'demo.png', help='file of the picture')
    return run(parser.parse_args())


if __name__ == '__main__':
    sys.exit(main())
