"""Move an arm whose configuration_controller runs, or stop it: for machines without the `ros2` command.

tools/run.py python -m tools.move segment1_theta1=0.2 segment2_theta2=-0.1 --time 3
tools/run.py python -m tools.move --stop
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

import rclpy
from rclpy.duration import Duration
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.utilities import remove_ros_args
from soft_robot_suite.msg import SoftState
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from soft_dynamics.ros.qos import COMMAND, STATE

PATIENCE = 10.0  # [s] for somebody to listen
NEAR = 0.1  # [rad or m]
REST = 1.0  # [s] after the motion, to settle


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog='tools.move', description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument('goal', nargs='*', type=coordinate, metavar='NAME=VALUE', help='coordinate [rad or m]')
    made.add_argument('--time', type=float, default=2.0, help='the motion takes [s]; default 2')
    made.add_argument('--stop', action='store_true', help='emergency stop: vent all chambers')
    return made


def coordinate(text: str) -> tuple[str, float]:
    name, _, value = text.partition('=')
    return name, float(value)


def wait(node: Node, condition: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(
                f'{what} within {patience:g} s: is the loop running, on the same ROS_DOMAIN_ID?'
            )
        rclpy.spin_once(node, timeout_sec=0.05)


def stop(node: Node) -> str:
    client = node.create_client(Trigger, 'pressure/emergency_stop')
    wait(node, client.service_is_ready, 'no pressure bridge')
    asked = client.call_async(Trigger.Request())
    wait(node, asked.done, 'no answer of the pressure bridge')
    return asked.result().message or 'stopped: all chambers are vented'


def move(node: Node, goal: dict[str, float], duration: float) -> str:
    heard: dict[str, float] = {}

    def hear(msg: SoftState) -> None:
        heard.update(zip(msg.names, msg.q, strict=True))

    node.create_subscription(SoftState, 'state', hear, STATE)
    publisher = node.create_publisher(JointTrajectory, 'reference/configuration', COMMAND)
    wait(node, lambda: publisher.get_subscription_count() > 0, 'no configuration_controller')
    wait(node, lambda: bool(heard), 'no state')
    if strangers := goal.keys() - heard.keys():
        raise ValueError(f'no coordinate {min(strangers)}; the robot has {", ".join(heard)}')
    way = JointTrajectoryPoint(positions=list(goal.values()))
    way.time_from_start = Duration(seconds=duration).to_msg()
    publisher.publish(JointTrajectory(joint_names=list(goal), points=[way]))
    end = time.monotonic() + duration + REST
    wait(node, lambda: time.monotonic() > end, 'no end', duration + 2 * REST)
    far = any(abs(heard[name] - value) > NEAR for name, value in goal.items())
    lines = [f'{name}: wanted {value:.3f}, is {heard[name]:.3f}' for name, value in goal.items()]
    return '\n'.join(lines + far * ['not there: the controller says why in the terminal it was launched in'])


def main() -> int:
    options = parser().parse_args(remove_ros_args(sys.argv)[1:])
    if options.stop == bool(options.goal) or not options.time > 0.0:
        parser().error('give either coordinates and a time > 0, or --stop')
    rclpy.init()
    try:
        node = rclpy.create_node('move')
        print(stop(node) if options.stop else move(node, dict(options.goal), options.time))
    except (TimeoutError, ValueError) as error:
        print(f'tools.move: {error}', file=sys.stderr)
        return 1
    except (KeyboardInterrupt, ExternalShutdownException):
        return 130
    finally:
        rclpy.try_shutdown()
    return 0


if __name__ == '__main__':
    sys.exit(main())
