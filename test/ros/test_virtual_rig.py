"""virtual_rig and its bridges as processes: commands move the arm, faults start and end."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml
from geometry_msgs.msg import PoseStamped, WrenchStamped
from rclpy.qos import qos_profile_sensor_data
from rosgraph_msgs.msg import Clock
from soft_robot_suite.msg import ChamberPressures

from soft_dynamics.description.robot_description import load_description
from soft_dynamics.description.robot_files import robot_file
from soft_dynamics.ros.conversions import time_to_seconds
from soft_dynamics.ros.qos import COMMAND, SENSOR
from soft_hw_bridge.rig.remote_control import RigClient

RIG = 'soft_hw_bridge.nodes.virtual_rig'
CHAMBERS = [chamber.name for chamber in load_description('honeycomb_arm').actuation.chambers]


def ports_of(node: Any, process: Any) -> dict[str, Any]:
    node.spin_until(lambda: process.stdout.endswith('\n'), 'line with the ports')
    (line,) = process.stdout.splitlines()
    ports: dict[str, Any] = json.loads(line)['ports']
    return ports


def mocap_params(ports: dict[str, Any]) -> dict[str, Any]:
    return {'server': '127.0.0.1', 'interface': '127.0.0.1', 'command_port': ports['mocap']['port']}


def ft_params(ports: dict[str, Any]) -> dict[str, Any]:
    return {'host': '127.0.0.1', 'rdt_port': ports['ft']['port'], 'http_port': ports['ft']['http_port']}


def pressure_params(ports: dict[str, Any], robot: str) -> dict[str, Any]:
    return {'robot': robot, 'modbus.host': '127.0.0.1', 'modbus.port': ports['pressure']['port']}


def test_command_on_the_topic_bends_the_arm_on_the_topics(ros_process: Any, ros_client_node: Any) -> None:
    rig = ros_process(RIG, {'robot': 'honeycomb_arm'})
    ports = ports_of(ros_client_node, rig)
    ros_process('soft_hw_bridge.nodes.mocap_bridge', mocap_params(ports))
    ros_process('soft_hw_bridge.nodes.ft_bridge', ft_params(ports))
    ros_process('soft_hw_bridge.nodes.pressure_bridge', pressure_params(ports, 'honeycomb_arm'))
    tips: list[PoseStamped] = ros_client_node.collect(PoseStamped, 'mocap/plate4/pose', SENSOR)
    wrenches: list[WrenchStamped] = ros_client_node.collect(WrenchStamped, 'ft/wrench', SENSOR)
    measured: list[ChamberPressures] = ros_client_node.collect(ChamberPressures, 'pressure/measured', SENSOR)
    ros_client_node.spin_until(lambda: tips and wrenches and measured, 'all three devices')
    assert tips[-1].pose.position.z == pytest.approx(0.34, abs=0.01)  # 66 cm below a base at 1 m
    assert wrenches[-1].wrench.force.z == pytest.approx(-3.0 * 9.81, abs=0.5)

    commands = ros_client_node.announce(ChamberPressures, 'pressure/command', COMMAND)
    message = ChamberPressures(names=CHAMBERS, pressure=[0.0] * len(CHAMBERS))

    def command() -> None:
        message.header.stamp = ros_client_node.get_clock().now().to_msg()
        commands.publish(message)

    timer = ros_client_node.create_timer(0.02, command)
    ros_client_node.spin_for(1.0)  # the bridge requires a first command near zero
    message.pressure = [2e5 if name.endswith(('p1', 'p2')) else 0.0 for name in CHAMBERS]
    ros_client_node.spin_until(lambda: measured[-1].pressure[0] > 1.9e5, 'pressure')
    ros_client_node.spin_until(lambda: abs(tips[-1].pose.position.y) > 0.2, 'bend about x')
    with RigClient(ports['control']) as client:
        wanted = pytest.approx([2e5, 2e5, 0.0, 0.0], abs=100.0)
        ros_client_node.spin_until(lambda: client.state()['command'][:4] == wanted, 'command')
        ros_client_node.destroy_timer(timer)
        ros_client_node.spin_until(
            lambda: max(client.state()['pressure']) < 1e3, 'venting when commands stop'
        )
    assert rig.stop(signal.SIGINT) == 0
    assert 'Traceback' not in rig.stderr


def full_robot(path: Path) -> str:
    """The honeycomb arm with a sensor of every kind."""
    data = yaml.safe_load(robot_file('honeycomb_arm').read_text())
    data['sensors'] += [
        {'name': 'tracker', 'kind': 'vive', 'frame': 'tip'},
        {'name': 'fiber', 'kind': 'fiber', 'frame': 'base'},
    ]
    (path / 'full.yaml').write_text(yaml.safe_dump(data))
    return str(path / 'full.yaml')


def test_stepped_rig_is_the_clock(ros_process: Any, ros_client_node: Any) -> None:
    rig = ros_process(RIG, {'robot': 'bending_actuator', 'pace': 'stepped'})
    ports = ports_of(ros_client_node, rig)
    clocks: list[Clock] = ros_client_node.collect(Clock, '/clock', qos_profile_sensor_data)
    ros_client_node.spin_until(lambda: clocks, 'clock')
    assert time_to_seconds(clocks[-1].clock) == 0.0
    with RigClient(ports['control']) as client:
        assert client.advance(0.5) == pytest.approx(0.5)
    ros_client_node.spin_until(
        lambda: time_to_seconds(clocks[-1].clock) == pytest.approx(0.5), 'half a second'
    )
    times = [time_to_seconds(message.clock) for message in clocks]
    assert times == sorted(times)


@pytest.mark.parametrize(
    ('params', 'line'),
    [
        ({'robot': 'nobody'}, "cannot start: no robot 'nobody'"),
        ({'mocap.rate': -1.0}, 'cannot start: mocap: rate must be in (0, 1000] Hz, got -1.0'),
        ({'paces': 'real'}, 'cannot start: unknown parameter paces, did you mean pace?'),
    ],
)
def test_bad_parameter_is_one_line_and_exit_code_1(
    ros_process: Any, params: dict[str, Any], line: str
) -> None:
    assert line in ros_process(RIG, params).refusal()


def test_plant_that_blows_up_is_one_line_and_exit_code_1(ros_process: Any, tmp_path: Path) -> None:
    hinge = {'type': 'hinge', 'name': 'a', 'length': 0.1, 'mass': 0.1, 'material': {'stiffness': [1e9]}}
    robot = {'format': 1, 'name': 'glass', 'gravity': [9.81, 0.0, 0.0], 'segments': [hinge]}
    (tmp_path / 'glass.yaml').write_text(yaml.safe_dump(robot))
    only = ros_process(RIG, {'robot': str(tmp_path / 'glass.yaml')}).refusal()
    assert 'the rig has stopped: simulation stopped at t = ' in only
    assert 'a step of 0.001 s is too long' in only


def test_parameters_of_a_running_rig_stay(ros_process: Any, ros_client_node: Any) -> None:
    ports_of(ros_client_node, ros_process(RIG))
    result = ros_client_node.set_parameter('virtual_rig', 'tip_load', 1.0)
    assert not result.successful
    assert 'apply at its start' in result.reason
