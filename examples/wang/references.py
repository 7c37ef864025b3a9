"""The references of Wang's section IV-C, generated as in the paper."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from examples.wang.bench_arm import ARM, MS, TIP
from soft_control.allocation.pressure_allocation import Allocation
from soft_dynamics.array import Array
from soft_estimation.inverse_kinematics.pose_tracking import Tracking
from soft_hw_bridge.rig.plant import Plant

SINUSOIDS: dict[str, Callable[[float], tuple[float, float]]] = {  # both angles of each segment [rad]
    'first swings': lambda t: (0.3 * np.sin(2.0 * np.pi / 15.0 * t), 0.1),
    'second swings': lambda t: (0.1, 0.3 * np.sin(2.0 * np.pi / 15.0 * t)),
    'circle': lambda t: (0.3 * np.cos(np.pi / 8.0 * t), 0.3 * np.sin(np.pi / 8.0 * t)),
    'figure of eight': lambda t: (0.3 * np.sin(np.pi / 8.0 * t), 0.2 * np.sin(np.pi / 4.0 * t)),
}
STAR_POSES, STAR_WIDTH = 500, 0.6  # [-], [m]
SETTLING, DRAWING = 12.0, 60.0  # [s]


def random_targets(count: int = 3, seed: int = 7) -> list[Array]:
    """Return poses of the unloaded tip under random pressures up to 80 % of the maximum."""
    random = np.random.default_rng(seed)
    targets = []
    for _ in range(count):
        plant = Plant(ARM.description, MS)
        plant.advance(
            SETTLING, random.uniform(0.0, 0.8, plant.pressure.size) * ARM.description.actuation.pressure_max
        )
        targets.append(_tip(plant))
    return targets


def star(count: int = STAR_POSES) -> list[Array]:
    """Return the first of 500 tip poses while slow inflation draws a star 0.6 m wide, from its top vertex."""
    angle = 0.5 * np.pi + 0.8 * np.pi * np.arange(6)
    corners = 0.5 * STAR_WIDTH / np.sin(0.4 * np.pi) * np.stack([np.cos(angle), np.sin(angle)], 1)
    plant, allocate, bend = Plant(ARM.description, MS), Allocation(ARM), np.zeros(2)
    poses: list[Array] = []
    for part in np.linspace(0.0, 5.0, STAR_POSES)[:count]:
        k = min(int(part), 4)
        bend = _bend_to(corners[k] + (part - k) * (corners[k + 1] - corners[k]), bend)
        q = np.tile(bend, 4)
        hold = allocate(ARM.actuation(q), ARM.gravity(q) + ARM.elastic(q))
        plant.advance(DRAWING / STAR_POSES if poses else SETTLING, hold)
        poses.append(_tip(plant))
    return poses


def _bend_to(xy: Array, bend: Array) -> Array:
    """Return two angles, equal for all segments, that bring the tip of the model to x, y: Newton's method."""
    for _ in range(20):
        q = np.tile(bend, 4)
        J = ARM.jacobian(q, 'tip')[3:5].reshape(2, 4, 2).sum(1)
        bend = bend + np.linalg.solve(J, xy - ARM.pose(q, 'tip')[:2, 3])
    return bend


def _tip(plant: Plant) -> Array:
    """Return the true pose of the tip in the frame of the robot file."""
    return Tracking(ARM).frame_pose(TIP, plant.poses()[-1])
