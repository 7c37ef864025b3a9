"""Bags: reading returns what was written, also after the writer was killed; damage gives a one-line error."""

from __future__ import annotations

import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from rosbags.rosbag2 import Reader, StoragePlugin, Writer

from soft_dynamics.bags import BagError, BagWriter, Message, open_bag
from soft_dynamics.bags.message_types import register, standard_types
from soft_dynamics.bags.sealing import NO_INDEX, seal_mcap

STATE, STRING = 'soft_robot_suite/msg/SoftState', 'std_msgs/msg/String'
START_NS = 1_700_000_000_123_456_789
ROOT = Path(__file__).resolve().parents[2]
TYPES = standard_types()
LIMITS = ('deadline', 'lifespan', 'liveliness_lease_duration')
QOS = {
    'history': 'keep_last',
    'depth': 10,
    'reliability': 'reliable',
    'durability': 'volatile',
    'liveliness': 'automatic',
    'avoid_ros_namespace_conventions': False,
}


def state_cdr(k: int) -> bytes:
    header = TYPES.types['std_msgs/msg/Header'](TYPES.types['builtin_interfaces/msg/Time'](k, 7), 'base_link')
    q = np.array([0.1 * k, -0.2])
    empty = np.zeros(0)
    state = TYPES.types[STATE](header, 'arm', ['a', 'b'], q, 2 * q, empty, empty, ['mocap'])
    return bytes(TYPES.serialize_cdr(state, STATE))


def string_cdr(text: str) -> bytes:
    return bytes(TYPES.serialize_cdr(TYPES.types[STRING](text), STRING))


def write(path: Path, storage: str, count: int = 20) -> list[Message]:
    """Write states and, at every fifth time, a note."""
    written = []
    with BagWriter(path, storage) as bag:
        for k in range(count):
            written.append(Message('/state', STATE, START_NS + k * 1_000_000, state_cdr(k)))
            if k % 5 == 0:
                written.append(
                    Message('/note', STRING, START_NS + k * 1_000_000 + 1, string_cdr(f'note {k}'))
                )
        for message in written:
            bag.write(message.topic, message.msgtype, message.data, message.t_ns)
    return written


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_what_is_written_is_read(tmp_path: Path, storage: str) -> None:
    written = write(tmp_path / 'run', storage)
    with open_bag(tmp_path / 'run') as bag:
        assert list(bag.messages()) == written
        assert bag.topics == {'/state': STATE, '/note': STRING}
        assert bag.counts == {'/state': 20, '/note': 4}
        assert bag.duration == pytest.approx(0.019, abs=1e-6)
        assert re.fullmatch(
            r'.+_(\d+)\.([a-zA-Z0-9])+', next((tmp_path / 'run').glob('run*')).name
        )  # the time of rosbag2's reindexer
        notes = list(bag.messages(['/note'], START_NS + 1))
        assert [bag.decode(note).data for note in notes] == ['note 0', 'note 5', 'note 10', 'note 15']
        state = bag.decode(next(bag.messages(['/state'], START_NS + 3_000_000)))
        np.testing.assert_array_equal(state.q, [0.1 * 3, -0.2])
        assert (state.header.stamp.sec, state.names) == (3, ['a', 'b'])


@pytest.mark.parametrize(('storage', 'suffix'), [('mcap', '.mcap'), ('sqlite3', '.db3')])
def test_a_single_file_of_a_bag_is_read(tmp_path: Path, storage: str, suffix: str) -> None:
    written = write(tmp_path / 'run', storage)
    with open_bag(tmp_path / 'run' / f'run_0{suffix}') as bag:
        assert list(bag.messages()) == written


def test_sqlite3_and_metadata_hold_what_other_readers_look_for(tmp_path: Path) -> None:
    write(tmp_path / 'run', 'sqlite3')
    database = sqlite3.connect(tmp_path / 'run' / 'run_0.db3')
    rows = database.execute('SELECT name, type, serialization_format FROM topics ORDER BY name').fetchall()
    assert rows == [('/note', STRING, 'cdr'), ('/state', STATE, 'cdr')]
    assert database.execute('SELECT count(*), min(timestamp) FROM messages').fetchone() == (24, START_NS)
    database.close()
    information = yaml.safe_load((tmp_path / 'run' / 'metadata.yaml').read_text())[
        'rosbag2_bagfile_information'
    ]
    assert (information['version'], information['storage_identifier']) == (9, 'sqlite3')
    topics = [topic['topic_metadata'] for topic in information['topics_with_message_count']]
    assert all(topic['type_description_hash'].startswith('RIHS01_') for topic in topics)


def test_times_never_step_back(tmp_path: Path) -> None:
    with BagWriter(tmp_path / 'run') as bag:
        for t_ns in (5, 3, 9):
            bag.write('/note', STRING, string_cdr('x'), t_ns)
    with open_bag(tmp_path / 'run') as bag:
        assert [message.t_ns for message in bag.messages()] == [5, 5, 9]


@pytest.mark.parametrize('is_killed', [False, True])
def test_a_file_without_index_is_read_in_the_order_of_its_times(tmp_path: Path, is_killed: bool) -> None:
    """As after a kill of `ros2 bag record`, or with its profile `fastwrite`."""
    path, times, types = tmp_path / 'run', [500, 300, 900, 300, 100, 800], TYPES
    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        topic = writer.add_connection('/note', STRING, typestore=types)
        for k, t_ns in enumerate(times):
            writer.write(topic, t_ns, string_cdr(f'note {k}'))
    (file,) = path.glob('*.mcap')
    seal_mcap(file)
    if is_killed:
        (path / 'metadata.yaml').unlink()
        file.write_bytes(file.read_bytes()[: -len(NO_INDEX)])
    with open_bag(path) as bag:
        read = [(message.t_ns, bag.decode(message).data) for message in bag.messages()]
    assert read == sorted((t_ns, f'note {k}') for k, t_ns in enumerate(times))


KILLED = """
import os, signal, sys
sys.path[:0] = [{root!r}, {here!r}]
from test_bags import BagWriter, START_NS, STATE, state_cdr
bag = BagWriter({path!r}, {storage!r})
for k in range(30000):
    bag.write('/state', STATE, state_cdr(k), START_NS + k)
    if k % 1000 == 999 and k < 20000:
        bag.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_a_killed_writer_leaves_what_it_flushed(tmp_path: Path, storage: str) -> None:
    path, here = tmp_path / 'run', Path(__file__).parent
    code = KILLED.format(root=str(ROOT), here=str(here), path=str(path), storage=storage)
    assert (
        subprocess.run([sys.executable, '-c', code], timeout=120, check=False).returncode == -signal.SIGKILL
    )
    assert not (path / 'metadata.yaml').exists()
    said: list[str] = []
    for _ in range(2):  # the first opening seals the bag, the second finds it sealed
        with open_bag(path, said.append) as bag:
            read = list(bag.messages())
        assert 20000 <= len(read) < 30000
        assert [message.t_ns for message in read] == list(range(START_NS, START_NS + len(read)))
        assert read[-1].data == state_cdr(len(read) - 1)
    assert said == [f'bag {path} was not finished by its recorder: {len(read)} messages recovered']
    assert (path / 'metadata.yaml').exists()
    assert [entry.name for entry in tmp_path.iterdir()] == ['run']


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
@pytest.mark.parametrize('moment', ['copy', 'storage', 'metadata'])
def test_a_killed_repair_is_made_again(tmp_path: Path, storage: str, moment: str) -> None:
    """The kill comes during the copy of messages, or before one of the two files is in its place."""
    path = tmp_path / 'run'
    written = write(path, storage, 100)
    (path / 'metadata.yaml').unlink()
    path = path.rename(tmp_path / 'renamed')
    code = KILLED_REPAIR.format(root=str(ROOT), path=str(path), moment=moment)
    killed = subprocess.run([sys.executable, '-c', code], timeout=120, check=False)
    assert killed.returncode == -signal.SIGKILL
    with open_bag(path) as bag:
        assert list(bag.messages()) == written
    assert sorted(file.suffix for file in path.iterdir()) == sorted(['.yaml', STORAGE_FILES[storage]])
    assert list(tmp_path.iterdir()) == [path]


STORAGE_FILES = {'mcap': '.mcap', 'sqlite3': '.db3'}
KILLED_REPAIR = """
import os, pathlib, signal, sys
sys.path.insert(0, {root!r})
from soft_dynamics.bags import open_bag, repair
from rosbags.rosbag2 import Writer
write, replace, count = Writer.write, pathlib.Path.replace, 0
def die(): os.kill(os.getpid(), signal.SIGKILL)
def writing(*args):
    global count
    count += 1
    die() if count == 50 and {moment!r} == 'copy' else write(*args)
def replacing(self, target):
    metadata = target.name == 'metadata.yaml'
    die() if {moment!r} == ('metadata' if metadata else 'storage') else replace(self, target)
Writer.write, pathlib.Path.replace = writing, replacing
with open_bag({path!r}): pass
"""

FULL = """
import resource, sys
sys.path[:0] = [{root!r}, {here!r}]
from test_bags import BagError, BagWriter, START_NS, STATE, state_cdr
bag = BagWriter({path!r}, {storage!r})
try:
    for k in range(30000):
        if k == {flushed}:
            bag.flush()
            (size,) = (file.stat().st_size for file in bag.path.iterdir())
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        bag.write('/state', STATE, state_cdr(k), START_NS + k)
        if k == {last}:
            break
    bag.close()
except BagError as error:
    print(error)
bag.close()
"""


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
@pytest.mark.parametrize('last', [29999, 1600])  # disk full during writing, or at closing
def test_a_full_disk_is_one_line_and_what_was_flushed_stays(tmp_path: Path, storage: str, last: int) -> None:
    path, here = tmp_path / 'run', Path(__file__).parent
    code = FULL.format(
        root=str(ROOT), here=str(here), path=str(path), storage=storage, flushed=1500, last=last
    )
    done = subprocess.run(
        [sys.executable, '-c', code], timeout=120, check=True, capture_output=True, text=True
    )
    assert done.stderr == ''
    assert done.stdout.startswith(f'bag {path}: cannot be written any more: ')
    assert done.stdout.count('\n') == 1
    with Reader(path) as library:  # leaves the bag as it is: this one is complete
        count = sum(1 for _ in library.messages())
    assert done.stdout.endswith(f'; {count} messages can be read\n')
    with open_bag(path, pytest.fail) as bag:
        read = list(bag.messages())
    assert len(read) == count
    assert [message.t_ns for message in read] == list(range(START_NS, START_NS + len(read)))
    assert 1500 <= len(read) <= last + 1


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_a_bag_that_still_grows_is_left_alone(tmp_path: Path, storage: str) -> None:
    with BagWriter(tmp_path / 'run', storage) as bag:
        bag.write('/note', STRING, string_cdr('x'), 1)
        bag.flush()
        with pytest.raises(BagError, match='run: is still being recorded'), open_bag(tmp_path / 'run'):
            pass
    with open_bag(tmp_path / 'run') as finished:
        assert len(list(finished.messages())) == 1


@pytest.mark.parametrize(('storage', 'suffix'), [('mcap', '.mcap'), ('sqlite3', '.db3')])
@pytest.mark.parametrize('kept', [0.0, 0.1, 0.5, 0.98])
def test_a_truncated_bag_gives_one_line(tmp_path: Path, storage: str, suffix: str, kept: float) -> None:
    write(tmp_path / 'run', storage, 2000)
    file = tmp_path / 'run' / f'run_0{suffix}'
    data = file.read_bytes()
    file.write_bytes(data[: int(kept * len(data))])
    reason = 'is damaged, truncated or not a rosbag2 bag'
    with pytest.raises(BagError, match=reason) as caught, open_bag(tmp_path / 'run') as bag:
        list(bag.messages())
    assert '\n' not in str(caught.value)


def foreign(tmp_path: Path, kind: str) -> Path:
    path = tmp_path / kind
    if kind == 'folder':
        path.mkdir()
    elif kind == 'bad_metadata':
        write(path, 'mcap')
        (path / 'metadata.yaml').write_text('just: this')
    elif kind == 'other_file_inside':
        write(path, 'sqlite3')
        shutil.copy(__file__, path / f'{kind}_0.db3')
    elif kind != 'missing':
        path.write_bytes(b'#ROSBAG V2.0\n' + bytes(range(256)))
    return path


@pytest.mark.parametrize(
    ('kind', 'reason'),
    [
        ('missing', 'does not exist'),
        ('folder', 'is a folder without metadata.yaml'),
        ('bad_metadata', 'is damaged, truncated or not a rosbag2 bag'),
        ('other_file_inside', 'is damaged, truncated or not a rosbag2 bag'),
        ('old.bag', 'is damaged, truncated or not a rosbag2 bag: Unrecognized storage format'),
        ('text.mcap', 'is damaged, truncated or not a rosbag2 bag: File magic is invalid'),
        ('text.db3', 'is damaged, truncated or not a rosbag2 bag'),
    ],
)
def test_a_foreign_bag_gives_one_line(tmp_path: Path, kind: str, reason: str) -> None:
    path = foreign(tmp_path, kind)
    with pytest.raises(BagError, match=reason) as caught, open_bag(path) as bag:
        list(bag.messages())
    assert str(caught.value).startswith(f'bag {path}: ')
    assert '\n' not in str(caught.value)


def test_a_missing_topic_is_named_with_those_there(tmp_path: Path) -> None:
    write(tmp_path / 'run', 'mcap')
    reason = 'has no topic /pressure; it has /note, /state'
    with open_bag(tmp_path / 'run') as bag, pytest.raises(BagError, match=reason):
        list(bag.messages(['/pressure']))


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_where_metadata_are_those_of_another_tool_the_storage_is_believed(
    tmp_path: Path, storage: str
) -> None:
    """`ros2 bag reindex` writes QoS profiles into the metadata that the file lacks."""
    written, said = write(tmp_path / 'run', storage), []
    metadata = tmp_path / 'run' / 'metadata.yaml'
    content = yaml.safe_load(metadata.read_text())
    for topic in content['rosbag2_bagfile_information']['topics_with_message_count']:
        topic['topic_metadata']['offered_qos_profiles'] = [
            QOS | {key: {'sec': 0, 'nsec': 0} for key in LIMITS}
        ]
    content['rosbag2_bagfile_information']['topics_with_message_count'][0]['message_count'] = 7
    content['rosbag2_bagfile_information']['message_count'] = 3
    metadata.write_text(yaml.safe_dump(content))
    with open_bag(tmp_path / 'run', said.append) as bag:
        assert list(bag.messages()) == written
        assert bag.counts == {'/state': 20, '/note': 4}
        assert bag.duration == pytest.approx(0.019, abs=1e-6)
    reason = 'metadata.yaml and storage disagree on /note, /state; using the storage'
    assert said == [f'bag {tmp_path / "run"}: {reason}']


def test_refusals_of_the_writer(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match='storage must be one of mcap, sqlite3, got csv'):
        BagWriter(tmp_path / 'run', 'csv')
    write(tmp_path / 'run', 'mcap')
    with pytest.raises(BagError, match='exists already'):
        BagWriter(tmp_path / 'run')
    with pytest.raises(ValueError, match='no definition of nobody_msgs/msg/Thing'):
        register(standard_types(), 'nobody_msgs/msg/Thing')
