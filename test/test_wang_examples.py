"""Wang's experiments run as commands, are short and state their purpose; short runs reach their figures."""

from __future__ import annotations

import ast
import re
from importlib import import_module

import pytest
from source_tree import ROOT, imports

FOLDER = ROOT / 'examples' / 'wang'
COMMANDS = ['sinusoids', 'fast_swing', 'point_to_point', 'star', 'search_task_gains']
HELPERS = ['bench_arm', 'pictures', 'references']
MAX_LINES = 100
NUMBER = r'(\d+\.?\d*)'


def run(name: str, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    import_module(f'examples.wang.{name}').main(arguments)
    return capsys.readouterr().out


def figures(pattern: str, text: str) -> list[float]:
    found = [float(number) for number in re.findall(pattern.replace('#', NUMBER), text)]
    assert found, text
    return found


def test_every_file_is_known() -> None:
    assert sorted(file.stem for file in FOLDER.glob('*.py')) == sorted(COMMANDS + HELPERS)


@pytest.mark.parametrize('name', COMMANDS + HELPERS)
def test_is_short_without_ros_and_states_its_problem(name: str) -> None:
    file = FOLDER / f'{name}.py'
    text = file.read_text(encoding='utf-8')
    assert len(text.splitlines()) < MAX_LINES
    assert not [str(found) for found in imports(file.relative_to(ROOT)) if found.top == 'rclpy']
    words = ('Problem:', 'Symbols:', 'Source:') if name in COMMANDS else ()
    assert all(word in (ast.get_docstring(ast.parse(text)) or '') for word in words)


def test_sinusoids(capsys: pytest.CaptureFixture[str]) -> None:
    said = run('sinusoids', ['--seconds', '3', '--laws', 'configuration'], capsys)
    assert '50 Hz' in said
    worst = figures('worst angle # rad', said)
    assert len(worst) == 4
    assert max(worst) <= 0.02


def test_the_predictive_law_swings_later_by_less(capsys: pytest.CaptureFixture[str]) -> None:
    said = run('fast_swing', ['--seconds', '2'], capsys)
    assert '7 m/s' in said
    plain, _, predictive = figures('RMS # rad', said)
    assert predictive < 0.5 * plain


def test_a_target_with_a_load_is_reached(capsys: pytest.CaptureFixture[str]) -> None:
    options = ['--targets', '1', '--loads', '0.5', '--seconds', '6', '--laws', 'predictive']
    said = run('point_to_point', options, capsys)
    assert figures('500 g: # mm', said)[0] <= 5.0
    assert figures(r'500 g: \S+ mm, # deg', said)[0] <= 2.0


def test_the_predictive_law_halves_the_error_of_the_star(capsys: pytest.CaptureFixture[str]) -> None:
    said = run('star', ['--poses', '50', '--loads', '0.5'], capsys)
    task, predictive = figures('RMS # mm', said)
    assert predictive < 0.5 * task
