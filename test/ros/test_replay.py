"""Record, play, estimate: a played bag reproduces the states of the live rig to rounding."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from geometry_msgs.msg import PoseStamped
from lifecycle_msgs.msg import State
from lifecycle_msgs.srv import GetState
from soft_robot_suite.msg import ChamberPressures, SoftState

from benchmarks.replay import States, between, same_stamps
from soft_dynamics.bags import open_bag
from soft_dynamics.robot import load
from soft_dynamics.ros.conversions import float64s, pose_from_matrix, time_from_ns, time_to_ns
from soft_dynamics.ros.qos import SENSOR, STATE
from soft_estimation.inverse_kinematics.pose_tracking import frame_index
from soft_estimation.recordings.recording import read_recording

ESTIMATOR = 'soft_estimation.nodes.state_estimator'
RECORDER, PLAYER = 'soft_dynamics.nodes.bag_recorder', 'soft_dynamics.nodes.bag_player'
START = 120.0  # [s] more than the compiler takes when nothing is cached
STEP_NS, POSES, PRESSURE_EVERY = 20_000_000, 30, 10
LATE = 3  # steps after which the estimator stops waiting for samples
FINGER = {
    'format': 1,
    'name': 'finger',
    'gravity': [0.0, 0.0, -9.81],
    'segments': [
        {
            'name': name,
            'type': 'arc',
            'length': 0.2,
            'mass': 0.4,
            'radius': 0.03,
            'material': {'stiffness': [6.0, 6.0], 'damping': [0.15, 0.15]},
        }
        for name in ('lower', 'upper')
    ],
    'actuation': {
        'pressure_max': 1e5,
        'chambers': [{'name': 'a', 'segment': 'lower', 'gain': [5e-5, 0.0]}],
    },
    'sensors': [
        {'name': 'middle', 'kind': 'mocap', 'frame': 'lower'},
        {'name': 'end', 'kind': 'mocap', 'frame': 'upper'},
    ],
}


TOPICS = ['mocap/middle/pose', 'mocap/end/pose', 'pressure/measured']


class Rig:
    """A swinging finger; its samples come in any order, and every step waits for the state of an earlier one."""

    def __init__(self, client: Any, path: Path) -> None:
        self.client, self.robot = client, load(path)
        self.pressure = [4e4 * (k // PRESSURE_EVERY % 2) for k in range(POSES)]
        t = np.arange(POSES) * STEP_NS * 1e-9
        q0, qd0 = np.array([0.3, -0.2, 0.1, 0.4]), np.zeros(4)
        self.motion = self.robot.simulate(q0, qd0, np.array(self.pressure)[:, None], t)
        self.states = client.collect(SoftState, 'state', STATE)
        self.bodies = {
            sensor: client.create_publisher(PoseStamped, f'mocap/{sensor.name}/pose', SENSOR)
            for sensor in self.robot.description.sensors
        }
        self.pressures = client.create_publisher(ChamberPressures, 'pressure/measured', SENSOR)

    def run(self) -> None:
        start_ns, shuffle = time.time_ns(), random.Random(0).shuffle
        for k in range(POSES):
            samples = self._samples(k)
            shuffle(samples)
            for publisher, message in samples:
                message.header.stamp = time_from_ns(start_ns + k * STEP_NS)
                publisher.publish(message)
            self.client.spin_until(lambda k=k: len(self.states) > k - LATE, f'state {k - LATE}', START)
            self.client.spin_for(0.02)
        for publisher in (*self.bodies.values(), self.pressures):
            self.client.destroy_publisher(publisher)

    def _samples(self, k: int) -> list[tuple[Any, Any]]:
        """Return the messages of a step, with their publishers."""
        X = self.robot.forward_kinematics(self.motion.q[k])
        samples: list[tuple[Any, Any]] = []
        for sensor, publisher in self.bodies.items():
            X_WS = X[frame_index(self.robot, sensor)]
            pose = pose_from_matrix(X_WS)
            samples.append((publisher, PoseStamped(pose=pose)))
        if k % PRESSURE_EVERY == 0:
            pressure = ChamberPressures(names=['a'], pressure=float64s([self.pressure[k]]))
            samples.append((self.pressures, pressure))
        return samples


def by_stamp(states: list[SoftState]) -> dict[int, SoftState]:
    return {time_to_ns(state.header.stamp): state for state in states}


def wait_until_active(client: Any, name: str) -> None:
    """A node receives its samples a moment before it publishes."""

    def active() -> bool:
        response = client.call(GetState, f'{name}/get_state', GetState.Request(), START)
        return bool(response.current_state.id == State.PRIMARY_STATE_ACTIVE)

    client.spin_until(active, f'active {name}', START)


def recorded_live(ros_process: Any, rig: Rig, params: dict[str, Any], path: Path) -> dict[int, SoftState]:
    """States of a live run, which is also recorded."""
    client = rig.client
    estimator = ros_process(ESTIMATOR, params, remap={'__node': 'live'})
    recorder = ros_process(RECORDER, {'output': str(path), 'topics': [*TOPICS, 'state']})
    wait_until_active(client, 'live')
    listeners = {
        topic: 1 + (params['method'] == 'model' or 'mocap' in topic) for topic in TOPICS
    }  # the recorder is one
    client.spin_until(
        lambda: (
            all(client.count_subscribers(topic) >= count for topic, count in listeners.items())
            and client.count_subscribers('state') >= 2
        ),
        'listeners',
        START,
    )
    rig.run()
    live = by_stamp(rig.states)
    client.spin_for(1.0)  # time for the recorder to write
    assert recorder.stop() == 0
    assert estimator.stop() == 0
    with open_bag(path) as bag:
        assert bag.counts == {
            '/mocap/middle/pose': POSES,
            '/mocap/end/pose': POSES,
            '/pressure/measured': POSES // PRESSURE_EVERY,
            '/state': POSES - LATE,
        }
    return live


@pytest.mark.parametrize('method', ['model', 'differentiator'])
def test_a_played_bag_gives_the_states_of_the_live_rig(
    ros_process: Any, ros_client_node: Any, tmp_path: Path, method: str
) -> None:
    client, finger, path = ros_client_node, tmp_path / 'finger.yaml', tmp_path / 'run'
    finger.write_text(yaml.safe_dump(FINGER))
    params = {'robot': str(finger), 'method': method, 'at_samples': True}
    rig = Rig(client, finger)
    live = recorded_live(ros_process, rig, params, path)

    rig.states.clear()
    ros_process(ESTIMATOR, {**params, 'use_sim_time': True}, remap={'__node': 'again'})
    wait_until_active(client, 'again')
    played_topics = [f'/{topic}' for topic in TOPICS]
    ros_process(PLAYER, {'bag': str(path), 'topics': played_topics, 'clock': 100.0, 'delay': 4.0})
    client.spin_until(lambda: len(by_stamp(rig.states)) >= len(live), 'all states', START)
    played = by_stamp(rig.states)
    assert len(live) == POSES - LATE
    assert played.keys() == live.keys()
    for stamp, state in live.items():
        for name in ('q', 'qd', 'qdd', 'covariance_diagonal'):
            ours, theirs = np.array(getattr(state, name)), np.array(getattr(played[stamp], name))
            np.testing.assert_allclose(theirs, ours, rtol=1e-9, atol=1e-12)
    recording = read_recording(path, rig.robot, rate=50.0)
    assert recording.source == 'state (/state)'


def line(stamps_ms: list[int], qd: float) -> States:
    """States of a robot with two coordinates that move at constant rates `qd`."""
    stamps = np.array(stamps_ms) * 1_000_000
    q = np.outer(stamps * 1e-9, [0.3, -0.2])
    return States(stamps, q, np.full_like(q, qd), np.full_like(q, 9.0), np.tile(q, 2) + 7.0)


def test_the_benchmark_compares_coordinates_with_coordinates_and_draws_no_line_through_a_gap() -> None:
    live = line(list(range(0, 4000, 5)), 1.0)
    again = line([*range(3, 2000, 10), *range(2103, 4000, 10)], 1.5)
    compared, differences = between(live, again).split(' compared: ')
    settled = live.stamps[(live.stamps > 1_003_000_000) & (live.stamps < again.stamps[-1])]
    in_gap = (settled > 1_993_000_000) & (settled < 2_103_000_000)
    assert int(compared) == np.sum(~in_gap)
    assert float(differences.split()[3]) < 1e-6  # q, rms
    assert 'qd differs by 500 mrad/s rms, 500 at most' in differences
    assert same_stamps(live, live) == f'{live.stamps.size} of the same stamp, {live.stamps.size} the same'
