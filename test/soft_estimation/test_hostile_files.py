"""Malicious recordings, mappings and saved searches: one-line errors in bounded memory."""

from __future__ import annotations

import gzip
import io
import json
import os
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from soft_dynamics.robot import load
from soft_estimation.commands import identify, import_recording
from soft_estimation.commands.import_recording import main
from soft_estimation.identification.budget import Checkpoint
from soft_estimation.importing import MappingError, load_mapping, tables

CSV = 'time,p1,p2\n' + '\n'.join(f'{k / 10},{k},{k}' for k in range(9))
PRESSURES: dict[str, Any] = {
    'type': 'pressures',
    'topic': 'pressure/measured',
    'chambers': ['left', 'right'],
    'columns': ['p1', 'p2'],
}


def mapping(tmp_path: Path, **content: Any) -> Path:
    path = tmp_path / 'map.yaml'
    whole = {'format': 1, 'time': {'column': 'time'}, 'topics': [PRESSURES], **content}
    path.write_text(yaml.safe_dump(whole, allow_unicode=True))
    return path


@pytest.mark.parametrize(
    ('content', 'line'),
    [
        ({'topics': [{**PRESSURES, 'topic': '../../etc'}]}, 'topics[0].topic: expected names'),
        ({'topics': [{**PRESSURES, 'topic': 'a b'}]}, 'topics[0].topic: expected names'),
        ({'topics': [{**PRESSURES, 'topic': 'a/' * 9000}]}, 'topics[0].topic: expected names'),
        (
            {'topics': [{**PRESSURES, 'chambers': ['<script>', 'b']}]},
            'topics[0].chambers[0]: expected a name',
        ),
        (
            {'topics': [{**PRESSURES, 'columns': ['a' * 300, 'b']}]},
            'topics[0].columns[0]: expected a text of 1',
        ),
        ({'topics': [{**PRESSURES, 'columns': ['a\nb', 'b']}]}, 'topics[0].columns[0]: expected a text of 1'),
        ({'frame_id': 'a' * 1000}, 'frame_id: expected names'),
        ({'delimiter': ''}, 'delimiter: expected one character'),
        ({'delimiter': '\n'}, 'delimiter: expected one character'),
        ({'delimiter': ',,'}, 'delimiter: expected one character'),
        ({'start': '9999-01-01T00:00:00+00:00'}, 'start: expected a year'),
        ({'start': '0001-01-01'}, 'start: expected a year'),
        ({'start': 'x' * 1000}, 'start: expected a time'),
        ({'only': [{'column': 'p1', 'value': 10**400}]}, 'not allowed'),
    ],
)
def test_what_a_mapping_may_not_say(tmp_path: Path, content: dict[str, Any], line: str) -> None:
    path = mapping(tmp_path, **content)
    if line == 'not allowed':
        line = 'line 3: expected a number of at most 100 characters, found more'
        path.write_text('format: 1\n\nx: ' + '9' * 400)
    with pytest.raises(MappingError) as caught:
        load_mapping(path)
    assert f'map.yaml: {line}' in str(caught.value)
    assert all(each.isprintable() and len(each) < 300 for each in str(caught.value).splitlines())


def test_headers_of_other_programs_are_labels(tmp_path: Path) -> None:
    columns = ['Druck links [hPa] °', 'Base - 1.x']
    assert load_mapping(mapping(tmp_path, topics=[{**PRESSURES, 'columns': columns}])).topics[0].columns == (
        *columns,
    )


@pytest.mark.parametrize('delimiter', ['\t', '.', '1', '-', '"', '#', 'e', '\u00e9'])
@pytest.mark.parametrize('time', [{'rate': 1e-300}, {'rate': 1e300}, {'column': 'time', 'unit': 'ns'}])
def test_odd_delimiters_and_rates_give_a_bag_or_one_line(
    tmp_path: Path, delimiter: str, time: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    for delimiting in (delimiter, ','):
        path = mapping(tmp_path, delimiter=delimiting, time=time)
        for k, text in enumerate((CSV, CSV.replace(',', delimiter), CSV.replace('0.8', '1e300'))):
            (tmp_path / 'run.csv').write_text(text)
            out = tmp_path / f'bag{k}{ord(delimiting)}'
            code = main([str(tmp_path / 'run.csv'), str(path), '--out', str(out)])
            said = capsys.readouterr()
            assert code in (0, 2)
            assert code == 0 or (said.err.count('\n') == 1 and not out.exists())


def peak(run: Any) -> float:
    """Return the peak memory of a call [MB]."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


def test_a_packed_table_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tables, 'LARGEST', 2**20)
    (tmp_path / 'run.csv.gz').write_bytes(gzip.compress(b'1' * 2**26))
    (tmp_path / 'run.csv').write_bytes(b'1' * (2**20 + 1))
    for name in ('run.csv.gz', 'run.csv'):
        arguments = [str(tmp_path / name), str(mapping(tmp_path)), '--out', str(tmp_path / 'bag')]
        assert peak(lambda arguments=arguments: main(arguments)) < 30
        assert '1048576 bytes' in capsys.readouterr().err


def test_packed_arrays_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identify, 'LARGEST', 2**20)
    robot, path = load('bending_actuator'), tmp_path / 'run.npz'
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as archive:
        archive.writestr('t.npy', bytes(2**26))

    def refused() -> None:
        with pytest.raises(ValueError, match='expected arrays of at most 1048576 bytes, found 67108864'):
            identify.read_arrays(path, robot)

    assert peak(refused) < 10
    os.mkfifo(tmp_path / 'pipe.npz')
    with pytest.raises(ValueError, match='expected a plain file'):
        identify.read_arrays(tmp_path / 'pipe.npz', robot)


@pytest.mark.parametrize('damage', ['deep', 'state', 'list', 'large', 'binary', 'empty', 'number'])
def test_a_saved_search_that_is_damaged_counts_as_none(tmp_path: Path, damage: str) -> None:
    path = tmp_path / 'search.json'
    store = Checkpoint(path, 'problem')
    store.save({'starts': 2, 'z': [0.1, 0.2]})
    assert store.load() == {'starts': 2, 'z': [0.1, 0.2]}
    saved = json.loads(path.read_text())
    path.write_text(
        {
            'deep': '[' * 10**6,
            'state': json.dumps(saved | {'state': {'starts': 'many'}}),
            'list': json.dumps([saved]),
            'large': ' ' * (65 * 2**20),
            'binary': '\0\x1b\ufffe',
            'empty': '',
            'number': '9' * 10**5,
        }[damage]
    )
    assert store.load() == {}


def test_no_name_leads_out_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reports and robot files are named after their source files, and bags after the recording."""
    (tmp_path / 'here').mkdir()
    monkeypatch.chdir(tmp_path / 'here')
    (tmp_path / '..csv').write_text(CSV)
    assert import_recording.main([str(tmp_path / '..csv'), str(mapping(tmp_path))]) == 2
    assert capsys.readouterr().err.count('\n') == 1
    with io.StringIO('format: 1\nname: ../escaped\nsegments: []') as text:
        Path('robot.yaml').write_text(text.getvalue())
    from soft_estimation.commands import validate

    assert validate.main(['bag', 'robot.yaml']) == 2
    assert 'name: expected a name' in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ['..csv', 'here', 'map.yaml']
    assert [path.name for path in Path().iterdir()] == ['robot.yaml']
