"""Node of the demo: subscribes to the loop, sends references, calls services, and detects when the arm vents."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseArray, PoseStamped, WrenchStamped
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from soft_robot_suite.msg import ChamberPressures, SoftState
from soft_robot_suite.srv import ForwardDynamics, InverseDynamics
from trajectory_msgs.msg import JointTrajectory

import soft_dynamics as sd
from soft_dynamics.array import Array
from soft_dynamics.ros.conversions import pose_to_arrays, time_to_seconds
from soft_dynamics.ros.qos import COMMAND, SENSOR, STATE
from tools.simulation import Simulation

TIP = 'plate4'  # the tracked body at the tip
ANSWER_LIMIT = 30.0  # [s]


class Failure(Exception):
    """The demo cannot continue; the text gives the reason in one line."""


class Vented(Exception):
    """A controller no longer follows; the arm vents."""


class Sample(NamedTuple):
    """A received value with the time [s, ROS] of its measurement or decision."""

    t: float
    value: Array


@dataclass
class Log:
    """Received samples."""

    tip: list[Sample] = field(default_factory=list)  # position [m] in `world`
    turn: list[Array] = field(default_factory=list)  # quaternion of the same samples
    q: list[Sample] = field(default_factory=list)  # [rad] estimated
    command: list[Sample] = field(default_factory=list)  # [Pa]
    delay: list[float] = field(default_factory=list)  # [s] from exposure to the arrival of the pose


class Client(Node):
    """A node beside the launched loop, as a user would write it."""

    def __init__(self, robot: sd.Robot, simulation: Simulation) -> None:
        super().__init__('demo')
        self.robot, self.simulation, self.log = robot, simulation, Log()
        self.pressure = self.highest = self.weight = math.nan  # [Pa] now and maximum, [N] at the base
        self.modes: dict[str, tuple[str, str]] = {}  # by controller: mode, reason
        self.in_command = 'configuration_controller'
        self.inverse = self.create_client(InverseDynamics, 'dynamics/inverse')
        self.forward = self.create_client(ForwardDynamics, 'dynamics/forward')
        self.transitions = {
            name: self.create_client(ChangeState, f'{name}/change_state')
            for name in ('configuration_controller', 'task_controller')
        }
        self.trajectories = self.create_publisher(JointTrajectory, 'reference/configuration', COMMAND)
        self.poses = self.create_publisher(PoseArray, 'reference/poses', COMMAND)
        self._hear()
        self._spinner = SingleThreadedExecutor()
        self._spinner.add_node(self)

    def _hear(self) -> None:
        self.create_subscription(PoseStamped, f'mocap/{TIP}/pose', self._on_pose, SENSOR)
        self.create_subscription(ChamberPressures, 'pressure/measured', self._on_pressure, SENSOR)
        self.create_subscription(ChamberPressures, 'pressure/command', self._on_command, STATE)
        self.create_subscription(SoftState, 'state', self._on_state, STATE)
        self.create_subscription(DiagnosticArray, '/diagnostics', self._on_diagnostics, STATE)
        self._wrenches = self.create_subscription(WrenchStamped, 'ft/wrench', self._on_wrench, SENSOR)

    def close(self) -> None:
        self._spinner.shutdown()
        self.destroy_node()

    # ---- subscriptions -----------------------------------------------------------------------------------------------

    def _on_pose(self, msg: PoseStamped) -> None:
        quat, p = pose_to_arrays(msg.pose)
        t = time_to_seconds(msg.header.stamp)
        self.log.tip.append(Sample(t, p))
        self.log.turn.append(quat)
        self.log.delay.append(self.get_clock().now().nanoseconds * 1e-9 - t)

    def _on_state(self, msg: SoftState) -> None:
        self.log.q.append(Sample(time_to_seconds(msg.header.stamp), np.array(msg.q)))

    def _on_command(self, msg: ChamberPressures) -> None:
        self.log.command.append(Sample(time_to_seconds(msg.header.stamp), np.array(msg.pressure)))

    def _on_pressure(self, msg: ChamberPressures) -> None:
        self.pressure = max(msg.pressure)
        self.highest = np.fmax(self.highest, self.pressure)

    def _on_wrench(self, msg: WrenchStamped) -> None:
        f = msg.wrench.force
        now = math.sqrt(f.x**2 + f.y**2 + f.z**2)
        self.weight = now if math.isnan(self.weight) else self.weight + 0.02 * (now - self.weight)

    def _on_diagnostics(self, msg: DiagnosticArray) -> None:
        for status in msg.status:
            node = status.name.partition(':')[0].strip('/')
            if node in self.transitions:
                mode = {item.key: item.value for item in status.values}.get('mode', 'inactive')
                self.modes[node] = mode, status.message

    def stop_weighing(self) -> None:
        """Unsubscribe from the wrench, the topic with the most messages."""
        self.destroy_subscription(self._wrenches)

    # ---- waiting -----------------------------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """ROS time [s]."""
        return self.get_clock().now().nanoseconds * 1e-9

    def spin(self, seconds: float, done: Callable[[], bool] = lambda: False) -> bool:
        """Run callbacks for a time or until done; return whether done. Raises Ended if the launch ended, or Failure."""
        end = time.monotonic() + seconds
        while not done():
            self.simulation.check()
            if self.in_command in self.simulation.dead:
                raise Failure(f'{self.in_command} died and no controller is in command')
            left = end - time.monotonic()
            if left <= 0.0:
                return False
            self._spinner.spin_once(timeout_sec=min(left, 0.05))
        return True

    @property
    def follows(self) -> bool:
        """Whether the controller in command reports that it follows."""
        return self.modes.get(self.in_command, ('', ''))[0] == 'following'

    def follow(self, reference: Any, seconds: float, show: Callable[[float], None]) -> None:
        """Send a reference and run callbacks for its duration. Raises Vented if the controller stops following."""
        publisher = self.trajectories if isinstance(reference, JointTrajectory) else self.poses
        publisher.publish(reference)
        start = self.now
        if not self.spin(5.0, lambda: self.follows):
            raise Vented(f'{self.in_command} does not follow: {self.modes.get(self.in_command)}')
        while (t := self.now - start) < seconds:
            self.spin(0.02)
            show(t)
            if not self.follows:
                raise Vented(f'{self.in_command} vents: {self.modes[self.in_command][1]}')

    def until_vented(self, seconds: float) -> float:
        """Wait until all chambers are empty; return how long it took [s]."""
        start, low = time.monotonic(), 0.02 * self.robot.description.actuation.pressure_max
        if not self.spin(seconds, lambda: self.pressure < low):
            raise Failure(f'the chambers are not vented after {seconds:g} s')
        return time.monotonic() - start

    def until_ready(self, seconds: float) -> None:
        """Wait for fresh states and measurements."""
        self.log.q.clear()
        heard = len(self.log.tip)
        if not self.spin(seconds, lambda: len(self.log.q) > 20 and len(self.log.tip) > heard + 20):
            raise Failure('no state arrived')

    # ---- services ----------------------------------------------------------------------------------------------------

    def ask(self, client: Any, request: Any) -> Any:
        """Call a service; call again if the node restarted meanwhile."""
        for _ in range(3):
            future = client.call_async(request)
            if self.spin(ANSWER_LIMIT / 3.0, future.done):
                return future.result()
            client.remove_pending_request(future)
        raise Failure(f'no answer from {client.srv_name}')

    def change(self, controller: str, transition: str) -> None:
        """Request a lifecycle transition of a controller, such as 'activate'."""
        number = getattr(Transition, f'TRANSITION_{transition.upper()}')
        request = ChangeState.Request(transition=Transition(id=number))
        if not self.ask(self.transitions[controller], request).success:
            raise Failure(f'{controller} did not {transition}')

    def hand_over(self, to: str) -> None:
        """Switch to another controller before the pressure bridge times out."""
        self.change(to, 'configure')
        self.change(self.in_command, 'deactivate')
        self.change(to, 'activate')
        self.in_command = to
        if not self.spin(ANSWER_LIMIT, lambda: self.follows):
            raise Vented(f'{to} does not hold the pose: {self.modes.get(to)}')


def ros_time(t: float) -> dict[str, int]:
    """Return seconds as the fields of a stamp or duration."""
    sec, nanosec = divmod(round(t * 1e9), 10**9)
    return {'sec': sec, 'nanosec': nanosec}
