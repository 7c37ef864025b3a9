"""Our bags in the hands of MCAP's own library, and its files in ours."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from mcap_ros2.writer import Writer

from soft_dynamics.bags import BagWriter, SampleWriter, open_bag
from soft_dynamics.resources import share_folder

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
    with (path / 'run.mcap').open('rb') as file:
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
    database = sqlite3.connect(made(tmp_path / 'run', 'sqlite3', 3) / 'run.db3')
    ((definition,),) = database.execute(
        "SELECT encoded_message_definition FROM message_definitions WHERE topic_type LIKE '%SoftState'"
    ).fetchall()
    database.close()
    assert all(name in definition for _, name in fields)
    assert 'MSG: std_msgs/Header' in definition
