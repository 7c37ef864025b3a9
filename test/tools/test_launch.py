"""tools/launch.py starts the same nodes from a launch file as `ros2 launch`, and rejects unsupported elements."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest
from launch_workspace import FILES, ROOT, Workspace, node, reports

from soft_dynamics import strict_yaml
from tools.launcher.errors import LaunchError
from tools.launcher.node import Node
from tools.launcher.parameters import typed
from tools.launcher.plan import plan
from tools.launcher.scope import Scope


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def read(files: list[str]) -> list[Any]:
    """Content of parameter files: 1e-3 and 0.001 are equal."""
    return [strict_yaml.parse(text) for text in files]


@pytest.mark.parametrize('recorded', json.loads((FILES / 'full.recorded.json').read_text()), ids=['0', '1'])
def test_nodes_are_started_as_ros2_launch_starts_them(workspace: Workspace, recorded: dict[str, Any]) -> None:
    """The recording is the result of ros2 launch for the same file (launch 3.4.3, launch_ros 0.26.6)."""
    with workspace.start('fake_robot', 'full.launch.xml', *recorded['arguments']) as running:
        started = running.reports(len(recorded['nodes']))
        assert running.stop() == 0
    prefix = str(workspace.prefix)
    temporary = re.compile(r'/proc/\d+/fd/\d+')
    for report in started.values():
        report['argv'] = [
            temporary.sub('TEMPORARY', word).replace(prefix, 'PREFIX') for word in report['argv']
        ]
        report['parameters'] = read([text.replace(prefix, 'PREFIX') for text in report['parameters']])
        report['environment'].pop('ROS_AUTOMATIC_DISCOVERY_RANGE')
        del report['pid']
    for label, report in recorded['nodes'].items():
        own = {key: value for key, value in started[label]['environment'].items() if key.startswith('FAKE_')}
        expected = {**report, 'parameters': read(report['parameters'])}
        assert {**started[label], 'environment': own} == expected
    assert set(started) == set(recorded['nodes'])


@pytest.mark.parametrize(
    ('value', 'variable', 'type_name', 'expected'),
    [
        # Types as in launch_ros 0.26.6.
        ('1', '', 'yaml', 1),
        ('1.', '', 'yaml', 1.0),
        ('0x1F', '', 'yaml', 31),
        # The suite reads all YAML as YAML 1.2. launch_ros reads 1.1: it passes '1e3' on as a string, which rcl
        # reads as a number too, and takes yes for true, 010 for eight and 1:30 for ninety.
        ('1e3', '', 'yaml', 1000.0),
        ('yes', '', 'yaml', 'yes'),
        ('010', '', 'yaml', 10),
        ('1:30', '', 'yaml', '1:30'),
        ('2020-01-01', '', 'yaml', '2020-01-01'),
        ("'1'", '', 'yaml', '1'),
        ('', '', 'yaml', ''),
        ('192.168.1.5', '', 'yaml', '192.168.1.5'),
        ('@x', '', 'yaml', '@x'),
        ('[1, 2]', '', 'yaml', [1, 2]),
        ('$(var v)', '5', 'yaml', 5),
        ("'$(var v)'", '5', 'yaml', 5),
        ('$(var v)', "'5'", 'yaml', '5'),
        ('x$(var v)', '5', 'yaml', 'x5'),
        ('[$(var v), 1]', '5', 'yaml', [5, 1]),
        ('$(var v)', '[1, 2]', 'yaml', [1, 2]),
        ('$(var v)', '5', 'str', '5'),
        ('$(var v)', '5', 'float', 5.0),
        ('$(var v)', '5', 'int', 5),
        ('$(var v)', '1', 'bool', True),
    ],
)
def test_parameter_values_are_typed_as_launch_ros_types_them(
    value: str, variable: str, type_name: str, expected: object
) -> None:
    scope = Scope((Path('test.launch.xml'),), {'v': variable}, {})
    result = typed(value, type_name, scope.expand)
    assert (type(result), result) == (type(expected), expected)


@pytest.mark.parametrize(
    ('value', 'type_name'),
    [
        ('null', 'yaml'),
        ('{a: 1}', 'yaml'),
        ('[1, 2.0]', 'yaml'),
        ('1.5', 'int'),
        ('x', 'bool'),
    ],
)
def test_values_that_are_no_parameters_are_refused(value: str, type_name: str) -> None:
    scope = Scope((Path('test.launch.xml'),), {}, {})
    with pytest.raises(LaunchError, match='expected'):
        typed(value, type_name, scope.expand)


def test_a_node_gets_its_words_as_written(workspace: Workspace) -> None:
    file = workspace.write(
        '<let name="two" value="a b"/>', node("--x '$HOME * c' $(var two) pre$(var two)post \\$(var two)")
    )
    assert (
        "talker --x '$HOME * c' 'a b' 'prea bpost' '$(var' 'two)' --ros-args"
        in workspace.run('-p', file).stdout
    )


def test_discovery_stays_on_this_machine_unless_the_user_says_otherwise(workspace: Workspace) -> None:
    file = workspace.write(node('--exit 0'))

    def discovery_range() -> str:
        return str(
            reports(workspace.run(file).stdout)['talker-1']['environment']['ROS_AUTOMATIC_DISCOVERY_RANGE']
        )

    assert discovery_range() == 'LOCALHOST'
    workspace.environment['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'SUBNET'
    assert discovery_range() == 'SUBNET'


def test_print_shows_a_command_that_can_be_pasted(workspace: Workspace) -> None:
    file = workspace.write(
        node('', 'name="n"', '<param name="gains" value="[1.0, 2.0]"/><remap from="a" to="b"/>')
    )
    command = (
        f"{workspace.prefix}/lib/fake_robot/talker --ros-args -r __node:=n -p 'gains:=[1.0, 2.0]' -r a:=b"
    )
    assert workspace.run('--print', file).stdout == f'[talker-1] {command}\n'


def test_arguments_are_shown_with_description_and_default(workspace: Workspace) -> None:
    workspace.write('<arg name="inner" default="1"/>', '<arg name="fixed"/>', name='inner.launch.xml')
    file = workspace.write(
        '<arg name="robot" description="Robot to load"/>',
        '<group if="$(var robot)"><arg name="rate" default="$(env RATE 5)"/></group>',
        '<include file="$(dirname)/inner.launch.xml"><arg name="fixed" value="2"/></include>',
    )
    shown = workspace.run(file, '--show-args')
    assert shown.stdout.splitlines() == [
        "Arguments (pass arguments as '<name>:=<value>'):",
        *['', "    'robot':", '        Robot to load'],
        *['', "    'rate':*", '        no description given', "        (default: '$(env RATE 5)')"],
        *['', "    'inner':", '        no description given', "        (default: '1')"],
        *['', '* argument(s) which are only used if specific conditions occur'],
    ]


@pytest.mark.parametrize(
    'file', sorted((ROOT / 'launch').glob('*.launch.xml')), ids=lambda file: str(file.name)
)
def test_launch_files_of_the_suite(workspace: Workspace, file: Path) -> None:
    """Every executable and every parameter file exists, and only the robot is a required argument."""
    install_suite(workspace)
    result = workspace.run('soft_robot_suite', file.name, '--print', 'robot:=honeycomb_arm')
    assert (result.returncode, result.stderr) == (0, '')
    parameter_files = re.findall(r'--params-file (\S+)', result.stdout)
    assert parameter_files
    for parameter_file in parameter_files:
        content = strict_yaml.load(Path(parameter_file))
        assert all('ros__parameters' in section for section in content.values())


def install_suite(workspace: Workspace) -> None:
    executables: list[str] = []
    for config in ROOT.glob('*/setup.cfg'):
        parser = ConfigParser()
        parser.read(config)
        lines = parser.get('options.entry_points', 'console_scripts', fallback='').split('\n')
        executables += [line.partition('=')[0].strip() for line in lines if line.strip()]
    share = workspace.package('soft_robot_suite', executables)
    for name in ('launch', 'config'):
        shutil.copytree(ROOT / name, share / name)


@pytest.fixture
def planned(workspace: Workspace) -> Callable[..., dict[str | None, Node]]:
    """Return the nodes of a launch file of the suite, by name."""
    install_suite(workspace)

    def nodes(file: str, **arguments: str) -> dict[str | None, Node]:
        found = plan(ROOT / 'launch' / f'{file}.launch.xml', arguments, workspace.environment)
        return {node.name: node for node in found}

    return nodes


def inline(node: Node) -> dict[str, Any]:
    """Return the parameters that the launch file itself sets."""
    return {key: value for each in node.parameters if isinstance(each, dict) for key, value in each.items()}


def test_on_the_rig_the_robot_has_no_default(planned: Any) -> None:
    with pytest.raises(LaunchError, match=r"rig.launch.xml:\d+: the argument 'robot' needs a value"):
        planned('rig')


def test_what_cannot_start_is_not_started_for_ever(planned: Any) -> None:
    nodes = planned(
        'simulation', vive='steamvr', fiber='127.0.0.1', controller='task', standby='configuration'
    )
    assert {name for name, node in nodes.items() if not node.respawn} == {
        *('virtual_rig', 'task_controller', 'configuration_controller')
    }
    assert all(node.respawn_max_retries == 5 for node in nodes.values() if node.respawn)


def test_the_standby_controller_is_another_one(planned: Any) -> None:
    with pytest.raises(LaunchError, match=r'rig.launch.xml:\d+: .*standby_must_differ_from_controller'):
        planned('simulation', controller='task', standby='task')
    assert 'task_controller' not in planned('simulation', controller='none', standby='none')
    assert 'task_controller' in planned('simulation', controller='none', standby='task')


@pytest.mark.parametrize('file', ['rig', 'simulation'])
def test_law_rate_and_registers_are_arguments(planned: Any, file: str) -> None:
    common = {'robot': 'honeycomb_arm', 'pressure': '127.0.0.1', 'rate': '50'}

    def law_and_rate(**arguments: str) -> Any:
        parameters = inline(planned(file, **common, **arguments)[f'{arguments["controller"]}_controller'])
        return parameters['law'], parameters['rate']

    assert law_and_rate(controller='configuration') == ('feedback', 50.0)
    assert law_and_rate(controller='task') == ('kinematic', 50.0)
    assert law_and_rate(controller='task', law='predictive', controller_rate='30') == ('predictive', 30.0)
    nodes = planned(file, **common, controller='task', controller_rate='30', register_map='mine.yaml')
    assert inline(nodes['pressure_bridge'])['modbus.register_map'] == 'mine.yaml'
    assert inline(nodes['pressure_bridge'])['rate'] == 50.0


@pytest.mark.parametrize(
    ('line', 'message'),
    [
        (
            '<executable cmd="ls"/>',
            r'unsupported tag <executable> in <launch>; supported: arg, group, include, let, node',
        ),
        ('<nod/>', r"unsupported tag <nod> in <launch>; did you mean 'node'\?"),
        ('<group if="false"><timer/></group>', r'unsupported tag <timer> in <group>'),
        (
            '<node pkg="fake_robot" exec="talker" machine="x"/>',
            r"unsupported attribute 'machine' of <node>; supported: ",
        ),
        ('<node exec="talker"/>', r"<node> needs the attribute 'pkg'"),
        ('<arg name="x" if="1" unless="0"/>', r"'if' and 'unless' exclude each other"),
        (
            '<let name="x" value="$(eval 1+1)"/>',
            r'unsupported substitution \$\(eval\); supported: dirname, env, find-pkg',
        ),
        ('<let name="x" value="$(var a b c)"/>', r'\$\(var\) takes 1 or 2 arguments, got 3'),
        ('<let name="x" value="$(var  a)"/>', r'an argument is empty'),
        ('<let name="x" value="$(var a"/>', r'a \) is missing'),
        ('<let name="x" value="$(env A \'b)"/>', r"a closing ' is missing"),
        ('<let name="x" value="$(var nope)"/>', r"there is no argument or variable 'nope'"),
        ('<let name="x" value="$(env NOPE_)"/>', r"there is no environment variable 'NOPE_'"),
        ('some text', r"unsupported text 'some text' in <launch>"),
        ('<arg name="x">', r'malformed XML: mismatched tag'),
        ('<arg name="needed"/>', r"the argument 'needed' needs a value: needed:=<value>"),
        ('<include file="/nowhere.launch.xml"/>', r"the launch file '/nowhere.launch.xml' does not exist"),
        ('<include file="/nowhere.launch.py"/>', r"unsupported kind of launch file 'nowhere.launch.py'"),
        ('<include file="$(dirname)/test.launch.xml"/>', r'includes itself'),
        ('<node pkg="nowhere" exec="x"/>', r"package 'nowhere' is not in AMENT_PREFIX_PATH"),
        (
            '<node pkg="fake_robot" exec="x"/>',
            r"package 'fake_robot' has no executable 'x'; it has: listener, talker",
        ),
        (node(attributes='if="maybe"'), r"expected true, false, 1 or 0, got 'maybe'"),
        (node(attributes='name="9x"'), r"a node name must have letters, .* got '9x'"),
        (node(attributes='namespace="a b"'), r"a namespace must be names separated by /, got 'a b'"),
        (node(attributes='on_exit="panic"'), r"unsupported on_exit 'panic'; supported: shutdown"),
        (node(attributes='respawn_delay="-1"'), r"respawn_delay must be a number >= 0 \[s\], got '-1'"),
        (node(attributes='respawn_max_retries="x"'), r"respawn_max_retries must be a whole number, got 'x'"),
        (node("'"), r'cannot split .* into arguments: No closing quotation'),
        (node(content='<param from="/nowhere.yaml"/>'), r"the parameter file '/nowhere.yaml' does not exist"),
        (node(content='<param value="1"/>'), r"<param> needs the attribute 'name' or 'from'"),
        (
            node(content='<param name="x"/>'),
            r"<param> with 'name' needs either 'value' or other <param> in it",
        ),
        (node(content='<param from="x" name="y"/>'), r"<param> with 'from' has no other attributes"),
        (
            node(content='<param name="x" value="1" type="number"/>'),
            r"unsupported type 'number'; supported: bool,",
        ),
    ],
)
def test_mistakes_in_the_file_give_one_line_with_their_place(
    workspace: Workspace, line: str, message: str
) -> None:
    file = workspace.write(node('--exit 0'), line)
    result = workspace.run(file)
    line_number = 4 if 'malformed' in message else 3
    assert re.fullmatch(rf'launch: {re.escape(file)}:{line_number}: .*{message}.*\n', result.stderr)
    assert (result.returncode, result.stdout) == (2, '')


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (
            ['fake_robot', 'full.launch.xml', 'robt:=x'],
            r"unknown launch argument 'robt'; did you mean 'robot'\? supported: ",
        ),
        (
            ['fake_robot', 'full.launch.xml', 'robot=x'],
            r"malformed launch argument 'robot=x', expected <name>:=<value>",
        ),
        (
            ['fake_robot', 'full.launch.xml', 'params:=/nowhere.yaml'],
            r"the parameter file '/nowhere.yaml' does not exist",
        ),
        (
            ['fake_robot', 'nowhere.launch.xml'],
            r"has no launch file 'nowhere.launch.xml'; it has: full.launch.xml, included",
        ),
        (
            ['fake_robot', 'full.launch.xml', 'sigterm_timeout:=soon'],
            r"sigterm_timeout must be a number >= 0 \[s\], got 'soon'",
        ),
        (['fake_robot'], r"give the launch file in package 'fake_robot'"),
        (
            ['nowhere', 'full.launch.xml'],
            r"package 'nowhere' is not in AMENT_PREFIX_PATH='.*'; is it built\?",
        ),
        (['nowhere/test.launch.xml'], r"the launch file 'nowhere/test.launch.xml' does not exist"),
    ],
)
def test_mistakes_on_the_command_line_give_one_line(
    workspace: Workspace, arguments: list[str], message: str
) -> None:
    result = workspace.run(*arguments)
    assert re.fullmatch(rf'launch: .*{message}.*\n', result.stderr)
    assert (result.returncode, result.stdout) == (2, '')
