"""`simulation.launch.xml` for every shipped robot: bridges find their devices, states arrive, all processes end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from geometry_msgs.msg import PoseStamped, WrenchStamped
from lifecycle_msgs.srv import GetState
from soft_robot_suite.msg import ChamberPressures, ShapeSamples, SoftState
from source_tree import ROOT

from soft_dynamics.description.robot_description import Description, load_description
from soft_dynamics.description.robot_files import robot_names
from soft_dynamics.ros.qos import SENSOR, STATE

PATIENCE = 120.0  # [s] for half a dozen processes to start on a busy machine
PORTS = ('mocap', 'vive', 'fiber', 'ft', 'ft_http', 'pressure', 'control')
WITHOUT_CONTROL = ('controller:=none', 'shape:=false')
UNHURRIED = ('sigterm_timeout:=60', 'sigkill_timeout:=60')
MARK = 'SIMULATION_LAUNCH_TEST'


def topics(robot: Description) -> dict[str, tuple[Any, str]]:
    """Return a topic of each bridge that the robot needs."""
    found = {'pressure': (ChamberPressures, 'pressure/measured')}
    for sensor in robot.sensors:
        if sensor.kind in ('mocap', 'vive'):
            found[sensor.kind] = (PoseStamped, f'{sensor.kind}/{sensor.name}/pose')
        else:
            found[sensor.kind] = {
                'fiber': (ShapeSamples, 'fiber/shape'),
                'ft': (WrenchStamped, 'ft/wrench'),
            }[sensor.kind]
    return found


@contextmanager
def launched(robot: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the launch file on its own ports: those of our ROS domain far above the range that DDS uses."""
    first = 7400 + 250 * int(os.environ['ROS_DOMAIN_ID']) + 200
    ports = [f'{name}_port:={first + k}' for k, name in enumerate(PORTS)]
    command = [sys.executable, 'tools/launch.py', 'launch/simulation.launch.xml', f'robot:={robot}', *ports]
    with (folder / 'output').open('wb') as output:
        process = subprocess.Popen(
            [*command, *WITHOUT_CONTROL, *UNHURRIED],
            cwd=ROOT,
            env=os.environ | {MARK: str(folder)},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()  # its nodes normally end with it
            process.wait()
            for left in left_over(folder):
                with suppress(OSError):
                    os.kill(left, signal.SIGKILL)


def left_over(folder: Path) -> list[int]:
    """Return the running processes of the launch."""
    mark = f'{MARK}={folder}'.encode()
    found = []
    for process in Path('/proc').glob('[0-9]*'):
        with suppress(OSError):  # has ended, or belongs to another user
            if mark in (process / 'environ').read_bytes().split(b'\0'):
                found.append(int(process.name))
    return found


@pytest.mark.parametrize('robot', robot_names())
def test_bridges_and_estimator_are_active_their_topics_flow_and_all_ends(
    ros_client_node: Any, tmp_path: Path, robot: str
) -> None:
    with launched(robot, tmp_path) as launch:
        heard = {
            device: ros_client_node.collect(kind, topic, SENSOR)
            for device, (kind, topic) in topics(load_description(robot)).items()
        }
        states = ros_client_node.collect(SoftState, 'state', STATE)

        def output() -> str:
            return (tmp_path / 'output').read_text()

        def is_flowing() -> bool:
            assert launch.poll() is None, output()
            return all(len(messages) > 10 for messages in (*heard.values(), states))

        try:
            ros_client_node.spin_until(is_flowing, f'messages of {", ".join(heard)} and states', PATIENCE)
        except TimeoutError:
            raise AssertionError({d: len(m) for d, m in heard.items()}, len(states), output()) from None
        for node in (*(f'{device}_bridge' for device in heard), 'state_estimator'):
            state = ros_client_node.call(GetState, f'{node}/get_state', GetState.Request())
            assert state.current_state.label == 'active'
        assert 'Traceback' not in output()
        launch.send_signal(signal.SIGINT)
        assert launch.wait(PATIENCE) == 0, output()
    assert left_over(tmp_path) == []
