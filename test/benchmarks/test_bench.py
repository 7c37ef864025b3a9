"""The benchmarks compare equal quantities and print the promised tables. These tests judge no times."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import calls, rollouts, run
from benchmarks.measure import Case, take_turns
from benchmarks.table import HEADER, Figure, Row, Target


def test_our_chain_is_the_peers_chain() -> None:
    differences = calls.agreement()
    assert differences.pop('mj_inverse') < 1e-7  # its point masses have an inertia of 1e-9 kg m^2
    assert max(differences.values()) < 1e-10


def test_rollouts_end_where_the_peers_end() -> None:
    robot, state = rollouts.start()
    assert np.allclose(
        np.hstack(rollouts.ours(robot, state.q, state.qd)), rollouts.theirs(state, 1)(), atol=1e-5
    )


def test_table_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / 'bench.json'
    assert run.main(['--quick', '--only', 'inverse', '--json', str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = json.loads(path.read_text(encoding='utf-8'))['rows']
    assert [column.strip() for column in lines[0].split('  ') if column] == list(HEADER)
    assert [row['name'] for row in rows] == ['inverse.call'] + ['inverse.loop'] * 3
    for row, line in zip(rows, lines[2:], strict=False):
        assert line.startswith(row['what'])
        assert row['ours']['value'] > 0.0
        assert row['ratio']['value'] > 0.0
        assert ('met' in line or 'missed' in line) == (row['target'] is not None)


@pytest.mark.parametrize(
    ('value', 'target', 'result'),
    [
        (0.3, Target(0.4), 'met'),
        (0.6, Target(0.4), 'missed, 1.50 x limit'),
        (2.0, Target(1.8, at_least=True), 'met'),
        (1.2, Target(1.8, at_least=True), 'missed, 1.50 x limit'),
    ],
)
def test_verdict(value: float, target: Target, result: str) -> None:
    assert Row('', '', Figure(9.0, 's'), ratio=Figure(value, 'x'), target=target).cells[-1] == result


def test_samples_are_seconds_per_unit_of_a_case() -> None:
    now = [0.0]

    def work(seconds: float) -> None:
        now[0] += seconds

    cases = [Case(work, (2.0,), units=4), Case(work, (3.0,))]
    assert np.allclose(take_turns(cases, 3, lambda: now[0]), [[0.5] * 3, [3.0] * 3])


def test_a_slow_first_call_does_not_shorten_the_samples() -> None:
    now, calls_per_reading = [0.0], []

    def clock() -> float:
        calls_per_reading.append(0)
        return now[0]

    def work() -> None:
        now[0] += 1.0 if now[0] == 0.0 else 1e-4
        calls_per_reading[-1] += 1

    take_turns([Case(work)], 1, clock)
    assert calls_per_reading[-2] == 64  # 6.4 ms; between the last two readings of the clock


@pytest.mark.parametrize(
    ('arguments', 'reason'),
    [
        (['--only', 'nothing'], 'matches none of inverse.call'),
        (['--only', '('], 'not a regular expression'),
        (['--json', 'no/such/folder/x.json'], 'no folder'),
        (['--quick', '--write-docs'], 'whole run'),
    ],
)
def test_wrong_options_are_refused(
    arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match='2'):
        run.main(arguments)
    assert reason in capsys.readouterr().err
