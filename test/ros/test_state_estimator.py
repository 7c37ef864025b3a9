"""state_estimator as a process, fed with the poses of a robot whose state is known."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import InertiaStamped, PoseStamped, WrenchStamped
from rclpy.publisher import Publisher
from rosgraph_msgs.msg import Clock
from soft_robot_suite.msg import BodyPoses, ChamberPressures, ShapeSamples, SoftState

from soft_dynamics.geometry import quaternion
from soft_dynamics.geometry.se3 import pose_from_rpy
from soft_dynamics.robot import Robot
from soft_dynamics.robot import load as load_robot
from soft_dynamics.ros.conversions import (
    float64s,
    pose_from_arrays,
    time_from_ns,
    time_from_seconds,
    time_to_seconds,
    wrench_from_array,
    wrench_to_array,
)
from soft_dynamics.ros.qos import SENSOR, STATE
from soft_estimation.inverse_kinematics.pose_tracking import frame_index

NODE = 'soft_estimation.nodes.state_estimator'
START = 120.0  # [s] more than the compiler takes when nothing is cached
FINGER = {
    'format': 1,
    'name': 'finger',
    'gravity': [0.0, 0.0, -9.81],
    'segments': [
        {
            'name': 'joint',
            'type': 'arc',
            'length': 0.2,
            'mass': 0.4,
            'radius': 0.03,
            'material': {'stiffness': [6.0, 6.0], 'damping': [0.15, 0.15]},
        }
    ],
    'actuation': {
        'pressure_max': 1e5,
        'chambers': [{'name': 'a', 'segment': 'joint', 'gain': [5e-5, 0.0]}],
    },
    'mount': {'position': [0.0, 0.0, 0.4], 'rpy': [0.0, 0.5, 0.0]},
    'sensors': [
        {'name': 'marker', 'kind': 'mocap', 'frame': 'tip', 'position': [0.02, 0.0, 0.0]},
        {'name': 'tracker', 'kind': 'vive', 'frame': 'tip', 'rpy': [0.0, 0.0, 1.0]},
        {'name': 'ft', 'kind': 'ft', 'frame': 'base', 'position': [0.0, 0.0, -0.03]},
        {'name': 'fiber', 'kind': 'fiber', 'frame': 'base'},
    ],
}


@pytest.fixture
def finger(tmp_path: Path) -> Path:
    path = tmp_path / 'finger.yaml'
    path.write_text(yaml.safe_dump(FINGER))
    return path


class Rig:
    """Publishes the sensor data of a finger at rest at q, under the pressure that holds it there."""

    def __init__(self, client: Any, path: Path, load: float = 0.0) -> None:
        self.client, self.robot = client, load_robot(path).with_tip_load(load)
        self.pressure = 4e4
        self.q = self._equilibrium(self.robot, self.pressure)
        self.states = client.collect(SoftState, 'state', STATE)
        self.loads = client.collect(InertiaStamped, 'tip_load', STATE)
        self.wrenches = client.collect(WrenchStamped, 'external_wrench', STATE)
        self.diagnostics = client.collect(DiagnosticArray, '/diagnostics')
        self.kinds = {'mocap'}
        self.wrench_scale = 1.0
        self.broken = 'other'  # body of frames without orientation
        topics = {
            'mocap': (PoseStamped, 'mocap/marker/pose'),
            'frame': (BodyPoses, 'mocap/frame'),
            'vive': (PoseStamped, 'vive/tracker/pose'),
            'ft': (WrenchStamped, 'ft/wrench'),
            'fiber': (ShapeSamples, 'fiber/shape'),
        }
        self.publishers = {kind: client.create_publisher(*topic, SENSOR) for kind, topic in topics.items()}
        self.poses: Publisher = self.publishers['mocap']
        self.pressures: Publisher = client.create_publisher(ChamberPressures, 'pressure/measured', SENSOR)

    @staticmethod
    def _equilibrium(robot: Robot, p: float) -> np.ndarray:
        q, zero = np.zeros(2), np.zeros(2)
        for _ in range(300):
            q += 0.1 * (robot.actuation(q)[:, 0] * p - robot.inverse_dynamics(q, zero, zero))
        return q

    def publish(self, stamp: Any, offset: float = 0.0) -> None:
        for kind in self.kinds:
            message = getattr(self, f'_{kind}')(offset)
            message.header.stamp = stamp
            self.publishers[kind].publish(message)
        pressures = ChamberPressures(names=['a'], pressure=float64s([self.pressure]))
        pressures.header.stamp = stamp
        self.pressures.publish(pressures)

    def _pose(self, name: str, offset: float) -> PoseStamped:
        sensor = next(s for s in self.robot.description.sensors if s.name == name)
        mount = pose_from_rpy(FINGER['mount']['position'], FINGER['mount']['rpy'])
        X_MF = self.robot.forward_kinematics(self.q)[frame_index(self.robot, sensor)]
        X_WS = mount @ X_MF @ pose_from_rpy(sensor.position, sensor.rpy)
        quat_WS = quaternion.from_rotation(X_WS[:3, :3])
        return PoseStamped(pose=pose_from_arrays(quat_WS, X_WS[:3, 3] + offset))

    def _mocap(self, offset: float) -> PoseStamped:
        return self._pose('marker', offset)

    def _frame(self, offset: float) -> BodyPoses:
        """The marker, a body of another robot, and one without a valid orientation."""
        pose = self._mocap(offset).pose
        p, quat = pose.position, pose.orientation
        return BodyPoses(
            names=['marker', 'hand', self.broken],
            positions=float64s([p.x, p.y, p.z, *6 * [0.0]]),
            orientations=float64s([quat.x, quat.y, quat.z, quat.w, 0.0, 0.0, 0.0, 1.0, *4 * [0.0]]),
        )

    def _vive(self, offset: float) -> PoseStamped:
        return self._pose('tracker', offset)

    def _ft(self, _offset: float) -> WrenchStamped:
        w = self.robot.base_wrench(self.q, np.zeros(2), np.zeros(2))
        w[:3] += np.cross([0.0, 0.0, 0.03], w[3:])
        w *= self.wrench_scale
        return WrenchStamped(wrench=wrench_from_array(w))

    def _fiber(self, _offset: float) -> ShapeSamples:
        s = np.linspace(0.0, self.robot.length, 60)
        points = self.robot.centerline(self.q, s)
        return ShapeSamples(arc_length=float64s(s), points=float64s(points.ravel()))

    def run(self, until: Callable[[], Any], what: str, offset: float = 0.0, late: float = 0.0) -> None:
        """Publish about a hundred times a second until the condition holds; the node may take START to begin."""

        def step() -> Any:
            self.publish(time_from_ns(time.time_ns() - round(late * 1e9)), offset)
            self.client.spin_for(0.01)
            return until()

        self.client.spin_until(lambda: step() or self.values(), 'diagnostics', START)
        try:
            self.client.spin_until(step, what)
        except TimeoutError as error:
            raise TimeoutError(f'{error}; the node says {self.values()}') from None

    def values(self) -> dict[str, str]:
        """The newest diagnostics of the node."""
        for array in reversed(self.diagnostics):
            for status in array.status:
                if 'state_estimator' in status.name and status.values:
                    level = ('OK', 'WARN', 'ERROR', 'STALE')[status.level[0]]
                    verdict = {'level': level, 'message': status.message}
                    return verdict | {v.key: v.value for v in status.values}
        return {}


@pytest.fixture
def rig(ros_client_node: Any, finger: Path) -> Rig:
    return Rig(ros_client_node, finger)


@pytest.mark.parametrize('method', ['model', 'differentiator'])
def test_the_state_is_published_with_covariance_and_sources(
    ros_process: Any, rig: Rig, finger: Path, method: str
) -> None:
    process = ros_process(NODE, {'robot': str(finger), 'method': method, 'rate': 50.0})
    rig.run(lambda: len(rig.states) > 50, 'states')
    state = rig.states[-1]
    assert (state.model, list(state.names)) == ('finger', ['joint_u', 'joint_v'])
    assert np.array(state.q) == pytest.approx(rig.q, abs=0.02)
    assert np.array(state.qd) == pytest.approx([0.0, 0.0], abs=0.2)
    assert len(state.covariance_diagonal) == 4
    assert min(state.covariance_diagonal) > 0.0
    assert 'mocap' in {source for s in rig.states for source in s.sources}
    assert abs(time_to_seconds(state.header.stamp) - time.time()) < 5.0
    stamps = [time_to_seconds(s.header.stamp) for s in rig.states]
    assert all(np.diff(stamps) >= 0.0)
    rig.run(lambda: float(rig.values().get('rate [Hz]', 0.0)) > 1.0, 'diagnostics')
    if method == 'model':
        rig.run(lambda: 'marker NIS/dof' in rig.values(), 'innovation statistics')
    assert process.stop() == 0


def test_a_silent_rig_has_no_state(ros_process: Any, rig: Rig, finger: Path) -> None:
    ros_process(NODE, {'robot': str(finger), 'rate': 50.0, 'blackout_limit': 0.5})
    rig.run(lambda: len(rig.states) > 20, 'states')
    rig.client.spin_for(1.5)  # nobody publishes
    count = len(rig.states)
    rig.client.spin_for(0.5)
    assert len(rig.states) == count
    rig.client.spin_until(lambda: 'no sample' in rig.values().get('message', ''), 'report of the silence')


@pytest.mark.parametrize('method', ['model', 'differentiator'])
@pytest.mark.parametrize(('late', 'offset'), [(3.0, 0.0), (0.0, 0.5)], ids=['late', 'outliers'])
def test_samples_that_are_not_let_in_are_no_better_than_silence(
    ros_process: Any, rig: Rig, finger: Path, method: str, late: float, offset: float
) -> None:
    """Outliers arrive steadily, with a wrench that fits; the node predicts the state for a while, then stops."""
    rig.kinds = {'mocap', 'ft'} if method == 'model' else {'mocap'}
    sensors = ['marker', 'ft'] if method == 'model' else ['marker']
    params = {'robot': str(finger), 'method': method, 'sensors': sensors, 'rate': 50.0, 'blackout_limit': 1.0}
    ros_process(NODE, params | {'filter.recovery_time': 60.0})
    rig.run(lambda: len(rig.states) > 20, 'states')
    end, count = time.monotonic() + 3.0, len(rig.states)
    rig.run(lambda: time.monotonic() > end, 'three seconds', offset, late)
    assert len(rig.states) > count
    assert np.array(rig.states[-1].q) == pytest.approx(rig.q, abs=0.1)
    count = len(rig.states)
    rig.run(lambda: time.monotonic() > end + 1.0, 'another second', offset, late)
    assert len(rig.states) == count
    rig.run(lambda: 'were late or refused' in rig.values()['message'], 'a verdict', offset, late)
    assert rig.values()['level'] == 'ERROR'
    rig.run(lambda: len(rig.states) > count, 'states again')


def test_a_wrench_that_is_none_is_refused_and_nothing_else_happens(
    ros_process: Any, rig: Rig, finger: Path
) -> None:
    process = ros_process(NODE, {'robot': str(finger), 'sensors': ['marker', 'ft'], 'rate': 50.0})
    rig.kinds = {'mocap', 'ft'}
    rig.run(lambda: len(rig.states) > 20, 'states')
    rig.wrench_scale = 1e300
    rig.run(lambda: 'ft: wrench: expected at most' in rig.values().get('last refusal', ''), 'a refusal')
    count = len(rig.states)
    rig.run(lambda: len(rig.states) > count + 20, 'more states')
    assert np.array(rig.states[-1].q) == pytest.approx(rig.q, abs=0.05)
    assert (process.stop(), rig.values()['failures']) == (0, '0')


def test_the_best_sensor_that_is_heard_leads(ros_process: Any, rig: Rig, finger: Path) -> None:
    """Motion capture leads, then Vive, then fiber; each sample of the leader makes a state from all sensors."""
    ros_process(NODE, {'robot': str(finger), 'rate': 20.0})
    for kinds, leader in (
        ({'fiber', 'ft'}, 'fiber'),
        ({'vive', 'fiber', 'ft'}, 'vive'),
        ({'mocap', 'vive', 'fiber', 'ft'}, 'mocap'),
        ({'vive', 'ft'}, 'vive'),
    ):
        rig.kinds = kinds
        rig.run(lambda leader=leader: rig.values().get('leading') == leader, f'the lead of the {leader}')
        rig.states.clear()

        def brings_states(leader: str = leader) -> bool:
            """Check most of the last samples, once the machine delivers them in time."""
            return len(rig.states) > 20 and sum(leader in state.sources for state in rig.states[-20:]) > 10

        rig.run(brings_states, f'states that the {leader} brings')
        assert np.array(rig.states[-1].q) == pytest.approx(rig.q, abs=0.05)
        assert {source for state in rig.states for source in state.sources} >= kinds


def test_parameters_apply_at_configure(ros_process: Any, rig: Rig, finger: Path) -> None:
    ros_process(NODE, {'robot': str(finger), 'sensors': ['marker'], 'rate': 50.0})
    rig.run(lambda: len(rig.states) > 20, 'states')
    for name, value in (('at_samples', True), ('blackout_limit', 1e-6), ('rate', 1e-3)):
        assert rig.client.set_parameter('state_estimator', name, value).successful
    count = len(rig.states)
    rig.run(lambda: len(rig.states) > count + 20, 'more states')
    assert abs(time_to_seconds(rig.states[-1].header.stamp) - time.time()) < 5.0
    assert np.array(rig.states[-1].q) == pytest.approx(rig.q, abs=0.05)


def test_frames_are_enough_and_make_the_topics_of_single_bodies_superfluous(
    ros_process: Any, rig: Rig, finger: Path
) -> None:
    ros_process(NODE, {'robot': str(finger), 'sensors': ['marker'], 'rate': 50.0})
    rig.run(lambda: rig.states, 'a state from single poses')
    rig.kinds = {'frame'}
    rig.run(lambda: not rig.poses.get_subscription_count(), 'the end of the subscription')
    rig.states.clear()
    rig.run(lambda: len(rig.states) > 20 and 'mocap' in rig.states[-1].sources, 'states from frames')
    assert np.array(rig.states[-1].q) == pytest.approx(rig.q, abs=0.05)
    rig.broken = 'marker'  # again, without orientation
    rig.run(lambda: 'marker: quaternion' in rig.values().get('last refusal', ''), 'a refusal')


@pytest.mark.parametrize(('kind', 'limit'), [('vive', 0.02), ('fiber', 0.02), ('ft', 0.15)])
def test_any_sensor_is_enough(ros_process: Any, rig: Rig, finger: Path, kind: str, limit: float) -> None:
    name = {'vive': 'tracker', 'fiber': 'fiber', 'ft': 'ft'}[kind]
    ros_process(NODE, {'robot': str(finger), 'sensors': [name], 'rate': 50.0})
    rig.kinds = {kind}

    def close() -> bool:
        return bool(rig.states) and np.abs(np.array(rig.states[-1].q) - rig.q).max() < limit

    rig.run(close, f'a state from {kind}')
    assert {source for s in rig.states for source in s.sources} <= {kind, 'pressure'}


def test_a_load_at_the_tip_is_weighed(ros_process: Any, ros_client_node: Any, finger: Path) -> None:
    rig = Rig(ros_client_node, finger, load=0.3)
    rig.kinds = {'mocap', 'ft'}
    ros_process(NODE, {'robot': str(finger), 'sensors': ['marker', 'ft'], 'rate': 100.0})
    rig.run(lambda: rig.states, 'a state')
    known = time_to_seconds(rig.states[0].header.stamp) + 2.0

    def late() -> list[float]:
        return [load.inertia.m for load in rig.loads if time_to_seconds(load.header.stamp) > known]

    rig.run(lambda: len(late()) > 5, 'loads after two seconds')
    assert late() == pytest.approx([0.3] * len(late()), abs=0.03)
    assert rig.loads[-1].header.frame_id == 'joint'
    weight_T = rig.robot.pose(rig.q, 'tip')[:3, :3].T @ [0.0, 0.0, -9.81 * 0.3]

    def felt() -> bool:
        """The weight as a force on the tip, in the tip's axes."""
        return bool(rig.wrenches) and bool(
            np.abs(wrench_to_array(rig.wrenches[-1].wrench)[3:] - weight_T).max() < 0.3
        )

    rig.run(felt, 'a force of 3 N')
    assert rig.wrenches[-1].header.frame_id == 'joint'
    rig.run(
        lambda: rig.values().get('tip load [kg]', '').startswith(('0.2', '0.3')), 'the load in diagnostics'
    )


def test_poses_are_answered_at_once_and_silence_all_the_same(
    ros_process: Any, rig: Rig, finger: Path
) -> None:
    """At two states a second without poses, a pose every 0.3 s makes a state each time."""
    ros_process(NODE, {'robot': str(finger), 'sensors': ['marker'], 'rate': 2.0, 'blackout_limit': 2.0})
    rig.run(lambda: rig.states, 'a state')
    for _ in range(4):
        rig.client.spin_for(0.3)
        count = len(rig.states)
        rig.publish(time_from_ns(time.time_ns()))
        rig.client.spin_until(lambda count=count: len(rig.states) > count, 'a state for the pose')
        assert 'mocap' in rig.states[-1].sources
    count = len(rig.states)
    rig.client.spin_until(lambda: len(rig.states) > count, 'a state without a pose')
    assert 'mocap' not in rig.states[-1].sources


def test_simulated_time_is_obeyed(ros_process: Any, rig: Rig, finger: Path) -> None:
    """Time runs from 1000 s on, and then restarts."""
    ros_process(NODE, {'robot': str(finger), 'use_sim_time': True, 'rate': 50.0})
    clock = rig.client.announce(Clock, '/clock', SENSOR)
    rig.client.spin_until(rig.poses.get_subscription_count, 'subscription', START)

    def play(start: float) -> None:
        t = start

        def step() -> bool:
            nonlocal t
            t += 0.01
            clock.publish(Clock(clock=time_from_seconds(t)))
            rig.publish(time_from_seconds(t))
            rig.client.spin_for(0.01)
            return len(rig.states) > 20 and start < time_to_seconds(rig.states[-1].header.stamp) < t + 0.1

        rig.client.spin_until(step, f'states after {start} s', START)

    play(1000.0)
    assert np.array(rig.states[-1].q) == pytest.approx(rig.q, abs=0.05)
    rig.states.clear()
    play(10.0)
    assert time_to_seconds(rig.states[-1].header.stamp) < 900.0
    assert np.array(rig.states[-1].q) == pytest.approx(rig.q, abs=0.05)


@pytest.mark.parametrize(
    ('params', 'reason'),
    [
        ({'method': 'guess'}, "method must be one of model, differentiator, got 'guess'"),
        ({'rate': 0.0}, 'rate must be > 0'),
        ({'filter.force_noise': -1.0}, 'force_noise must be > 0'),
        ({'robot': 'no_such_arm'}, 'no_such_arm'),
        (
            {'sensors': ['plate9']},
            'sensors: honeycomb_arm has plate0, plate1, plate2, plate3, plate4, base_ft, got',
        ),
        ({'robot': 'fabric_arm'}, 'fabric_arm: the model-based filter needs coordinates with inertia'),
        (
            {'method': 'differentiator', 'sensors': ['plate4']},
            'a tracked body at the end of every soft segment',
        ),
    ],
)
def test_a_bad_parameter_stops_the_node_with_one_line(
    ros_process: Any, params: dict[str, Any], reason: str
) -> None:
    process = ros_process(NODE, params)
    assert process.wait() == 1
    (line,) = process.stderr.splitlines()
    assert reason in line
