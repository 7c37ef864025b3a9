"""The control laws: one file each, and one line each in the table of the controller that offers it.

An entry makes the law for a robot from the parameters of the controller; it may tell the user something in one line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from . import configuration_space, predictive, task_space

if TYPE_CHECKING:
    from soft_dynamics.robot import Robot

    from ..control_loop import Law

__all__ = ['CONFIGURATION_LAWS', 'TASK_LAWS', 'MakeLaw']

MakeLaw: TypeAlias = 'Callable[[Robot, Any, Callable[[str], Any]], Law]'

CONFIGURATION_LAWS: dict[str, MakeLaw] = {  # their reference is a JointPath
    'feedback': configuration_space.make,
    'predictive': predictive.make_for_joints,
}
TASK_LAWS: dict[str, MakeLaw] = {  # their reference is a PosePath
    'kinematic': task_space.make,
    'predictive': predictive.make_for_tip,
}
