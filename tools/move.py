"""Move an arm through its configuration_controller, or stop it, without the `ros2` command.

tools/run.py python -m tools.move segment1_theta1=0.2 segment2_theta2=-0.1 --time 3
tools/run.py python -m tools.move --stop
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.duration import Duration
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.utilities import remove_ros_args
from soft_robot_suite.msg import SoftState
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from soft_dynamics.ros.qos import COMMAND, STATE

PATIENCE = 10.0  # [s] longest wait for a subscriber
PERIOD = 1.0  # [s] between diagnostics
REST = 1.5  # [s] after the motion, to settle and to receive the last states
NEAR = 0.02  # [rad or m] plus a quarter of the way: largest accepted distance from the goal
LONGEST = 600.0  # [s]


class Failed(Exception):
    """The arm did not reach the goal; the text says why."""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog='tools.move', description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument(
        'goal', nargs='*', type=coordinate, metavar='NAME=VALUE', help='target value [rad or m]'
    )
    made.add_argument('--time', type=duration, default=2.0, help='duration of the motion [s]; default 2')
    made.add_argument('--stop', action='store_true', help='emergency stop: vent all chambers')
    return made


def coordinate(text: str) -> tuple[str, float]:
    name, _, value = text.partition('=')
    if not math.isfinite(float(value)):
        raise argparse.ArgumentTypeError(f'{name} must be finite, got {value}')
    return name, float(value)


def duration(text: str) -> float:
    if not 0.0 < float(text) <= LONGEST:
        raise argparse.ArgumentTypeError(f'must be > 0 and <= {LONGEST:g} s, got {text}')
    return float(text)


def spin(node: Node, done: Callable[[], object], seconds: float = PATIENCE) -> bool:
    """Run callbacks for a time or until done; return whether done."""
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            return False
        rclpy.spin_once(node, timeout_sec=0.05)
    return True


def wait(node: Node, condition: Callable[[], object], what: str) -> None:
    if not spin(node, condition):
        raise Failed(f'{what} within {PATIENCE:g} s: is the loop running, on the same ROS_DOMAIN_ID?')


def stop(node: Node) -> str:
    client = node.create_client(Trigger, 'pressure/emergency_stop')
    wait(node, client.service_is_ready, 'no pressure bridge')
    for _ in range(10):  # a server drops the answer to a client that it has not discovered yet
        asked = client.call_async(Trigger.Request())
        if spin(node, asked.done, 0.1 * PATIENCE):
            break
    else:
        raise Failed('the pressure bridge does not answer')
    if not asked.result().success:
        raise Failed(f'the pressure bridge did not stop: {asked.result().message}')
    return asked.result().message or 'stopped: all chambers are vented'


class Controller:
    """The configuration_controller: its state on /diagnostics, and whether it subscribes to a publisher."""

    def __init__(self, node: Node) -> None:
        self._node, self.name = node, f'{node.get_namespace().rstrip("/")}/configuration_controller'
        self.others: set[str] = set()
        self.mode, self.reason, self.refused = '', '', 0
        node.create_subscription(DiagnosticArray, '/diagnostics', self._on_diagnostics, STATE)

    def _on_diagnostics(self, msg: DiagnosticArray) -> None:
        for status in msg.status:
            name, _, what = status.name.partition(': ')
            if what == 'control' and name == self.name:
                values = {item.key: item.value for item in status.values}
                self.mode, self.reason = values.get('mode', 'not active'), status.message
                self.refused = int(values.get('references_refused', '0'))
            elif what == 'control':
                self.others.add(name)

    def hears(self, publisher: Publisher) -> bool:
        listeners = self._node.get_subscriptions_info_by_topic(publisher.topic_name)
        names = [f'{each.node_namespace.rstrip("/")}/{each.node_name}' for each in listeners]
        return self.name in names and publisher.get_subscription_count() >= len(names)

    def until_there(self) -> None:
        """Wait for its diagnostics. Raises Failed if it does not run or takes no reference."""
        wait(self._node, lambda: self.mode or self.others, 'no controller')
        if not spin(self._node, lambda: self.mode, 2.0 * PERIOD):
            raise Failed(f'{self.name} does not run; running: {", ".join(sorted(self.others))}')
        if self.mode in ('stopped', 'not active'):
            raise Failed(f'{self.name} takes no reference: {self.reason}')


def move(node: Node, goal: dict[str, float], seconds: float) -> str:
    q: dict[str, float] = {}
    controller = Controller(node)
    node.create_subscription(
        SoftState, 'state', lambda msg: q.update(zip(msg.names, msg.q, strict=True)), STATE
    )
    publisher = node.create_publisher(JointTrajectory, 'reference/configuration', COMMAND)
    controller.until_there()
    wait(node, lambda: controller.hears(publisher), 'no controller listens')
    wait(node, lambda: q, 'no state arrived')
    if strangers := goal.keys() - q.keys():
        raise Failed(f'no coordinate {min(strangers)}; the robot has {", ".join(q)}')
    before, refused, controller.mode = dict(q), controller.refused, ''
    way = JointTrajectoryPoint(positions=list(goal.values()))
    way.time_from_start = Duration(seconds=seconds).to_msg()
    publisher.publish(JointTrajectory(joint_names=list(goal), points=[way]))
    gone = ('venting', 'stopped', 'not active')
    spin(node, lambda: controller.mode in gone or controller.refused > refused, seconds + REST)
    if controller.refused > refused:
        raise Failed(f'{controller.name} refused the motion; its log says why')
    if controller.mode != 'following':
        raise Failed(f'{controller.name} does not follow: {controller.reason}')
    text = '\n'.join(f'{name}: wanted {value:.3f}, is {q[name]:.3f}' for name, value in goal.items())
    if any(abs(q[name] - value) > NEAR + 0.25 * abs(value - before[name]) for name, value in goal.items()):
        raise Failed(f'goal not reached\n{text}')
    return text


def main() -> int:
    options = parser().parse_args(remove_ros_args(sys.argv)[1:])
    if options.stop == bool(options.goal):
        parser().error('give coordinates or --stop')
    rclpy.init()
    try:
        node = rclpy.create_node('move')
        print(stop(node) if options.stop else move(node, dict(options.goal), options.time))
    except Failed as reason:
        print(f'tools.move: {reason}', file=sys.stderr)
        return 1
    except (KeyboardInterrupt, ExternalShutdownException):
        return 130
    finally:
        rclpy.try_shutdown()
    return 0


if __name__ == '__main__':
    sys.exit(main())
