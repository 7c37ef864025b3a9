"""The launched loop with the predictive law: the plant's tip reaches the pose within all limits."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from rcl_interfaces.srv import GetParameters
from ros.test_closed_loop import Loop, held_pose
from ros.test_controllers import ROBOT, TASK

from soft_dynamics.description.robot_description import load_description
from soft_dynamics.geometry.tube import frame_poses
from tools.simulation import Simulation, patient

NEAR = 0.01  # [m]; the model's tip is up to 15 mm off, so the controller needs the measured one
AGAIN = 15.0  # [s] a busy computer may have vented the arm meanwhile


def test_the_predictive_law_brings_the_tip_to_a_pose(ros_client_node: Any, tmp_path: Path) -> None:
    robot = patient(ROBOT.name, tmp_path)
    law = {'controller': 'task', 'law': 'predictive', 'controller_rate': 30}
    with Simulation(robot=robot, rate=50, shape='false', ft='none', **law) as simulation:
        loop = Loop(ros_client_node, simulation, load_description(str(robot)).safety)
        loop.until(lambda: len(loop.commands) > 10 and loop.poses.get_subscription_count(), 'controller')
        asked = GetParameters.Request(names=['law', 'rate'])
        values = ros_client_node.call(GetParameters, f'{TASK}/get_parameters', asked).values
        assert (values[0].string_value, values[1].double_value) == ('predictive', 30.0)
        wanted_W = frame_poses(ROBOT, np.full(8, 0.2))[-1, :3, 3]
        told = -np.inf

        def is_there() -> bool:
            nonlocal told
            if time.monotonic() - told > AGAIN:
                told = time.monotonic()
                loop.poses.publish(held_pose())
            loop.pressure()
            with simulation.rig as rig:
                tip_W = rig.state()['frames'][ROBOT.frame_names[-1]]['position']
            return bool(np.linalg.norm(np.array(tip_W) - wanted_W) < NEAR)

        assert not is_there()
        loop.until(is_there, 'tip to reach the pose')
        loop.check()
    assert 'Traceback' not in ''.join(simulation.lines)
