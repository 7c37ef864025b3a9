"""Reusable markers: creating thousands of small messages per second is slow in Python."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from geometry_msgs.msg import Point
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker

from soft_dynamics.array import Array
from soft_dynamics.geometry.tube import Tube, rings

_SIDES = 10
_LONGEST_PATH = 2000  # poses
# Dark blue over green to yellow, as in the documentation; a plain ghost colour for predictions.
_SHADES = np.array(
    [[0.27, 0.00, 0.33], [0.23, 0.32, 0.55], [0.13, 0.57, 0.55], [0.37, 0.79, 0.38], [0.99, 0.91, 0.14]]
)
_GHOST = np.array([0.84, 0.37, 0.0])
_ALPHA = {'measured': 1.0, 'predicted': 0.4}


def _marker(namespace: str, kind: int, scale: tuple[float, float, float]) -> Marker:
    marker = Marker(ns=namespace, type=kind, action=Marker.ADD)
    marker.pose.orientation.w = 1.0
    marker.scale.x, marker.scale.y, marker.scale.z = scale
    return marker


class TubeMarker:
    """The body as a list of triangles with a colour per vertex; triangles share vertices."""

    def __init__(self, kind: str, frame_id: str) -> None:
        self._kind = kind
        self._marker = _marker(kind, Marker.TRIANGLE_LIST, (1.0, 1.0, 1.0))
        self._marker.header.frame_id = frame_id
        self._points: list[Point] = []
        self._colors: list[ColorRGBA] = []

    def fill(self, body: Tube, share: Array, offset: Array, stamp: Any) -> Marker:
        """Fill the marker with a body; its samples have the colours `share`, 0 to 1."""
        corners = (rings(body, _SIDES) + offset).reshape(-1, 3)
        if len(self._points) != len(corners):
            self._make(len(body.points))
        for point, (x, y, z) in zip(self._points, corners.tolist(), strict=True):
            point.x, point.y, point.z = x, y, z
        for color, (r, g, b) in zip(self._colors, self._shades(share).tolist(), strict=True):
            color.r, color.g, color.b = r, g, b
        self._marker.header.stamp = stamp
        return self._marker

    def _shades(self, share: Array) -> Array:
        if self._kind == 'predicted':
            return np.tile(_GHOST, (len(share), 1))
        knots = np.linspace(0.0, 1.0, len(_SHADES))
        return np.stack([np.interp(share, knots, channel) for channel in _SHADES.T], axis=1)

    def _make(self, samples: int) -> None:
        self._points = [Point() for _ in range(samples * _SIDES)]
        self._colors = [ColorRGBA(a=_ALPHA[self._kind]) for _ in range(samples)]
        k, j = np.divmod(np.arange((samples - 1) * _SIDES), _SIDES)
        a, b = k * _SIDES + j, k * _SIDES + (j + 1) % _SIDES
        order = np.stack([a, a + _SIDES, b, b, a + _SIDES, b + _SIDES], axis=1).ravel().tolist()
        self._marker.points = [self._points[i] for i in order]
        self._marker.colors = [self._colors[i // _SIDES] for i in order]


class ArrowMarker:
    """A force as an arrow from the origin of the frame it was measured in."""

    def __init__(self, namespace: str) -> None:
        self._marker = _marker(namespace, Marker.ARROW, (0.01, 0.02, 0.03))
        self._marker.color = ColorRGBA(r=0.8, g=0.47, b=0.65, a=1.0)

    def fill(self, header: Any, force: Sequence[float], scale: float) -> Marker:
        self._marker.header = header
        x, y, z = (scale * component for component in force)
        self._marker.points = [Point(), Point(x=x, y=y, z=z)]
        return self._marker


class PathMarker:
    """The path of the reference as a line."""

    def __init__(self, namespace: str) -> None:
        self._marker = _marker(namespace, Marker.LINE_STRIP, (0.004, 0.0, 0.0))
        self._marker.color = ColorRGBA(r=0.0, g=0.45, b=0.7, a=1.0)
        self._points: deque[Point] = deque(maxlen=_LONGEST_PATH)

    def clear(self) -> None:
        self._points.clear()

    def add(self, point: Point) -> None:
        self._points.append(point)

    def fill(self, header: Any) -> Marker:
        self._marker.header = header
        self._marker.points = list(self._points)
        return self._marker
