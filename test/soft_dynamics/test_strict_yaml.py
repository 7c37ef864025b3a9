"""The strict YAML loader: it reads YAML 1.2, rejects with one line, and works in bounded time."""

from __future__ import annotations

import json
import math
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from fuzz import fuzz_count, spoiled_documents
from hypothesis import given
from hypothesis import strategies as st

import soft_dynamics as sd
from soft_dynamics import strict_yaml
from soft_dynamics.description.robot_files import robot_file, robot_names, share_folder
from soft_dynamics.errors import shown
from soft_dynamics.strict_yaml import YamlError, dump, load, parse
from soft_estimation.importing import MappingError, load_mapping
from soft_hw_bridge.pressure.register_map import load_register_map

SHIPPED = sorted(
    path for folder in ('robots', 'config') for path in (share_folder() / folder).rglob('*.yaml')
)
LAUGHS = 'a: &a [x, x, x, x, x, x, x, x, x]\n' + ''.join(
    f'{new}: &{new} [{", ".join([f"*{old}"] * 9)}]\n' for old, new in zip('abcdefgh', 'bcdefghi', strict=True)
)


@pytest.mark.parametrize(
    ('text', 'value'),
    [
        # section 10.3.2 of YAML 1.2.2; with a comment where YAML 1.1 differs
        ('', None),
        ('~', None),
        ('null', None),
        ('nULL', 'nULL'),
        ('true', True),
        ('False', False),
        ('yes', 'yes'),  # true
        ('on', 'on'),  # true
        ('0', 0),
        ('-19', -19),
        ('+12', 12),
        ('010', 10),  # 8
        ('08', 8),  # a text
        ('0o10', 8),  # a text
        ('0x3A', 58),
        ('-0x3A', '-0x3A'),  # -58
        ('0b11', '0b11'),  # 3
        ('1_000', '1_000'),  # 1000
        ('1:30', '1:30'),  # 90
        ('1:30.5', '1:30.5'),  # 90.5
        ('2026-05-03', '2026-05-03'),  # a date
        ('=', '='),
        ('0.', 0.0),
        ('-0.0', -0.0),
        ('.5', 0.5),
        ('12e03', 12e3),  # a text
        ('-2E+05', -2e5),
        ('1e3', 1e3),  # a text
        ('.inf', math.inf),
        ('-.Inf', -math.inf),
        ('+12.3', 12.3),
        ('inf', 'inf'),
        ('"1e3"', '1e3'),
        ("'true'", 'true'),
        ('|\n  1\n  2', '1\n2'),
    ],
)
def test_plain_texts_are_what_yaml_1_2_says(text: str, value: object) -> None:
    found = parse(text)
    assert (type(found), found) == (type(value), value)
    assert parse(f'key:\n- {text}') == {'key': [value]}


def test_nan_is_a_number() -> None:
    assert math.isnan(parse('.nan'))


@pytest.mark.parametrize(
    ('text', 'line'),
    [
        ('{a: 1, a: 2}', "line 1: duplicate key 'a', first used in line 1"),
        (
            'pressure_max: 90\n"pressure_max": 900e3',
            "line 2: duplicate key 'pressure_max', first used in line 1",
        ),
        ('a: {b: 1}\nc: {b: 1, d: 2, b: 1}', "line 2: duplicate key 'b', first used in line 2"),
        ('1: a\n"1": b', "line 2: duplicate key '1', first used in line 1"),
        (LAUGHS, 'line 1: anchors and aliases (&, *) are not supported'),
        ('a: *b', 'line 1: anchors and aliases (&, *) are not supported'),
        ('&a a: 1', 'line 1: anchors and aliases (&, *) are not supported'),
        ('a: {<<: {b: 1}}', 'line 1: merge keys (<<) are not supported'),
        ('a: !!str 1', "line 1: tags are not supported, found 'tag:yaml.org,2002:str'"),
        ('a: ! 1', "line 1: tags are not supported, found '!'"),
        ('!!python/object/apply:os.system [id]', 'line 1: tags are not supported, found'),
        ('[a, b]: 1', 'line 1: expected a string as key, found a list or mapping'),
        ('? {a: 1}\n: 2', 'line 1: expected a string as key, found a list or mapping'),
        ('a: 1\n---\nb: 2', 'line 2: expected one document without directives (%)'),
        ('%YAML 1.1\n---\na: 1', 'line 1: expected one document without directives (%)'),
        ('%TAG ! tag:x,2000:\n---\na: 1', 'line 1: expected one document without directives (%)'),
        ('a: "x\\0y"', "line 1: control characters are not allowed, found '\\x00'"),
        ('a: "\\e[31m"', "line 1: control characters are not allowed, found '\\x1b'"),
        ('a: "\\u202etxt"', "line 1: control characters are not allowed, found '\\u202e'"),
        ('a: x\0y', 'not YAML: control characters are not allowed'),
        ('a: \ud800', 'not YAML: unpaired surrogate'),
        ('a: [1, 2', 'line 2: not YAML: did not find expected'),
        ('a: "\\ud800"', 'line 1: not YAML: '),
        ('[' * 40, 'line 1: expected at most 32 nested lists and mappings, found more'),
        ('- ' * 60_000 + 'a', 'expected at most 65536 bytes, found more'),
        ('- ' * 30_000 + 'a', 'line 1: expected at most 32 nested lists and mappings, found more'),
        ('? ' * 30_000 + 'a', 'line 1: expected a string as key, found a list or mapping'),
        ('{a: ' * 10_000, 'line 1: expected at most 32 nested lists and mappings, found more'),
        (f'[{"a," * 20_001}]', 'line 1: expected at most 20000 entries, found more'),
        (f'[{",a" * 20_001}]', 'line 1: not YAML: '),
        ('9' * 4301, 'line 1: expected a number of at most 100 characters, found more'),
        ('0.' + '9' * 60_000, 'line 1: expected a number of at most 100 characters, found more'),
        ('a' * 65_537, 'expected at most 65536 bytes, found more'),
        (f'{"a" * 60_000}: 1', 'line 1: not YAML: '),
    ],
    ids=range(34),
)
def test_what_is_not_read_is_refused_in_one_line(text: str, line: str) -> None:
    with pytest.raises(YamlError) as caught:
        parse(text)
    assert str(caught.value).startswith(line)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 200


def test_a_file_is_asked_what_it_is_before_it_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / 'pipe')
    (tmp_path / 'large').write_bytes(b'a' * 65_537)
    (tmp_path / 'latin').write_bytes(b'a: \xe9')
    (tmp_path / 'marked').write_bytes(b'\xef\xbb\xbfa: \xc3\xa9')
    plain = 'expected a plain file, found a pipe or device'
    for name, line in (
        ('pipe', plain),
        ('/dev/zero', plain),
        ('large', 'expected at most 65536 bytes, found more'),
        ('latin', 'not a text file in UTF-8'),
    ):
        with pytest.raises(YamlError, match=re.escape(line)):
            load(tmp_path / name)
    assert load(tmp_path / 'marked') == {'a': 'é'}
    with pytest.raises(FileNotFoundError):
        load(tmp_path / 'none')
    with pytest.raises(IsADirectoryError):
        load(tmp_path)
    assert len(load(tmp_path / 'large', size=10**6)) == 65_537


@pytest.mark.parametrize('path', SHIPPED, ids=lambda path: path.name)
def test_shipped_files_say_what_a_reader_of_yaml_1_1_finds_too(path: Path) -> None:
    """So other programs read the same values, except for 1e3."""

    def numbers(data: Any) -> Any:
        if isinstance(data, dict):
            return {key: numbers(value) for key, value in data.items()}
        if isinstance(data, list):
            return [numbers(value) for value in data]
        return float(data) if isinstance(data, str) and re.fullmatch(r'[-\d.]+e[-+\d]+', data) else data

    assert load(path) == numbers(yaml.safe_load(path.read_text(encoding='utf-8')))


def test_both_parsers_of_pyyaml_are_read_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """The C loader is not available everywhere."""
    fast = [load(path) for path in SHIPPED]
    monkeypatch.setattr(strict_yaml, '_PARSER', yaml.SafeLoader)
    assert [load(path) for path in SHIPPED] == fast
    for text in ('{a: 1, a: 2}', LAUGHS, 'a: !!str 1', '[' * 40, '- ' * 9000, 'a: x\0y', '%YAML 1.1\n---\n1'):
        with pytest.raises(YamlError) as caught:
            parse(text)
        assert str(caught.value).isprintable()


CONTENT = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**60), 10**60)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=('C', 'Z')))
    | st.sampled_from(['1e3', '0o10', '010', 'yes', '1:30', '~', '', '.5', '0x1', ' a ', 'a: b', '#', '- a']),
    lambda inner: st.lists(inner) | st.dictionaries(st.text('ab1~<', max_size=3), inner),
    max_leaves=20,
)


@given(CONTENT)
def test_what_is_written_is_read_here_and_by_a_reader_of_yaml_1_1(content: Any) -> None:
    text = dump(content)
    if '<<' not in str(content):
        assert parse(text) == content
        assert yaml.safe_load(text) == json.loads(json.dumps(content)) or 'inf' in text


def test_a_value_in_a_message_is_short_and_printable_whatever_it_is() -> None:
    deep: list[Any] = []
    for _ in range(10_000):
        deep = [deep]
    shared: list[Any] = ['x']
    for _ in range(40):
        shared = [shared] * 9
    for value in (deep, shared, 10**5000, 'a' * 10**6, '\x1b[31m', {'a': deep}, np.zeros(5), b'\0' * 10**6):
        assert shown(value).isprintable()
        assert len(shown(value)) <= 60


# ---- the schemas behind it -----------------------------------------------------------------------------------------

ARC = {'name': 'a', 'type': 'arc', 'length': 0.2, 'mass': 0.1, 'radius': 0.1}
GOOD = {'format': 1, 'name': 'x', 'segments': [ARC]}
BAD_NAMES = [
    '../escaped',
    '/etc/x',
    '<script>',
    'a\0b',
    'a\nb',
    '\x1b[31m',
    'ä',
    'a b',
    '',
    '.',
    'a' * 65,
    'a' * 10**5,
]


@pytest.mark.parametrize('name', BAD_NAMES)
@pytest.mark.parametrize('where', ['robot', 'segment', 'chamber', 'sensor', 'frame'])
def test_names_are_letters_digits_and_two_signs(name: str, where: str) -> None:
    data: dict[str, Any] = {
        **GOOD,
        'segments': [{**ARC, 'name': name if where == 'segment' else 'a'}],
        'actuation': {
            'pressure_max': 1.0,
            'chambers': [{'name': name if where == 'chamber' else 'c', 'segment': 'all', 'gain': [1, 1]}],
        },
        'sensors': [
            {
                'name': name if where == 'sensor' else 's',
                'kind': 'ft',
                'frame': name if where == 'frame' else 'base',
            }
        ],
    }
    data['name'] = name if where == 'robot' else 'x'
    with pytest.raises(sd.RobotFileError) as caught:
        sd.Robot.from_dict(data)
    assert len(caught.value.problems) == 1
    signs = (
        'digits and single _, with a letter first (it is part of a topic)'
        if where == 'sensor'
        else 'digits, _ or -'
    )
    assert f'expected a name of 1 to 64 letters, {signs}, found ' in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    'data',
    [
        {**GOOD, 'gravity': [10**5000] * 3},
        {**GOOD, 'gravity': [1e400, 0, 0]},
        {**GOOD, 'tip_load': 10**400},
        {**GOOD, 'segments': [ARC] * 10_000, 'segment_defaults': {f'k{k}': k for k in range(10_000)}},
        {**GOOD, 'segments': [{**ARC, 'material': {'stiffness': [1.0] * 10**6}}]},
        {**GOOD, **{f'k{k}': k for k in range(10_000)}},
        {**GOOD, 'x' * 10**6: 1},
        {**GOOD, ('\x1b', 1): 1},
        {**GOOD, 'segments': 10**5000},
        {**GOOD, 'segments': 'a' * 10**6},
        {**GOOD, 'segments': {'a': 1}},
        {**GOOD, 'segment_defaults': [['a' * 100] * 100] * 100},
    ],
    ids=range(12),
)
def test_big_descriptions_are_refused_before_they_are_big_work(data: dict[Any, Any]) -> None:
    with pytest.raises(sd.RobotFileError) as caught:
        sd.Robot.from_dict(data)
    assert all(line.isprintable() and len(line) < 400 for line in str(caught.value).splitlines())
    assert len(str(caught.value).splitlines()) <= 51


@pytest.mark.parametrize('key', ['stride', 'group'])
def test_registers_are_counted_before_they_are_listed(tmp_path: Path, key: str) -> None:
    path = tmp_path / 'map.yaml'
    for number in ('9' * 50, '9' * 5000, '1e300', '0'):
        path.write_text(
            f'{{format: 1, channels: 2, scale: 1, measured: {{address: 0}}, setpoint: {{address: 0, {key}: {number}}}, '
            f'start: [{{type: write, address: 0, value: 1, count: {number}, stride: {number}}}]}}'
        )
        with pytest.raises(sd.RobotFileError) as caught:
            load_register_map(path)
        assert all(line.isprintable() and len(line) < 200 for line in str(caught.value).splitlines())


# ---- fuzz ----------------------------------------------------------------------------------------------------------

LOADERS: dict[str, Any] = {
    'robot': (sd.load, 'robots', sd.RobotFileError),
    'register_map': (load_register_map, 'config/pressure', sd.RobotFileError),
    'mapping': (load_mapping, 'config/import', MappingError),
}


@pytest.mark.parametrize('loader', LOADERS)
def test_spoiled_files_are_read_or_refused_in_lines(tmp_path: Path, loader: str) -> None:
    function, folder, error = LOADERS[loader]
    shipped = [path.read_bytes() for path in sorted((share_folder() / folder).glob('*.yaml'))]
    path, refused = tmp_path / 'spoiled.yaml', 0
    count = fuzz_count(2000, 100_000)
    for document in spoiled_documents(shipped, count):
        path.write_bytes(document)
        try:
            function(path)
        except error as problem:
            refused += 1
            lines = str(problem).splitlines()
            assert len(lines) <= 51
            assert all(line.isprintable() and len(line) < 5000 for line in lines), document
    assert 0.3 * count < refused < count


def test_files_that_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / 'pipe.yaml')
    (tmp_path / 'zero.yaml').symlink_to('/dev/zero')
    (tmp_path / 'folder.yaml').mkdir()
    for function, _, _ in LOADERS.values():
        for name in ('pipe.yaml', 'zero.yaml', 'folder.yaml', 'none.yaml'):
            with pytest.raises(FileNotFoundError, match=name):
                function(tmp_path / name)


def test_shipped_robots_are_written_and_read_back(tmp_path: Path) -> None:
    from soft_dynamics.description.writer import write_description

    for name in robot_names():
        write_description(tmp_path / f'{name}.yaml', sd.load(name).description, robot_file(name).name)
        assert sd.load(tmp_path / f'{name}.yaml').description == sd.load(name).description
