"""Nodes that command hardware reject simulated time, however it is set: a played clock makes old messages look new."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ros.conftest import ROOT, TIMEOUT

NODES = (
    'soft_control.nodes.configuration_controller',
    'soft_control.nodes.task_controller',
    'soft_hw_bridge.nodes.pressure_bridge',
)
LINE = 'use_sim_time must be false: this node commands hardware'
LAUNCH = """<launch>
  <node pkg="soft_robot_suite" exec="configuration_controller">
    <param name="use_sim_time" value="true"/>
  </node>
</launch>
"""


@pytest.mark.parametrize('node', NODES)
@pytest.mark.parametrize('of', ['/**', 'own'])
def test_it_is_refused_in_a_parameter_file(ros_process: Any, tmp_path: Path, node: str, of: str) -> None:
    name = node.rpartition('.')[2] if of == 'own' else of
    file = tmp_path / 'params.yaml'
    file.write_text(f'{name}:\n  ros__parameters:\n    use_sim_time: true\n')
    assert LINE in ros_process(node, args=['--ros-args', '--params-file', str(file)]).refusal()


@pytest.mark.parametrize(
    ('value', 'line'), [(True, LINE), ('true', "'use_sim_time' to 'true'"), (1, "'use_sim_time' to '1'")]
)
def test_it_is_refused_on_the_command_line(ros_process: Any, value: Any, line: str) -> None:
    assert line in ros_process(NODES[0], {'use_sim_time': value}).refusal()


def test_it_is_refused_in_a_launch_file(tmp_path: Path) -> None:
    file = tmp_path / 'simulated.launch.xml'
    file.write_text(LAUNCH)
    launch = [sys.executable, str(ROOT / 'tools' / 'launch.py'), str(file)]
    ended = subprocess.run(launch, capture_output=True, text=True, timeout=2 * TIMEOUT, check=False)
    assert LINE in ended.stdout + ended.stderr


def test_it_is_refused_while_the_node_runs(ros_process: Any, ros_client_node: Any) -> None:
    process = ros_process(NODES[0])
    for value in (True, 'true'):
        result = ros_client_node.set_parameter('configuration_controller', 'use_sim_time', value)
        assert not result.successful
    assert ros_client_node.set_parameter('configuration_controller', 'use_sim_time', False).successful
    ros_client_node.spin_for(0.2)
    subscriptions = ros_client_node.get_subscriptions_info_by_topic('/clock')
    assert [each for each in subscriptions if each.node_name == 'configuration_controller'] == []
    assert process.stop() == 0
