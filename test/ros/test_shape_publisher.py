"""shape_publisher as a process: what RViz receives, against the robot's own kinematics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
import yaml
from geometry_msgs.msg import Point, Pose, PoseArray, PoseStamped, WrenchStamped
from sensor_msgs.msg import JointState
from soft_robot_suite.msg import ChamberPressures, SoftState
from std_msgs.msg import String
from tf2_msgs.msg import TFMessage
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint
from visualization_msgs.msg import Marker, MarkerArray

from soft_dynamics.geometry.quaternion import to_rotation
from soft_dynamics.geometry.tube import frame_poses, tube
from soft_dynamics.robot import Robot, load
from soft_dynamics.ros.conversions import float64s, time_from_seconds, transform_to_arrays
from soft_dynamics.ros.qos import COMMAND, DESCRIPTION, SENSOR, STATE

NODE = 'soft_dynamics.nodes.shape_publisher'
RVIZ = Path(__file__).resolve().parents[2] / 'rviz' / 'soft_robot.rviz'
Q = np.array([0.3, -0.2, 0.4, 0.1, -0.3, 0.5, 0.2, -0.6])
START_UP = 120.0  # [s] with the compiler running


@pytest.fixture(scope='module')
def robot() -> Robot:
    """Return the default robot of the node, with the compiler's cache filled."""
    robot = load('honeycomb_arm')
    tube(robot, Q)
    return robot


def state(robot: Robot, q: np.ndarray, t: float) -> SoftState:
    msg = SoftState(model=robot.name, names=list(robot.coordinate_names), q=float64s(q))
    msg.header.stamp = time_from_seconds(t)
    return msg


def shown(arrays: list[MarkerArray], namespace: str, t: float) -> list[Marker]:
    stamp = time_from_seconds(t)
    return [m for a in arrays for m in a.markers if m.ns == namespace and m.header.stamp == stamp]


def pose_in_world(messages: list[TFMessage], frame: str) -> np.ndarray:
    """Chain the newest transforms like tf."""
    parents = {t.child_frame_id: t for message in messages for t in message.transforms}
    X = np.eye(4)
    while frame != 'world':
        quat, p = transform_to_arrays(parents[frame].transform)
        step = np.eye(4)
        step[:3, :3], step[:3, 3] = to_rotation(quat), p
        X, frame = step @ X, parents[frame].header.frame_id
    return X


def test_description_joints_frames_and_markers_show_the_state(
    ros_process: Any, ros_client_node: Any, robot: Robot
) -> None:
    client = ros_client_node
    descriptions = client.collect(String, 'robot_description', DESCRIPTION)
    still = client.collect(TFMessage, '/tf_static', DESCRIPTION)
    moving, joints = client.collect(TFMessage, '/tf'), client.collect(JointState, 'joint_states', STATE)
    markers = client.collect(MarkerArray, 'shape/markers', STATE)
    ros_process(NODE)
    client.spin_until(lambda: descriptions and still, 'description', START_UP)
    measured = client.announce(SoftState, 'state', STATE)
    predicted = client.announce(SoftState, 'state/predicted', STATE)

    measured.publish(state(robot, Q, 5.0))
    predicted.publish(state(robot, 0.9 * Q, 5.0))
    client.spin_until(lambda: shown(markers, 'predicted', 5.0), 'predicted body')
    client.spin_until(lambda: shown(markers, 'measured', 5.0), 'measured body')
    client.spin_until(lambda: moving and moving[-1].transforms[0].header.stamp.sec == 5, 'frames')
    client.spin_until(lambda: joints and joints[-1].header.stamp.sec == 5, 'joint states')

    X_RF = frame_poses(robot, Q)
    for frame, X in zip(('base_link', *robot.frame_names[1:]), X_RF, strict=True):
        np.testing.assert_allclose(pose_in_world([*still, moving[-1]], frame), X, atol=1e-9)
    np.testing.assert_allclose(pose_in_world([*still, moving[-1]], 'ft_sensor'), X_RF[0], atol=1e-9)

    model = pin.buildModelFromXML(descriptions[-1].data, mimic=True)
    q = pin.neutral(model)
    for name, value in zip(joints[-1].name, joints[-1].position, strict=True):
        q[model.joints[model.getJointId(name)].idx_q] = value
    data = model.createData()
    pin.framesForwardKinematics(model, data, q)
    tip = data.oMf[model.getFrameId('tip')].homogeneous
    np.testing.assert_allclose(tip, X_RF[-1], atol=1e-9)

    body, ghost = shown(markers, 'measured', 5.0)[-1], shown(markers, 'predicted', 5.0)[-1]
    assert len(body.points) == len(body.colors) > 0
    assert len(body.points) % 3 == 0
    rim = np.array([body.points[-1].x, body.points[-1].y, body.points[-1].z]) - X_RF[-1, :3, 3]
    assert np.linalg.norm(rim) == pytest.approx(robot.description.segments[-1].display_radius)
    assert rim @ X_RF[-1, :3, 2] == pytest.approx(0.0, abs=1e-3)
    assert body.colors[0].a == 1.0
    assert 0.0 < ghost.colors[0].a < 1.0


def test_pressure_wrench_and_reference_are_shown_in_frames_with_a_prefix(
    ros_process: Any, ros_client_node: Any, robot: Robot
) -> None:
    client = ros_client_node
    markers = client.collect(MarkerArray, 'shape/markers', STATE)
    still, moving = client.collect(TFMessage, '/tf_static', DESCRIPTION), client.collect(TFMessage, '/tf')
    ros_process(NODE, params={'color_by': 'pressure', 'force_scale': 0.1, 'frame_prefix': 'arm1/'})
    client.spin_until(lambda: markers and still and moving, 'first picture', START_UP)
    assert markers[0].markers[0].ns == 'measured'
    named = {t.child_frame_id for message in (*still, *moving) for t in message.transforms}
    assert {'arm1/world', 'arm1/base_link', 'arm1/tip', 'arm1/ft_sensor'} <= named
    assert all(name.startswith('arm1/') for name in named)
    at_rest = pose_in_world([*still, *moving], 'arm1/tip')
    np.testing.assert_allclose(at_rest, frame_poses(robot, robot.rest)[-1], atol=1e-9)
    pressure = client.announce(ChamberPressures, 'pressure/measured', SENSOR)
    wrench = client.announce(WrenchStamped, 'ft/wrench', SENSOR)
    reference = client.announce(PoseStamped, 'reference/pose', COMMAND)
    measured = client.announce(SoftState, 'state', STATE)

    full = [250e3 if name.startswith('segment4') else 0.0 for name in robot.chamber_names]
    force = WrenchStamped()
    force.header.frame_id, force.wrench.force.z = 'ft_sensor', -5.0
    goal = PoseStamped()
    goal.header.frame_id, goal.pose.position.x = 'world', 0.25
    moment = 0.0

    def all_shown() -> bool:
        nonlocal moment
        moment += 1.0
        pressure.publish(ChamberPressures(names=list(robot.chamber_names), pressure=full))
        wrench.publish(force)
        reference.publish(goal)
        measured.publish(state(robot, Q, moment))
        seen = {m.ns: m for a in markers for m in a.markers}
        yellow = seen['measured'].colors[-1].r > 0.9
        return yellow and {'wrench', 'reference'} <= seen.keys()

    client.spin_until(all_shown, 'pressure, wrench and reference')
    seen = {m.ns: m for a in markers for m in a.markers}
    assert seen['measured'].colors[0].b > seen['measured'].colors[0].r
    frames = {ns: marker.header.frame_id for ns, marker in seen.items()}
    assert frames == {'measured': 'arm1/world', 'reference': 'arm1/world', 'wrench': 'arm1/ft_sensor'}
    assert seen['wrench'].points[1].z == pytest.approx(-0.5)
    assert seen['reference'].points[-1].x == 0.25


def test_planned_references_are_shown(ros_process: Any, ros_client_node: Any, robot: Robot) -> None:
    client = ros_client_node
    markers = client.collect(MarkerArray, 'shape/markers', STATE)
    node = ros_process(NODE)
    client.spin_until(lambda: markers, 'first picture', START_UP)
    poses = client.announce(PoseArray, 'reference/poses', COMMAND)
    trajectory = client.announce(JointTrajectory, 'reference/configuration', COMMAND)

    def plans() -> list[Marker]:
        return [m for a in markers for m in a.markers if m.ns == 'plan']

    plan = PoseArray(poses=[Pose(position=Point(x=0.1 * k)) for k in range(3)])
    plan.header.frame_id = 'world'
    poses.publish(plan)
    client.spin_until(plans, 'poses')
    assert [p.x for p in plans()[-1].points] == [0.0, 0.1, 0.2]

    wrong = JointTrajectory(joint_names=['elbow'], points=[JointTrajectoryPoint(positions=[0.1])])
    trajectory.publish(wrong)
    line = 'refused: reference/configuration: names: expected coordinates of honeycomb_arm'
    client.spin_until(lambda: line in node.stderr, 'refusal')
    way = JointTrajectoryPoint(positions=Q.tolist())
    way.time_from_start.sec = 2
    trajectory.publish(JointTrajectory(joint_names=list(robot.coordinate_names), points=[way]))
    client.spin_until(lambda: len(plans()) > 1, 'path of the tip', START_UP)
    shown = plans()[-1]
    for point, q in ((shown.points[0], robot.rest), (shown.points[-1], Q)):
        assert [point.x, point.y, point.z] == pytest.approx(frame_poses(robot, q)[-1, :3, 3], abs=1e-6)
    assert shown.header.frame_id == 'world'
    assert node.stop() == 0
    assert 'Traceback' not in node.stderr


def test_foreign_and_broken_states_are_refused_with_a_line(
    ros_process: Any, ros_client_node: Any, robot: Robot
) -> None:
    client = ros_client_node
    markers = client.collect(MarkerArray, 'shape/markers', STATE)
    node = ros_process(NODE)
    client.spin_until(lambda: markers, 'first picture', START_UP)
    measured = client.announce(SoftState, 'state', STATE)
    wrong = {
        'refused: state: expected the coordinates of honeycomb_arm, got a state of other_arm': SoftState(
            model='other_arm', names=['a'], q=float64s([0.0])
        ),
        'refused: state: q: expected finite numbers': state(robot, np.full(8, np.nan), 1.0),
    }
    for line, message in wrong.items():  # sent repeatedly, since the node logs at most one line a second
        client.spin_until(lambda m=message, s=line: measured.publish(m) or s in node.stderr, line)
    measured.publish(state(robot, Q, 2.0))
    client.spin_until(lambda: shown(markers, 'measured', 2.0), 'the state after them', START_UP)
    assert not shown(markers, 'measured', 1.0)
    assert node.stop() == 0
    assert 'Traceback' not in node.stderr


@pytest.mark.parametrize(
    ('params', 'line'),
    [
        ({'color_by': 'mood'}, 'color_by must be curvature or pressure, got mood'),
        ({'rate': 0.0}, 'rate must be > 0, got 0.0'),
        ({'predicted_offset': [1.0]}, 'predicted_offset must have 3 numbers, got 1'),
        ({'robot': 'nobody'}, "no robot 'nobody'"),
    ],
)
def test_bad_parameters_stop_the_start(ros_process: Any, params: dict[str, Any], line: str) -> None:
    node = ros_process(NODE, params=params)
    assert node.wait() == 1
    (message,) = [text for text in node.stderr.splitlines() if text.strip()]
    assert line in message


def test_rviz_shows_the_topics_of_this_node() -> None:
    displays = yaml.safe_load(RVIZ.read_text())['Visualization Manager']['Displays']
    topics = {
        d['Class'].split('/')[1]: d.get('Topic', d.get('Description Topic', {})).get('Value')
        for d in displays
    }
    assert topics['MarkerArray'] == 'shape/markers'
    assert topics['RobotModel'] == 'robot_description'
    assert topics['Pose'] == 'reference/pose'
    assert 'TF' in topics


def test_no_tool_of_rviz_commands_the_arm() -> None:
    """The controller would follow a single pose at ground height for a second, and then vent."""
    tools = yaml.safe_load(RVIZ.read_text())['Visualization Manager']['Tools']
    assert [tool['Class'] for tool in tools if 'Topic' in tool] == []
