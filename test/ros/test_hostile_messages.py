"""Arbitrary bytes on any topic: all nodes survive, and count and report what they reject."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from fuzz import damaged, fuzz_count
from geometry_msgs.msg import Pose, PoseArray, PoseStamped, WrenchStamped
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from ros.test_virtual_rig import full_robot
from soft_robot_suite.msg import BodyPoses, ChamberPressures, ShapeSamples, SoftState
from soft_robot_suite.srv import ForwardDynamics, InverseDynamics
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from soft_control.nodes.configuration_controller import ConfigurationController
from soft_control.nodes.task_controller import TaskController
from soft_control.safety.state_machine import State
from soft_dynamics.nodes.dynamics import DynamicsNode
from soft_dynamics.nodes.shape_publisher import ShapePublisher
from soft_dynamics.robot import load
from soft_dynamics.ros.conversions import float64s, time_from_ns
from soft_dynamics.timing.boot_time import boot_time
from soft_estimation.nodes.state_estimator import StateEstimator

NOT_READY = ('not configured', 'not active')
START = 120.0  # [s] more than the compiler takes when nothing is cached
ROBOT = load('honeycomb_arm')
NODES = {
    'soft_control.nodes.configuration_controller': {},
    'soft_control.nodes.task_controller': {},
    'soft_estimation.nodes.state_estimator': {},
    'soft_dynamics.nodes.dynamics': {'predict': True},
    'soft_dynamics.nodes.shape_publisher': {},
    'soft_hw_bridge.nodes.pressure_bridge': {'modbus.host': '127.0.0.1', 'modbus.port': 9},
}
BODY = re.compile(r'(mocap|vive)/\w+/pose')
HEARD = {
    'configuration_controller': {'/state', '/pressure/measured', '/reference/configuration'},
    'task_controller': {
        '/state',
        '/pressure/measured',
        '/reference/pose',
        '/reference/poses',
        '/mocap/BODY/pose',
        '/vive/BODY/pose',
    },
    'state_estimator': {
        '/pressure/measured',
        '/mocap/frame',
        '/mocap/BODY/pose',
        '/vive/frame',
        '/vive/BODY/pose',
        '/ft/wrench',
        '/fiber/shape',
    },
    'dynamics': {'/state', '/pressure/measured'},
    'shape_publisher': {
        '/state',
        '/state/predicted',
        '/pressure/measured',
        '/ft/wrench',
        '/reference/pose',
        '/reference/poses',
        '/reference/configuration',
    },
    'pressure_bridge': {'/pressure/command'},
}
CLASSES: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    'configuration_controller': (ConfigurationController, {}),
    'task_controller': (TaskController, {}),
    'state_estimator': (StateEstimator, {}),
    'dynamics': (DynamicsNode, {'predict': True}),
    'shape_publisher': (ShapePublisher, {}),
}
MALFORMED = (
    b'',
    b'\0',
    b'\0\1\0',
    b'\0\1\0\0',
    b'\0\1\0\0' + b'\xff' * 40,
    b'\0\0\0\0' + bytes(60),
    b'\x55\x66\0\0' + bytes(60),
    b'\0\1\0\0' + bytes(8) + b'\xff\xff\xff\x7f' + bytes(40),
    b'\0\1\0\0' + bytes(8) + (10**6).to_bytes(4, 'little') + b'f' * 10**6 + bytes(100),
)


def message_class(kind: str) -> Any:
    package, _, name = kind.split('/')
    return getattr(import_module(f'{package}.msg'), name)


def counted(message: DiagnosticArray) -> int | None:
    """Return how many messages the node has rejected; None before its first report."""
    values = {value.key: value.value for status in message.status for value in status.values}
    counts = [int(n) for key, n in values.items() if re.fullmatch(r'(references_|commands_)?refused', key)]
    return sum(counts) if counts else None


@pytest.mark.parametrize('module', NODES)
def test_a_node_lives_on_and_tells(
    ros_process: Any, ros_client_node: Any, tmp_path: Path, module: str
) -> None:
    client, name = ros_client_node, module.rpartition('.')[2]
    heard: list[DiagnosticArray] = client.collect(DiagnosticArray, '/diagnostics')
    process = ros_process(module, {'robot': full_robot(tmp_path), **NODES[module]})

    def told() -> DiagnosticArray:
        """The node's last diagnostics; empty before the first."""
        own = [m for m in heard if m.status and m.status[0].name.startswith(f'/{name}:')]
        return own[-1] if own else DiagnosticArray()

    client.spin_until(
        lambda: counted(told()) is not None and told().status[0].message not in NOT_READY,
        'diagnostics',
        START,
    )

    def topics() -> dict[str, tuple[str, str]]:
        """Topics and types of the node's subscriptions; of the topics of tracked bodies, one of each type."""
        found = [
            (topic, kinds)
            for topic, kinds in client.get_topic_names_and_types()
            if any(each.node_name == name for each in client.get_subscriptions_info_by_topic(topic))
        ]
        return {BODY.sub(r'\1/BODY/pose', topic): (topic, kinds[0]) for topic, kinds in found}

    client.spin_until(
        lambda: topics().keys() == HEARD[name], 'all topics of the node in the graph'
    )  # may arrive later
    for topic, kind in sorted(topics().values()):
        qos = QoSProfile(depth=100, reliability=ReliabilityPolicy.RELIABLE, history=HistoryPolicy.KEEP_LAST)
        publisher = client.announce(message_class(kind), topic, qos)
        before = counted(told()) or 0

        def has_counted(publisher: Any = publisher, before: int = before) -> bool:
            for data in MALFORMED[
                1:
            ]:  # DDS between processes delays a reliable publisher after an empty message
                publisher.publish(data)
                client.spin_for(0.02)  # some subscriptions keep only the newest message
            assert process.process.poll() is None, process.stderr
            return (counted(told()) or 0) > before

        client.spin_until(has_counted, f'count of what {topic} was sent')
        client.destroy_publisher(publisher)
    texts = [text for m in heard for s in m.status for v in s.values for text in (s.message, v.key, v.value)]
    assert max(map(len, texts)) <= 500
    assert len(process.stderr) < 100_000
    assert 'Traceback' not in process.stderr
    assert process.stop() == 0


# ---- in this process: every callback, thousands of times -------------------------------------------------------------


@pytest.fixture
def make_node(tmp_path: Path) -> Iterator[Callable[[str], Any]]:
    made: list[Any] = []

    def make(name: str) -> Any:
        node_class, parameters = CLASSES[name]
        named = {'robot': full_robot(tmp_path), **parameters}
        rclpy.init(args=['test', '--ros-args', *(x for k, v in named.items() for x in ('-p', f'{k}:={v}'))])
        made.append(node_class())
        return made[-1]

    yield make
    for node in made:
        node.destroy_node()
    rclpy.try_shutdown()


def sensible(kind: type[Any], stamp_ns: int) -> Any:
    """Return a valid message for a node."""
    header = Header(stamp=time_from_ns(stamp_ns), frame_id='world')
    names, chambers, n = list(ROBOT.coordinate_names), list(ROBOT.chamber_names), ROBOT.nq
    tip = Pose()
    tip.position.z = 0.62
    point = JointTrajectoryPoint(positions=[0.1] * n)
    point.time_from_start.sec = 1
    bodies = [sensor.name for sensor in ROBOT.description.sensors if sensor.kind == 'mocap']
    message = {
        SoftState: lambda: SoftState(
            model='honeycomb_arm',
            names=names,
            q=float64s(np.full(n, 0.02)),
            qd=float64s(np.zeros(n)),
            qdd=float64s(np.zeros(n)),
            covariance_diagonal=float64s(np.ones(2 * n)),
        ),
        ChamberPressures: lambda: ChamberPressures(
            names=chambers, pressure=float64s(np.full(len(chambers), 1e3))
        ),
        JointTrajectory: lambda: JointTrajectory(joint_names=names, points=[point]),
        PoseArray: lambda: PoseArray(poses=[tip]),
        PoseStamped: lambda: PoseStamped(pose=tip),
        WrenchStamped: WrenchStamped,
        ShapeSamples: lambda: ShapeSamples(
            arc_length=float64s([0.0, 0.1]), points=float64s([0.0, 0.0, 0.0, 0.0, 0.0, 0.1])
        ),
        BodyPoses: lambda: BodyPoses(
            names=bodies,
            positions=float64s([0.1] * 3 * len(bodies)),
            orientations=float64s([0.5] * 4 * len(bodies)),
        ),
    }[kind]()
    message.header = header
    return message


def numbers_gone_wild(data: bytes) -> list[bytes]:
    """Return a message with each of its doubles replaced."""
    wild = (np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324)
    places = range(12, len(data) - 8, 4)
    return [
        data[:at] + np.float64(wild[k % len(wild)]).tobytes() + data[at + 8 :] for k, at in enumerate(places)
    ]


@pytest.mark.parametrize('name', CLASSES)
def test_callbacks_take_any_bytes(make_node: Callable[[str], Any], name: str) -> None:
    node = make_node(name)
    if hasattr(node, 'trigger_configure'):
        node.trigger_configure()
        node.trigger_activate()
        assert node.active
    subscriptions = [
        each for each in node.subscriptions if each.topic_name not in ('/parameter_events', '/clock')
    ]
    count = fuzz_count(2000, 100_000) // len(subscriptions)
    for subscription in subscriptions:
        assert subscription.raw, f'{subscription.topic_name} is not guarded'
        valid = serialize_message(sensible(subscription.msg_type, node.get_clock().now().nanoseconds))
        for data in (*MALFORMED, *numbers_gone_wild(valid), *damaged([valid], count)):
            if hasattr(node, 'loop'):
                node.loop.feed(State(boot_time(), ROBOT.rest, np.zeros(ROBOT.nq)))
            subscription.callback(data)
    if hasattr(node, 'loop'):
        limits = node.loop.limits
        pressure = node.loop.step(boot_time()).pressure
        assert np.all((limits.pressure_min <= pressure) & (pressure <= limits.pressure_max))


def test_a_command_beyond_reason_is_not_taken_over(make_node: Callable[[str], Any]) -> None:
    node = make_node('task_controller')
    (subscription,) = (each for each in node.subscriptions if each.topic_name == '/pressure/command')
    message = sensible(ChamberPressures, 1)
    for pressure in (1e308, -1e308, np.nan, np.inf, 3.0 * ROBOT.description.actuation.pressure_max):
        message.pressure = float64s(np.full(len(message.names), pressure))
        subscription.callback(serialize_message(message))
        assert node._commanded is None
    assert node.refusals.count == 5
    message.pressure = float64s(np.full(len(message.names), 1e3))
    subscription.callback(serialize_message(message))
    assert node._commanded is not None


@pytest.mark.parametrize('service', [InverseDynamics, ForwardDynamics])
def test_requests_that_make_no_sense_are_answered(
    make_node: Callable[[str], Any], service: Any, tmp_path: Path
) -> None:
    node, zeros = make_node('dynamics'), float64s(np.zeros(ROBOT.nq))
    os.mkfifo(tmp_path / 'fifo')
    names = ('a' * 10**6, '\0', '..', '/', '/dev/zero', str(tmp_path / 'fifo'), '\x1b[31m', 'ä')
    requests = [
        *({'robot': name, 'count': 1, 'q': zeros} for name in names),
        *({'count': count, 'q': zeros} for count in (0, 2, 2**32 - 1)),
        *({'count': 1, 'q': float64s(np.full(ROBOT.nq, x))} for x in (np.nan, np.inf)),
        *(
            {'count': 1, 'q': zeros, 'pressure': float64s(np.full(n, 1e308))}
            for n in (1, len(ROBOT.chamber_names))
        ),
        *({'count': 1, 'q': zeros, 'qd': float64s(np.full(ROBOT.nq, x))} for x in (1e200, -1e308)),
    ]
    call = node.on_inverse if service is InverseDynamics else node.on_forward
    for fields in requests:
        response = call(service.Request(**fields), service.Response())
        assert len(response.message) <= 1000
        result = response.tau if service is InverseDynamics else response.qdd
        assert np.all(np.isfinite(result)) if response.success else response.message
    assert node.refused > len(names)
    assert call(service.Request(count=1, q=zeros), service.Response()).success
