"""Malicious launch files, parameter files and values: one line of error, and no process is started."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from fuzz import NASTY, fuzz_count, spoiled_documents
from launch_workspace import FILES, Workspace, node

from soft_dynamics import strict_yaml
from tools.launcher.errors import LaunchError
from tools.launcher.launch_file import read
from tools.launcher.parameters import typed
from tools.launcher.scope import Scope


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        ('/**: {ros__parameters: {pressure_max: 90, pressure_max: 900}}', 'line 1: duplicate key'),
        ('/**: {ros__parameters: &a {x: *a}}', 'line 1: anchors and aliases'),
        ('/**: ' + '[' * 5000, 'line 1: expected at most 32'),
        ('x' * 70_000, 'expected at most 65536 bytes'),
    ],
)
def test_a_parameter_file_is_read_before_a_node_is_started_with_it(
    workspace: Workspace, content: str, message: str
) -> None:
    parameters = workspace.folder / 'params.yaml'
    parameters.write_text(content)
    file = workspace.write(node(content=f'<param from="{parameters}"/>'))
    result = workspace.run(file)
    assert result.stderr.startswith(f"launch: {file}:2: the parameter file '{parameters}': {message}")
    assert (result.returncode, result.stdout, result.stderr.count('\n')) == (2, '', 1)


@pytest.mark.parametrize(
    ('lines', 'message'),
    [
        (['<group>' * 1000 + '</group>' * 1000], 'more than 32 nested tags'),
        (['<!-- ' + 'x' * 70_000 + ' -->'], 'expected at most 65536 bytes'),
        ([f'<let name="x" value="{"$(var " * 5000}"/>'], 'more than 32 nested substitutions'),
        ([f'<let name="x" value="{"$(" * 5000}"/>'], 'a name must follow $('),
        ([f'<arg name="x" default="{"&amp;" * 9}"/>', f'<{"x" * 9000}/>'], 'unsupported tag'),
    ],
)
def test_a_deep_or_large_launch_file_is_one_line(
    workspace: Workspace, lines: list[str], message: str
) -> None:
    result = workspace.run(workspace.write(*lines))
    assert message in result.stderr
    assert (result.returncode, result.stderr.count('\n')) == (2, 1)


def test_launch_files_that_are_no_files(workspace: Workspace) -> None:
    os.mkfifo(workspace.folder / 'pipe.launch.xml')
    result = workspace.run(str(workspace.folder / 'pipe.launch.xml'))
    assert (result.returncode, result.stderr.count('\n')) == (2, 1)
    with pytest.raises(LaunchError, match='expected a plain file, found a pipe or device'):
        read(workspace.folder / 'pipe.launch.xml')


def test_a_killed_launcher_leaves_no_file(workspace: Workspace) -> None:
    file = workspace.write(
        node(content='<param name="text" value="1e3"/><param name="other" value="\'1e3\'"/>')
    )
    with workspace.start(file) as running:
        (report,) = running.reports(1).values()
        os.kill(running.process.pid, signal.SIGKILL)
        running.process.wait()
    assert [strict_yaml.parse(text) for text in report['parameters']] == [
        {'/**': {'ros__parameters': {'text': 1000.0}}},
        {'/**': {'ros__parameters': {'other': '1e3'}}},
    ]
    assert list(workspace.temporary.iterdir()) == []


def test_values_are_typed_or_refused_in_one_line() -> None:
    rng, count = random.Random(1), fuzz_count(2000, 100_000)
    short = [word for word in NASTY if len(word) < 1000]
    pieces = [*short, '$(var v)', '$(var', ')', '[', ']', ', ', ' ', '1', '1.5', "'", '\\']
    for _ in range(count):
        scope = Scope((Path('test.launch.xml'),), {'v': rng.choice(short)}, {})
        text = ''.join(rng.choices(pieces, k=rng.randint(1, 4)))
        kind = rng.choice(['yaml', 'str', 'int', 'float', 'bool'])
        assert '\n' not in complaint(
            lambda text=text, kind=kind, scope=scope: typed(text, kind, scope.expand)
        )


def test_spoiled_launch_files_are_read_or_refused_in_one_line(tmp_path: Path) -> None:
    valid = [(FILES / name).read_bytes() for name in ('full.launch.xml', 'included.launch.xml')]
    file = tmp_path / 'test.launch.xml'
    for document in spoiled_documents(valid, fuzz_count(500, 20_000)):
        file.write_bytes(document)
        assert '\n' not in complaint(lambda: read(file))


def complaint(call: Callable[[], object]) -> str:
    """Return the text of a LaunchError, or nothing; any other exception passes through."""
    try:
        call()
    except LaunchError as error:
        return str(error)
    return ''
