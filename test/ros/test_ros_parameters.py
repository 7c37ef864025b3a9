"""Parameters from a frozen dataclass, in a real process, set by a real client."""

from __future__ import annotations

from typing import Any

import pytest
from rcl_interfaces.srv import DescribeParameters, GetParameters
from ros.nodes_for_test.example import Config, Limits
from std_msgs.msg import String

from soft_dynamics.ros.qos import DESCRIPTION

EXAMPLE = 'ros.nodes_for_test.example'


def error_line(process: Any) -> str:
    """Return the only line of stderr, without level, time and logger."""
    lines = process.stderr.splitlines()
    assert len(lines) == 1, process.stderr
    level, _, logger, text = lines[0].split(' ', 3)
    assert (level, logger) == ('[ERROR]', '[example]:')
    return text


@pytest.mark.parametrize(
    ('params', 'line'),
    [
        ({'rate': -1.0}, 'rate must be > 0, got -1.0'),
        ({'rate': 'fast'}, "rate must be a number, got 'fast'"),
        ({'count': 2.5}, 'count must be an integer, got 2.5'),
        ({'enabled': 1}, 'enabled must be true or false, got 1'),
        ({'robot': 7}, 'robot must be a string, got 7'),
        ({'gains': 'a'}, "gains must be a list of numbers, got 'a'"),
        ({'gains': ['a']}, "gains[0] must be a number, got 'a'"),
        ({'origin': [1.0, 2.0]}, 'origin must be a list of 3 numbers, got [1.0, 2.0]'),
        ({'limits.low': 5}, 'limits: low must be below high, got 5.0 and 2.0'),
        ({'rat': 5}, 'unknown parameter rat, did you mean rate?'),
        (
            {'zzz': 5, 'count': 'x'},
            'unknown parameter zzz, known: rate, count, enabled, robot, gains, origin, bodies, limits.low, '
            "limits.high; count must be an integer, got 'x'",
        ),
    ],
)
def test_a_bad_start_value_is_one_line_and_exit_code_1(ros_process: Any, params: Any, line: str) -> None:
    process = ros_process(EXAMPLE, params)
    assert process.wait() == 1
    assert error_line(process) == f'cannot start: {line}'
    assert process.stdout == ''


def test_nan_is_no_number(ros_process: Any) -> None:
    process = ros_process(EXAMPLE, {'rate': float('nan')})
    assert process.wait() == 1
    assert error_line(process).startswith('cannot start: rate must be a number, got')


def test_a_malformed_command_line_is_told_in_words(ros_process: Any) -> None:
    process = ros_process(EXAMPLE, remap={'a b': 'c'})
    assert process.wait() == 1
    assert error_line(process).startswith(
        "cannot start: bad ROS arguments: Couldn't parse remap rule: '-r a b:=c'"
    )


def test_an_argument_outside_ros_args_is_refused(ros_process: Any) -> None:
    process = ros_process(EXAMPLE, {'rate': 5}, args=['rate:=5'])
    assert process.wait() == 1
    assert error_line(process) == (
        'cannot start: unknown argument rate:=5, parameters are given as --ros-args -p name:=value'
    )


@pytest.fixture
def config_of(ros_client_node: Any) -> Any:
    """Return a function that waits for the newest config of the example node."""
    shown = ros_client_node.collect(String, 'config', DESCRIPTION)

    def newest(count: int = 1) -> Config:
        ros_client_node.spin_until(lambda: len(shown) >= count, 'config')
        return eval(shown[-1].data, {'Config': Config, 'Limits': Limits})

    return newest


def test_overrides_reach_the_config(ros_process: Any, config_of: Any) -> None:
    """Integers are accepted as floats, an empty list keeps its type, nested names use dots."""
    ros_process(EXAMPLE, {'rate': 5, 'gains': [1, 2, 3], 'bodies': [], 'limits.low': -1, 'enabled': False})
    assert config_of() == Config(rate=5.0, gains=(1.0, 2.0, 3.0), limits=Limits(-1.0, 2.0), enabled=False)


def test_a_set_is_judged_by_the_dataclass(ros_process: Any, ros_client_node: Any, config_of: Any) -> None:
    ros_process(EXAMPLE)
    assert config_of() == Config()
    client = ros_client_node
    for name, value, reason in [
        ('rate', -2.0, 'rate must be > 0, got -2.0'),
        ('rate', 'fast', "rate must be a number, got 'fast'"),
        ('limits.high', -3.0, 'limits: low must be below high, got 0.0 and -3.0'),
        ('count', 13, 'count must not be 13 on this machine'),
        ('origin', [1.0], 'origin must be a list of 3 numbers, got [1.0]'),
        ('robot', 'other', 'Trying to set a read-only parameter: robot.'),
        ('rat', 5.0, "Invalid access to undeclared parameter(s): ['rat']"),
    ]:
        result = client.set_parameter('example', name, value)
        assert (result.successful, result.reason) == (False, reason)
    assert client.set_parameter('example', 'rate', 7).successful
    assert client.set_parameter('example', 'bodies', ['tip']).successful
    assert client.set_parameter('example', 'bodies', []).successful
    assert client.set_parameter('example', 'use_sim_time', False).successful
    assert config_of(4) == Config(rate=7.0)

    values = client.call(
        GetParameters, 'example/get_parameters', GetParameters.Request(names=['rate', 'limits.high'])
    )
    assert [v.double_value for v in values.values] == [7.0, 2.0]


def test_descriptions_carry_doc_and_unit(ros_process: Any, ros_client_node: Any) -> None:
    ros_process(EXAMPLE)
    request = DescribeParameters.Request(names=['rate', 'robot', 'count'])
    rate, robot, count = ros_client_node.call(
        DescribeParameters, 'example/describe_parameters', request
    ).descriptors
    assert (rate.description, rate.read_only) == ('samples per second [Hz]', False)
    assert (robot.description, robot.read_only) == ('name of the robot', True)
    assert count.description == ''
