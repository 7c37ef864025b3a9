"""tools.move sends what a user of `ros2` would send by hand, and says what became of it."""

from __future__ import annotations

from typing import Any

from soft_robot_suite.msg import SoftState
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from soft_dynamics.ros.conversions import float64s
from soft_dynamics.ros.qos import COMMAND, STATE

MODULE = 'tools.move'


def test_a_motion_is_sent_and_its_end_told(ros_process: Any, ros_client_node: Any) -> None:
    client = ros_client_node
    wanted = client.collect(JointTrajectory, 'reference/configuration', COMMAND)
    states = client.create_publisher(SoftState, 'state', STATE)
    client.create_timer(0.02, lambda: states.publish(SoftState(names=['a', 'b'], q=float64s([0.1, 0.25]))))
    process = ros_process(MODULE, args=['b=0.3', '--time', '0.5'])
    client.spin_until(lambda: process.process.poll() is not None, 'end of the motion')
    assert process.wait() == 0, process.stderr
    (trajectory,) = wanted
    (point,) = trajectory.points
    assert (trajectory.joint_names, point.positions.tolist()) == (['b'], [0.3])
    assert point.time_from_start.nanosec == 500_000_000
    assert process.stdout == 'b: wanted 0.300, is 0.250\n'
    lost = ros_process(MODULE, args=['b=0.7', '--time', '0.5'])
    client.spin_until(lambda: lost.process.poll() is not None, 'end of the motion')
    assert 'not there: the controller says why' in lost.stdout


def test_an_unknown_coordinate_is_one_line(ros_process: Any, ros_client_node: Any) -> None:
    client = ros_client_node
    client.collect(JointTrajectory, 'reference/configuration', COMMAND)
    states = client.create_publisher(SoftState, 'state', STATE)
    client.create_timer(0.02, lambda: states.publish(SoftState(names=['a', 'b'], q=float64s([0.1, 0.25]))))
    process = ros_process(MODULE, args=['c=0.3'])
    client.spin_until(lambda: process.process.poll() is not None, 'refusal')
    assert process.refusal() == 'tools.move: no coordinate c; the robot has a, b'


def test_the_emergency_stop_is_called(ros_process: Any, ros_client_node: Any) -> None:
    asked: list[object] = []

    def stop(request: Any, response: Any) -> Any:
        asked.append(request)
        response.success = True
        return response

    ros_client_node.create_service(Trigger, 'pressure/emergency_stop', stop)
    process = ros_process(MODULE, args=['--stop'])
    ros_client_node.spin_until(lambda: process.process.poll() is not None, 'stop')
    assert process.wait() == 0, process.stderr
    assert len(asked) == 1
    assert 'vented' in process.stdout
