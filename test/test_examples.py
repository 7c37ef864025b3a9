"""The examples run, are short, state their purpose, and print what the pages promise."""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from source_tree import ROOT, imports

FILES = sorted((ROOT / 'examples').glob('*.py'))
MAX_LINES = 100
UNIT = re.compile(r'\d.*(\brad\b|\bm\b|\bmm\b|\bN\b|\bHz\b|\bkg\b|\bs\b|%|rad/s\^2|real time)')

# Options that make an example quick, and its expected output.
QUICK = {
    'bending_actuator_step': (['--seconds', '1.5'], 'rings at 5.9'),
    'compare_placements': (['--seconds', '0.02'], 'floating_actuator  distributed    0.0%    7.83  10.26'),
    'fabric_arm_falls': (['--seconds', '2'], 'F [N]'),
    'fiber_links': (['--seconds', '0.3'], '5 links: largest error'),
    'honeycomb_free_swing': (['--seconds', '3'], 'swings at 1.1'),
    'inverse_and_forward': (['--states', '20'], '20 states there and back'),
    'mehl_base_wrench': (['--seconds', '0.2'], 'robot file says 0.1806 kg'),
    'simulate_pneumatic_arm': (['--seconds', '1'], 'x real time'),
}

REAL_DATA = 'asu_arm', 'asu_estimate', 'asl_trunk', 'silicone_beam'


def load(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f'example_{file.stem}', file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_is_run() -> None:
    assert [file.stem for file in FILES] == sorted(QUICK)


@pytest.mark.parametrize('name', QUICK)
def test_runs_and_ends_with_a_quantity(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    options, expected = QUICK[name]
    load(ROOT / 'examples' / f'{name}.py').main(options)
    printed = capsys.readouterr().out
    assert expected in printed
    assert UNIT.search(printed.splitlines()[-1]), printed.splitlines()[-1]


@pytest.mark.parametrize(
    ('name', 'option', 'value'),
    [
        *(
            (name, '--seconds', value)
            for name in QUICK
            if name != 'inverse_and_forward'
            for value in ('0', '-1', 'nan')
        ),
        ('simulate_pneumatic_arm', '--step', '0'),
        ('inverse_and_forward', '--states', '0'),
        ('inverse_and_forward', '--robot', 'nobody'),
        ('fiber_links', '--figure', 'nowhere/links.png'),
        ('wang/sinusoids', '--seconds', '2'),
        ('wang/sinusoids', '--laws', 'other'),
        ('wang/fast_swing', '--seconds', '0'),
        ('wang/point_to_point', '--seconds', '0'),
        ('wang/point_to_point', '--targets', '0'),
        ('wang/star', '--poses', '1'),
        ('wang/star', '--loads', '-1'),
        ('wang/star', '--figure', 'nowhere/star.png'),
        ('wang/search_task_gains', '--most', '0'),
        ('real_data/asu_arm', '--check', 'nowhere.yaml'),
        ('real_data/asu_arm', '--write', 'nowhere/arm.yaml'),
        ('real_data/asu_estimate', '--plot', 'nowhere/arm.png'),
        *((f'real_data/{name}', '--data', 'nowhere') for name in REAL_DATA),
    ],
)
def test_a_mistake_is_one_line_that_names_it(
    name: str, option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        load(ROOT / 'examples' / f'{name}.py').main([option, value])
    assert ended.value.code == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert 'error: ' in error
    assert option in error
    assert value.partition('/')[0] in error


@pytest.mark.parametrize('file', FILES, ids=lambda file: file.stem)
def test_is_short_without_ros_and_states_its_problem(file: Path) -> None:
    text = file.read_text(encoding='utf-8')
    assert len(text.splitlines()) < MAX_LINES
    assert not [str(found) for found in imports(file.relative_to(ROOT)) if found.top == 'rclpy']
    intro = ast.get_docstring(ast.parse(text)) or ''
    assert all(word in intro for word in ('Problem:', 'Symbols:', 'Source:'))


@pytest.mark.slow
@pytest.mark.parametrize(
    ('name', 'page'), [('compare_placements', 'placements'), ('fabric_arm_falls', 'schultz')]
)
def test_prints_the_table_of_its_page(name: str, page: str, capsys: pytest.CaptureFixture[str]) -> None:
    load(ROOT / 'examples' / f'{name}.py').main([])
    text = (ROOT / 'docs' / 'theory' / f'{page}.md').read_text(encoding='utf-8')
    assert capsys.readouterr().out in text
