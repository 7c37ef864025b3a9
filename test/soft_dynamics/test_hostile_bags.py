"""Malicious bags (decompression bombs, endless waits or loops): rejected early with one line."""

from __future__ import annotations

import os
import sqlite3
import struct
import tracemalloc
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest
from fuzz import damaged, fuzz_count, spoiled_documents
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer, storage_mcap
from test_bags import START_NS, STRING, TYPES, string_cdr, write

from soft_dynamics.bags import BagError, open_bag
from soft_dynamics.bags.limits import LARGEST
from soft_dynamics.bags.sealing import MAGIC, NO_INDEX

ENOUGH = 64 * 2**20  # [bytes] allowed for a refusal
COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    'zstd': storage_mcap.zstd.compress,
    'lz4': import_module('lz4.frame').compress,
}


def record(kind: int, content: bytes) -> bytes:
    return struct.pack('<BQ', kind, len(content)) + content


def read(path: Path) -> None:
    with open_bag(path) as bag:
        for message in bag.messages():
            bag.decode(message)


def text(value: str) -> bytes:
    return struct.pack('<I', len(value)) + value.encode()


def chunk(packed: bytes, size: int, compression: str) -> bytes:
    head = struct.pack('<QQQI', 0, 1, size, 0) + text(compression) + struct.pack('<Q', len(packed))
    return record(0x06, head + packed)


def mcap(path: Path, *records: bytes, index: bytes = b'') -> Path:
    """A file of these records, with a summary if there is an index."""
    data = MAGIC + record(0x01, text('ros2') + text('test')) + b''.join(records)
    if index:
        end = record(0x0F, bytes(4))
        start = len(data) + len(end)
        data += end + index + record(0x02, struct.pack('<QQI', start, 0, 0)) + MAGIC
    else:
        data += NO_INDEX
    path.write_bytes(data)
    return path


@pytest.fixture
def refusal() -> Iterator[Callable[[Path], str]]:
    """Open and read a bag; return its one-line error, and check that memory stays bounded."""

    def refuse(path: Path) -> str:
        tracemalloc.start()
        try:
            with pytest.raises(BagError) as caught:
                read(path)
            assert tracemalloc.get_traced_memory()[1] < ENOUGH
        finally:
            tracemalloc.stop()
        line = str(caught.value)
        assert line.isprintable()
        assert len(line) < 3000
        return line

    return refuse


@pytest.mark.parametrize('compression', ['zstd', 'lz4'])
def test_98_kb_do_not_unpack_to_3_gb(
    tmp_path: Path, refusal: Callable[[Path], str], compression: str
) -> None:
    zeros = record(0x0C, bytes(4 * 2**20 - 9))
    packed = chunk(COMPRESSORS[compression](zeros), len(zeros), compression)
    path = mcap(tmp_path / 'bomb.mcap', *[packed] * 750)
    assert 'bytes would unpack to more than' in refusal(path)


def test_an_index_that_tells_of_3_gb_is_believed_and_refused(
    tmp_path: Path, refusal: Callable[[Path], str]
) -> None:
    packed = chunk(b'', 0, 'zstd')
    told = struct.pack('<QQQQI', 0, 1, 8, len(packed), 0) + struct.pack('<Q', 0) + text('zstd')
    index = record(0x08, told + struct.pack('<QQ', 0, 3 * 2**30))
    statistics = record(0x0B, struct.pack('<QHIIIIQQI', 1, 0, 0, 0, 0, 1, 0, 1, 0))
    assert f'expected at most {LARGEST}' in refusal(
        mcap(tmp_path / 'bomb.mcap', packed, index=index + statistics)
    )


@pytest.mark.parametrize('compression', ['zstd', 'lz4'])
def test_a_chunk_that_lies_about_its_size_is_not_unpacked_further(
    tmp_path: Path, refusal: Callable[[Path], str], compression: str
) -> None:
    packed = COMPRESSORS[compression](bytes(4 * ENOUGH))
    assert 'size mismatch' in refusal(mcap(tmp_path / 'lie.mcap', chunk(packed, 1000, compression)))
    assert 'expected at most' in refusal(mcap(tmp_path / 'lie.mcap', chunk(packed, 2**62, compression)))


def packed_bag(path: Path, mode: CompressionMode, storage: StoragePlugin, count: int, data: bytes) -> None:
    writer = Writer(path, version=9, storage_plugin=storage)
    writer.set_compression(mode, CompressionFormat.ZSTD)
    with writer:
        topic = writer.add_connection('/note', STRING, typestore=TYPES)
        for k in range(count):
            writer.write(topic, START_NS + k, data)


@pytest.mark.parametrize('storage', list(StoragePlugin))
@pytest.mark.parametrize('mode', [CompressionMode.FILE, CompressionMode.MESSAGE, CompressionMode.STORAGE])
def test_packed_bags_are_read_and_leave_nothing_behind(
    tmp_path: Path, mode: CompressionMode, storage: StoragePlugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (mode, storage) == (CompressionMode.STORAGE, StoragePlugin.SQLITE3):
        mode = CompressionMode.NONE  # sqlite itself cannot compress
    monkeypatch.setenv('TMPDIR', str(tmp_path / 'nowhere'))  # no file in the system's folder
    packed_bag(tmp_path / 'run', mode, storage, 50, string_cdr('three'))
    with open_bag(tmp_path / 'run', pytest.fail) as bag:
        read = list(bag.messages())
        assert {bag.decode(message).data for message in read} == {'three'}
    assert [message.t_ns for message in read] == list(range(START_NS, START_NS + 50))
    assert [path.name for path in tmp_path.iterdir()] == ['run']


@pytest.mark.parametrize('mode', [CompressionMode.FILE, CompressionMode.MESSAGE])
def test_packed_bags_are_bounded_too(
    tmp_path: Path, mode: CompressionMode, refusal: Callable[[Path], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('soft_dynamics.bags.limits.ALLOWANCE', 2**20)
    packed_bag(tmp_path / 'run', mode, StoragePlugin.SQLITE3, 20, string_cdr('a' * 2**20))
    assert 'bytes would unpack to more than' in refusal(tmp_path / 'run')
    assert [path.name for path in tmp_path.iterdir()] == ['run']


def test_one_message_is_bounded(
    tmp_path: Path, refusal: Callable[[Path], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('soft_dynamics.bags.limits.LARGEST', 2**20)
    packed_bag(tmp_path / 'run', CompressionMode.MESSAGE, StoragePlugin.MCAP, 1, string_cdr('a' * 2**21))
    assert 'a message of' in refusal(tmp_path / 'run')


@pytest.mark.parametrize('name', ['run.mcap', 'run.db3', 'metadata.yaml', 'told'])
def test_pipes_and_folders_are_not_opened(tmp_path: Path, refusal: Callable[[Path], str], name: str) -> None:
    path = tmp_path / 'run'
    if name == 'told':
        write(path, 'mcap')
        metadata = path / 'metadata.yaml'
        metadata.write_text(metadata.read_text().replace('run_0.mcap', 'pipe'))
        os.mkfifo(path / 'pipe')
        assert "metadata.yaml names 'pipe', which is not a file in this folder" in refusal(path)
        return
    path.mkdir()
    os.mkfifo(path / name)
    (tmp_path / 'folder' / name).mkdir(parents=True)
    for where in (path, tmp_path / 'folder', *([path / name] if name != 'metadata.yaml' else [])):
        assert f'{name}: expected a plain file, found a pipe, device or folder' in refusal(where)


@pytest.mark.parametrize(
    'attack',
    [
        'CREATE VIEW message_definitions AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) '
        'SELECT x AS id, x AS topic_type, x AS encoding, x AS encoded_message_definition, '
        'x AS type_description_hash FROM n',
        'CREATE TABLE message_definitions (id INTEGER, topic_type TEXT, encoding TEXT, '
        'encoded_message_definition TEXT AS (hex(zeroblob(400000000))), type_description_hash TEXT)',
    ],
)
def test_a_database_that_computes_is_refused(
    tmp_path: Path, refusal: Callable[[Path], str], attack: str
) -> None:
    write(tmp_path / 'run', 'sqlite3')
    database = sqlite3.connect(tmp_path / 'run' / 'run_0.db3')
    database.execute('DROP TABLE message_definitions')
    database.execute(attack)
    database.commit()
    database.close()
    assert 'found views or computed columns' in refusal(tmp_path / 'run')


@pytest.mark.parametrize(
    ('old', 'new', 'line'),
    [
        ('custom_data: null', 'custom_data: &a [*a]', 'aliases'),
        ('custom_data: null', f'custom_data: {"[" * 5000}', 'at most 32 nested lists'),
        ('custom_data: null', f'custom_data: [{"a, " * 200_000}]', 'entries, found more'),
        ('custom_data: null', f'custom_data: {"a" * 3_000_000}', 'bytes, found more'),
        ('custom_data: null', 'custom_data: !!python/object:os.system x', 'tags'),
        ('message_count: 20', 'message_count: 20\n    message_count: 21', 'duplicate key'),
        ('version: 9', f'version: {"9" * 5000}', 'characters, found more'),
        ('run_0.mcap', '../../../etc/passwd', 'not a file in this folder'),
        ('run_0.mcap', '{a: b}', 'damaged'),
    ],
)
def test_metadata_are_read_by_the_strict_loader(
    tmp_path: Path, refusal: Callable[[Path], str], old: str, new: str, line: str
) -> None:
    write(tmp_path / 'run', 'mcap')
    metadata = tmp_path / 'run' / 'metadata.yaml'
    content = metadata.read_text()
    assert old in content
    metadata.write_text(content.replace(old, new))
    assert line in refusal(tmp_path / 'run')


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
@pytest.mark.parametrize('spoiled', ['metadata', 'storage'])
def test_spoiled_bags_are_read_or_refused_in_one_line(tmp_path: Path, storage: str, spoiled: str) -> None:
    """Also message definitions, and messages that contradict their definition."""
    write(tmp_path / 'run', storage, 3)
    file = next(tmp_path.glob('run/*.yaml' if spoiled == 'metadata' else 'run/run_0.*'))
    documents = (spoiled_documents if spoiled == 'metadata' else damaged)(
        [file.read_bytes()], fuzz_count(500, 25_000)
    )
    for document in documents:
        file.write_bytes(document)
        line = complaint(tmp_path / 'run')
        assert line.isprintable()
        assert len(line) < 3000


def complaint(path: Path) -> str:
    """Return the text of a BagError, or nothing; any other exception passes through."""
    try:
        read(path)
    except BagError as error:
        return str(error)
    return ''
