"""docs/robot_file.md agrees with the code: its tables, its example and its errors."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import soft_dynamics as sd
from tools import robot_file_page

PAGE = robot_file_page.PAGE.read_text(encoding='utf-8')


def blocks(language: str) -> list[str]:
    return re.findall(rf'```{language}\n(.*?)```', PAGE, re.DOTALL)


def test_tables_are_those_of_the_classes() -> None:
    assert robot_file_page.page() == PAGE, 'run python -m tools.robot_file_page'


def test_a_key_without_a_meaning_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(robot_file_page.MEANING, 'Arc.extensible')
    with pytest.raises(KeyError, match=r'Arc\.extensible: say what it means'):
        robot_file_page.tables()


def test_the_example_is_a_robot(tmp_path: Path) -> None:
    file = tmp_path / 'lab_arm.yaml'
    file.write_text(blocks('yaml')[0], encoding='utf-8')
    robot = sd.load(file)
    assert str(robot.coordinate_names) in PAGE
    assert str(robot.frame_names) in PAGE
    assert f'{robot.pose(np.zeros(robot.nq), "tip")[2, 3]:g} m' in PAGE
    assert np.all(np.isfinite(robot.forward_dynamics(*np.zeros((3, robot.nq)))))


def test_the_mistakes_are_reported_as_shown(tmp_path: Path) -> None:
    file = tmp_path / 'bad.yaml'
    file.write_text(blocks('yaml')[1], encoding='utf-8')
    with pytest.raises(sd.RobotFileError) as caught:
        sd.load(file)
    assert f'{caught.value}\n' == blocks('text')[0]
