"""Dynamics of soft robot arms: five papers, one recursion.

import soft_dynamics as sd
robot = sd.load('honeycomb_arm')
tau = robot.inverse_dynamics(q, qd, qdd)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .description.robot_files import robot_names
from .errors import NotConverged, RobotFileError, SingularInertia, SoftRobotError
from .kernel_cache import use_kernel_cache

if TYPE_CHECKING:
    from .robot import Robot, load
    from .simulation.simulate import Trajectory

__all__ = [
    'NotConverged',
    'Robot',
    'RobotFileError',
    'SingularInertia',
    'SoftRobotError',
    'Trajectory',
    'load',
    'robot_names',
]

use_kernel_cache()

# Imported on first use: numba takes most of a second to import, and a sensor bridge never needs it.
_LATE = {'Robot': 'robot', 'load': 'robot', 'Trajectory': 'simulation.simulate'}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    return getattr(import_module(f'.{_LATE[name]}', __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
