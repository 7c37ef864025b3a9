"""Our bags read by MCAP's own library, and bags of MCAP and rosbag2 read by ours."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from mcap_ros2.writer import Writer

from soft_dynamics.bags import BagWriter, SampleWriter, open_bag
from soft_dynamics.description.robot_files import share_folder

RECORDED = Path(__file__).parent / 'recorded'  # 15 messages each, by the writer of rosbag2_cpp of ROS 2 Jazzy
START_NS = 1_700_000_000_000_000_000
CHAMBERS = """std_msgs/Header header
string[] names
float64[] pressure
================================================================================
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
"""


def made(path: Path, storage: str = 'mcap', count: int = 300) -> Path:
    with BagWriter(path, storage) as bag:
        out = SampleWriter(bag)
        for k in range(count):
            t_ns = START_NS + 10_000_000 * k
            out.state('/state', t_ns, 'arm', ['u', 'v'], ([0.1 * k, -0.2], [1.0, 2.0]))
            out.pose('/mocap/tip/pose', t_ns, [0.0, 0.0, 0.6, 0.8], [0.1, 0.2, 0.3 + k])
    return path


def test_mcap_reads_what_we_write_without_our_definitions(tmp_path: Path) -> None:
    path = made(tmp_path / 'run')
    with (path / 'run_0.mcap').open('rb') as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        summary = reader.get_summary()
        assert summary is not None
        assert summary.statistics is not None
        assert (summary.statistics.message_count, reader.get_header().profile) == (600, 'ros2')
        decoded = list(reader.iter_decoded_messages())
    assert [message.log_time for _, _, message, _ in decoded] == sorted(
        [START_NS + 10_000_000 * k for k in range(300)] * 2
    )
    states = [msg for _, channel, _, msg in decoded if channel.topic == '/state']
    assert [state.q[0] for state in states] == [0.1 * k for k in range(300)]
    assert (states[0].model, list(states[0].names)) == ('arm', ['u', 'v'])
    poses = [msg for _, channel, _, msg in decoded if channel.topic == '/mocap/tip/pose']
    assert (poses[5].pose.position.z, poses[5].pose.orientation.w) == (5.3, 0.8)


def test_we_read_what_mcap_writes(tmp_path: Path) -> None:
    path = tmp_path / 'theirs.mcap'
    with path.open('wb') as file:
        writer = Writer(file)
        schema = writer.register_msgdef('soft_robot_suite/msg/ChamberPressures', CHAMBERS)
        for k in range(50):
            t_ns = START_NS + k
            header = {'stamp': {'sec': k, 'nanosec': 7}, 'frame_id': ''}
            message = {'header': header, 'names': ['a', 'b'], 'pressure': [1e3 * k, 5.0]}
            writer.write_message('/pressure/measured', schema, message, t_ns, t_ns, k)
        writer.finish()
    with open_bag(path) as bag:
        assert bag.topics == {'/pressure/measured': 'soft_robot_suite/msg/ChamberPressures'}
        messages = list(bag.messages())
        decoded = [bag.decode(message) for message in messages]
    assert [message.t_ns for message in messages] == list(range(START_NS, START_NS + 50))
    np.testing.assert_array_equal([m.pressure[0] for m in decoded], [1e3 * k for k in range(50)])
    assert (decoded[3].names, decoded[3].header.stamp.sec) == (['a', 'b'], 3)


def test_definitions_of_our_types_lie_in_both_storages(tmp_path: Path) -> None:
    text = (share_folder() / 'msg' / 'SoftState.msg').read_text(encoding='utf-8')
    fields = [line.split()[:2] for line in text.splitlines() if line and not line.startswith('#')]
    database = sqlite3.connect(made(tmp_path / 'run', 'sqlite3', 3) / 'run_0.db3')
    ((definition,),) = database.execute(
        "SELECT encoded_message_definition FROM message_definitions WHERE topic_type LIKE '%SoftState'"
    ).fetchall()
    database.close()
    assert all(name in definition for _, name in fields)
    assert 'MSG: std_msgs/Header' in definition


def shape(node: Any) -> Any:
    """Keys and types of a YAML tree; for lists, those of the first item."""
    if isinstance(node, dict):
        return {key: shape(value) for key, value in node.items()}
    return [shape(node[0])] if isinstance(node, list) and node else type(node).__name__


def tables(path: Path) -> dict[str, list[Any]]:
    database = sqlite3.connect(f'file:{path}?mode=ro', uri=True)
    names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    found = {name: database.execute(f'PRAGMA table_info({name})').fetchall() for name in names}
    found['version'] = database.execute('SELECT schema_version FROM schema').fetchall()
    database.close()
    return found


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_we_read_what_rosbag2_writes(storage: str) -> None:
    with open_bag(RECORDED / f'rosbag2_{storage}') as bag:
        assert bag.counts == dict.fromkeys(('/state', '/pressure/measured', '/mocap/tip/pose'), 5)
        states = [bag.decode(message) for message in bag.messages(['/state'])]
        (pose, *_) = [bag.decode(message) for message in bag.messages(['/mocap/tip/pose'])]
        (qos,) = bag.qos('/state')
    np.testing.assert_array_equal([state.q[0] for state in states], [0.1 * k for k in range(5)])
    assert (states[0].model, pose.pose.orientation.w) == ('arm', 0.8)
    assert (qos.reliability.name, qos.depth) == ('RELIABLE', 10)


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_our_metadata_has_the_fields_of_rosbag2(tmp_path: Path, storage: str) -> None:
    path = tmp_path / 'run'
    with open_bag(RECORDED / f'rosbag2_{storage}') as theirs, BagWriter(path, storage) as ours:
        for topic, msgtype in theirs.topics.items():
            ours.add_topic(topic, msgtype, tuple(theirs.qos(topic)))
        for message in theirs.messages():
            ours.write(message.topic, message.msgtype, message.data, message.t_ns)
    written, wanted = (
        yaml.safe_load((folder / 'metadata.yaml').read_text(encoding='utf-8'))['rosbag2_bagfile_information']
        for folder in (path, RECORDED / f'rosbag2_{storage}')
    )
    assert shape(written) == shape(wanted)
    for key in ('version', 'storage_identifier', 'duration', 'starting_time', 'message_count'):
        assert written[key] == wanted[key]
    by_name = [
        {topic['topic_metadata']['name']: topic for topic in bag['topics_with_message_count']}
        for bag in (written, wanted)
    ]
    for topics in by_name:  # ChamberPressures has two more fields than at the time of this recording
        topics['/pressure/measured']['topic_metadata'].pop('type_description_hash')
    assert by_name[0] == by_name[1]


def test_our_tables_are_those_of_rosbag2(tmp_path: Path) -> None:
    ours = made(tmp_path / 'run', 'sqlite3', 3) / 'run_0.db3'
    assert tables(ours) == tables(RECORDED / 'rosbag2_sqlite3' / 'rosbag2_sqlite3_0.db3')
