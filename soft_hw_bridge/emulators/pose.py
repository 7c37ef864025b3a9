"""Pose of a body, as input of the emulators."""

from __future__ import annotations

from typing import NamedTuple


class Pose(NamedTuple):
    """Pose of a body B in a world W with x forward, y left and z up."""

    p_WB: tuple[float, float, float]  # [m]
    quat_WB: tuple[float, float, float, float]  # x, y, z, w
