"""Path of the tip while the coordinates follow way-points, for drawing a reference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..array import Array, as_array
from ..robot import Robot
from .tube import frame_poses

_PER_INTERVAL, _MOST = 20, 1000  # samples


def tip_path(robot: Robot, q0: Array, names: Sequence[str], times: Sequence[float], points: Array) -> Array:
    """Points (n, 3) [m] in the world of ROS, from the pose q0 (nq,) at time 0 through the way-points, then at rest.

    points (count, len(names)) are values of the named coordinates, the others stay; times (count,) [s] rise. A cubic
    spline joins the way-points; a controller may deviate slightly from it.

    Raises ValueError for unknown names and for invalid times or points.
    """
    from scipy.interpolate import CubicSpline

    strangers = [name for name in names if name not in robot.coordinate_names]
    if strangers or not names or len(set(names)) < len(names):
        raise ValueError(
            f'names: expected coordinates of {robot.name}, each once, got {", ".join(names) or "none"}'
        )
    t, given = as_array('times', times), as_array('points', points)
    if given.shape != (t.size, len(names)):
        raise ValueError(f'points: expected shape ({t.size}, {len(names)}), got {given.shape}')
    q = np.tile(q0, (t.size, 1))
    q[:, [robot.coordinate_names.index(name) for name in names]] = given
    if t.size and t[0] > 0.0:
        t, q = np.append(0.0, t), np.vstack([q0, q])
    if t.size < 2 or t[0] < 0.0 or not np.all(np.diff(t) > 0.0):
        raise ValueError('times: expected rising times >= 0, at least one')
    moments = np.linspace(0.0, t[-1], min(_PER_INTERVAL * (t.size - 1) + 1, _MOST))
    motion = CubicSpline(t, q, bc_type='clamped')
    return frame_poses(robot, np.ascontiguousarray(motion(moments)))[:, -1, :3, 3]
