"""bag_recorder and bag_player as processes: a bag holds what was published, and plays it back unchanged."""

from __future__ import annotations

import resource
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message, serialize_message
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import get_types_from_msg
from rosgraph_msgs.msg import Clock
from soft_robot_suite.msg import ChamberPressures, SoftState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from soft_dynamics.bags import BagWriter, open_bag
from soft_dynamics.bags.message_types import standard_types
from soft_dynamics.bags.writing import VERSION
from soft_dynamics.nodes.bag_qos import played_qos, recorded_qos
from soft_dynamics.ros.conversions import float64s, time_from_ns, time_to_ns
from soft_dynamics.ros.qos import DESCRIPTION, SENSOR, STATE

RECORDER, PLAYER = 'soft_dynamics.nodes.bag_recorder', 'soft_dynamics.nodes.bag_player'
START_NS = 1_700_000_000_000_000_000
STEP_NS = 10_000_000
MANY = QoSProfile(depth=2000)
DELAY = 4.0  # [s] for discovery on a busy machine


def state(k: int) -> SoftState:
    msg = SoftState(model='arm', names=['a', 'b'], q=float64s([0.1 * k, -0.2]), sources=['mocap'])
    msg.header.stamp = time_from_ns(START_NS + k * STEP_NS)
    return msg


def made_bag(path: Path, count: int = 50) -> Path:
    """A bag of states, 10 ms apart."""
    with BagWriter(path) as bag:
        for k in range(count):
            msgtype = 'soft_robot_suite/msg/SoftState'
            bag.write('/state', msgtype, serialize_message(state(k)), START_NS + k * STEP_NS)
    return path


def indices(messages: list[SoftState]) -> list[int]:
    return [(time_to_ns(m.header.stamp) - START_NS) // STEP_NS for m in messages]


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_recorded_is_what_was_published_and_played_is_what_was_recorded(
    ros_process: Any, ros_client_node: Any, tmp_path: Path, storage: str
) -> None:
    client, path = ros_client_node, tmp_path / 'run'
    latched = client.create_publisher(String, 'robot_description', DESCRIPTION)
    latched.publish(String(data='<robot/>'))
    client.create_publisher(String, 'noise', STATE)
    recorder = ros_process(
        RECORDER, params={'output': str(path), 'storage': storage, 'exclude': 'noise|rosout'}
    )
    states = client.announce(SoftState, 'state', STATE)
    pressures = client.announce(ChamberPressures, 'pressure/measured', SENSOR)
    for k in range(40):
        states.publish(state(k))
        pressures.publish(ChamberPressures(names=['p'], pressure=[1e3 * k]))
        client.spin_for(0.01)
    client.spin_for(1.0)
    assert recorder.stop() == 0, recorder.stderr

    with open_bag(path) as bag:
        recorded = [deserialize_message(m.data, SoftState) for m in bag.messages(['/state'])]
        assert recorded == [state(k) for k in range(40)]
        (description,) = bag.messages(['/robot_description'])
        assert bag.decode(description).data == '<robot/>'
        assert '/noise' not in bag.topics
        loads = [bag.decode(m).pressure[0] for m in bag.messages(['/pressure/measured'])]
        assert loads
        assert set(loads) <= {1e3 * k for k in range(40)}

    for publisher in (latched, states, pressures):
        client.destroy_publisher(publisher)
    played = client.collect(SoftState, 'state', MANY)
    descriptions = client.collect(String, 'robot_description', DESCRIPTION)
    player = ros_process(PLAYER, params={'bag': str(path), 'rate': 2.0, 'delay': DELAY})
    client.spin_until(lambda: player.process.poll() is not None, 'end of the bag', 60.0)
    client.spin_for(0.5)
    assert player.wait() == 0, player.stderr
    assert played == recorded
    assert [d.data for d in descriptions] == ['<robot/>']


def test_a_killed_recorder_leaves_a_readable_bag(
    ros_process: Any, ros_client_node: Any, tmp_path: Path
) -> None:
    client, path = ros_client_node, tmp_path / 'run'
    params = {'output': str(path), 'topics': ['state', 'stat'], 'flush_period': 0.1}
    recorder = ros_process(RECORDER, params=params)
    states = client.announce(SoftState, 'state', STATE)
    for k in range(20):
        states.publish(state(k))
    client.spin_for(2.0)  # twenty flushes; one would do
    hint = 'no publisher of /stat yet, did you mean /state?'
    client.spin_until(lambda: hint in recorder.stderr, 'warning about the missing topic')
    assert 'no publisher of /state' not in recorder.stderr
    assert recorder.stop(signal.SIGKILL) == -signal.SIGKILL
    with open_bag(path) as bag:
        assert indices([deserialize_message(m.data, SoftState) for m in bag.messages(['/state'])]) == list(
            range(20)
        )
        assert list(bag.topics) == ['/state']


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_a_full_disk_ends_the_recorder_with_one_line(
    ros_process: Any, ros_client_node: Any, tmp_path: Path, storage: str
) -> None:
    client, path = ros_client_node, tmp_path / 'run'
    params = {'output': str(path), 'topics': ['state'], 'flush_period': 0.1, 'storage': storage}
    recorder = ros_process(RECORDER, params=params)
    states = client.announce(SoftState, 'state', STATE)
    for k in range(20):
        states.publish(state(k))
    client.spin_for(2.0)
    size = next(path.iterdir()).stat().st_size
    resource.prlimit(recorder.process.pid, resource.RLIMIT_FSIZE, (size, size))

    def ended() -> bool:
        states.publish(state(20))
        return recorder.process.poll() is not None

    client.spin_until(ended, 'end of the recorder')
    assert recorder.wait() == 1
    lines = [line for line in recorder.stderr.splitlines() if 'recording to' not in line]
    assert len(lines) == 1, lines
    assert f'recording ends: bag {path}: cannot be written any more: ' in lines[0]
    with open_bag(path) as bag:
        read = indices([deserialize_message(m.data, SoftState) for m in bag.messages(['/state'])])
    assert read[:20] == list(range(20))


def test_start_loop_and_clock(ros_process: Any, ros_client_node: Any, tmp_path: Path) -> None:
    client = ros_client_node
    played, clock = client.collect(SoftState, 'state', MANY), client.collect(Clock, '/clock', SENSOR)
    params = {'bag': str(made_bag(tmp_path / 'run')), 'start': 0.3, 'loop': True, 'clock': 100.0, 'rate': 0.5}
    params |= {'delay': DELAY, 'topics': ['state']}
    player = ros_process(PLAYER, params=params)
    client.spin_until(lambda: indices(played).count(49) >= 2, 'second end of the bag', 60.0)
    assert player.stop() == 0
    order = indices(played)
    end = order.index(49) + 1
    assert order[:end] == list(range(30, 50))
    assert order[end : end + 20] == list(range(30, 50))
    seen_ns = [time_to_ns(message.clock) for message in clock]
    assert min(seen_ns) >= START_NS + 30 * STEP_NS
    assert max(seen_ns) <= START_NS + 500 * STEP_NS  # at most the play time of a stalled process
    assert np.any(np.diff(seen_ns) < 0)  # jumped back with the loop


@pytest.mark.parametrize(('rate', 'count', 'least', 'most'), [(0.25, 50, 1.0, 60.0), (20.0, 1500, 0.0, 12.0)])
def test_rate_stretches_time(
    ros_process: Any,
    ros_client_node: Any,
    tmp_path: Path,
    rate: float,
    count: int,
    least: float,
    most: float,
) -> None:
    client = ros_client_node
    arrivals: list[float] = []
    client.create_subscription(SoftState, 'state', lambda _: arrivals.append(time.monotonic()), MANY)
    path = made_bag(tmp_path / 'run', count)
    ros_process(PLAYER, params={'bag': str(path), 'rate': rate, 'delay': DELAY})
    client.spin_until(lambda: len(arrivals) == count, 'all messages', 90.0)
    assert least < arrivals[-1] - arrivals[0] < most


def test_what_no_type_is_installed_of_is_left_out(
    ros_process: Any, ros_client_node: Any, tmp_path: Path
) -> None:
    """Like rosbag2's own events, which every bag of `ros2 bag record -a` contains."""
    path, strange, types = tmp_path / 'run', 'strange_msgs/msg/Event', standard_types()
    types.register(get_types_from_msg('float64 x', strange))
    with Writer(path, version=VERSION, storage_plugin=StoragePlugin.MCAP) as writer:
        for topic, msgtype in (('/events', strange), ('/note', 'std_msgs/msg/String')):
            connection = writer.add_connection(topic, msgtype, typestore=types)
            if topic == '/note':
                writer.write(connection, START_NS, serialize_message(String(data='good')))
    notes = ros_client_node.collect(String, 'note', MANY)
    player = ros_process(PLAYER, params={'bag': str(path), 'delay': DELAY})
    ros_client_node.spin_until(lambda: notes, 'the note')
    assert player.wait() == 0
    (line,) = [text for text in player.stderr.splitlines() if 'not played' in text]
    assert f'/events needs the type {strange}, which is not installed' in line


def test_a_latched_topic_keeps_as_much_as_ros2_bag_play() -> None:
    recorded = [recorded_qos(DESCRIPTION)] * 3
    assert played_qos(recorded).depth == 10
    assert played_qos([]).depth == played_qos([recorded_qos(STATE)]).depth == 1000


@pytest.mark.parametrize(
    ('module', 'params', 'line'),
    [
        (PLAYER, {'bag': 'nowhere'}, 'bag nowhere: does not exist'),
        (PLAYER, {'bag': 'RUN', 'start': 9.0}, 'start must be < 0.490 s, the length of the bag, got 9.0'),
        (PLAYER, {'bag': 'RUN', 'rate': 0.0}, 'rate must be > 0, got 0.0'),
        (PLAYER, {'bag': 'RUN', 'topics': ['/other']}, 'has no topic /other; it has /state'),
        (PLAYER, {'bag': 'CUT'}, 'is damaged, truncated or not a rosbag2 bag'),
        (RECORDER, {'output': 'RUN'}, 'exists already'),
        (RECORDER, {'storage': 'csv'}, 'storage must be one of mcap, sqlite3, got csv'),
        (RECORDER, {'exclude': '('}, 'exclude is not a regular expression'),
    ],
)
def test_mistakes_give_one_line(
    ros_process: Any, tmp_path: Path, module: str, params: dict[str, Any], line: str
) -> None:
    places = {'RUN': made_bag(tmp_path / 'run'), 'CUT': made_bag(tmp_path / 'cut')}
    (tmp_path / 'cut' / 'cut_0.mcap').write_bytes((tmp_path / 'run' / 'run_0.mcap').read_bytes()[:-50])
    node = ros_process(
        module, params={k: str(places.get(str(v), v)) if isinstance(v, str) else v for k, v in params.items()}
    )
    assert node.wait() == 1
    (message,) = [text for text in node.stderr.splitlines() if text.strip()]
    assert line in message


def test_recorded_commands_and_references_are_played_beside_the_live_topics(
    ros_process: Any, ros_client_node: Any, tmp_path: Path
) -> None:
    """A played recording must not move the arm: references may be remapped deliberately, commands may not."""
    client, path = ros_client_node, tmp_path / 'run'
    recorded = {
        '/pressure/command': ChamberPressures(names=['p'], pressure=[1e5]),
        '/arm1/pressure/command': ChamberPressures(names=['p'], pressure=[2e5]),
        '/pressure/measured': ChamberPressures(names=['p'], pressure=[3e5]),
        '/reference/pose': PoseStamped(),
        '/arm1/reference/configuration': JointTrajectory(),
    }
    with BagWriter(path) as bag:
        for k in range(5):
            for topic, message in recorded.items():
                msgtype = f'{type(message).__module__.split(".")[0]}/msg/{type(message).__name__}'
                bag.write(topic, msgtype, serialize_message(message), START_NS + k * STEP_NS)
    names = {
        '/pressure/command': '/replayed/pressure/command',
        '/arm1/pressure/command': '/arm1/replayed/pressure/command',
        '/arm1/reference/configuration': '/arm1/replayed/reference/configuration',
        '/reference/pose': '/reference/pose',
    }
    live = {topic: client.collect(type(message), topic, MANY) for topic, message in recorded.items()}
    played = {topic: client.collect(type(recorded[topic]), names[topic], MANY) for topic in names}
    params = {'bag': str(path), 'delay': DELAY}
    player = ros_process(PLAYER, params, remap={'/replayed/reference/pose': '/reference/pose'})
    client.spin_until(lambda: player.process.poll() is not None, 'end of the bag', 60.0)
    client.spin_for(0.5)
    assert player.wait() == 0, player.stderr
    assert {topic for topic, heard in live.items() if heard} == {'/pressure/measured', '/reference/pose'}
    assert {len(heard) for heard in played.values()} == {5}
    assert '/pressure/command is played as /replayed/pressure/command' in player.stderr

    for remapped in ('/replayed/pressure/command', '/pressure/measured'):
        player = ros_process(PLAYER, params, remap={remapped: '/pressure/command'})
        assert player.wait() == 1
        assert '/pressure/command: recorded messages may not be played there' in player.stderr
