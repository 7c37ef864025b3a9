"""Shaded faces in an orthographic view; needs no graphics card."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection

LIGHT = np.array([-0.45, -0.65, 1.0]) / np.linalg.norm([0.45, 0.65, 1.0])


class Camera(NamedTuple):
    """An orthographic view: axes to the right, up and towards the eye, in the world of ROS."""

    axes: np.ndarray  # (3, 3)

    @classmethod
    def at(cls, azimuth: float, elevation: float) -> Camera:
        a, e = np.radians([azimuth, elevation])
        eye = np.array([np.cos(a) * np.cos(e), np.sin(a) * np.cos(e), np.sin(e)])
        right = np.array([-np.sin(a), np.cos(a), 0.0])
        return cls(np.stack([right, np.cross(eye, right), eye]))

    def see(self, points: np.ndarray) -> np.ndarray:
        """Return (right, up, nearness) of points (..., 3)."""
        return points @ self.axes.T


class Scene:
    """Polygons and lines of one picture, drawn from far to near."""

    def __init__(self, camera: Camera) -> None:
        self.camera = camera
        self.quads: list[np.ndarray] = []
        self.colors: list[np.ndarray] = []

    def add(self, quads: np.ndarray, colors: np.ndarray, alpha: float = 1.0) -> None:
        """Add faces (m, 4, 3) with colours (m, 3), lit from the upper left."""
        normal = np.cross(quads[:, 2] - quads[:, 0], quads[:, 3] - quads[:, 1])
        normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
        eye = self.camera.axes[2]
        normal *= np.where(normal @ eye < 0.0, -1.0, 1.0)[:, None]
        half = (LIGHT + eye) / np.linalg.norm(LIGHT + eye)
        lit = 0.55 + 0.50 * np.clip(normal @ LIGHT, 0.0, 1.0)
        shine = 0.35 * np.clip(normal @ half, 0.0, 1.0) ** 24
        self.quads.append(quads)
        shaded = np.clip(colors * lit[:, None] + shine[:, None], 0.0, 1.0)
        self.colors.append(np.insert(shaded, 3, alpha, axis=1))

    def draw(self, axes: Axes) -> None:
        quads, colors = np.concatenate(self.quads), np.concatenate(self.colors)
        seen = self.camera.see(quads)
        order = np.argsort(seen[..., 2].mean(axis=1))
        faces, shades = seen[order, :, :2], colors[order]
        edges = shades.copy()
        edges[:, 3] = (
            shades[:, 3] == 1.0
        )  # edges close gaps between faces; on a transparent body they would be visible
        axes.add_collection(PolyCollection(faces, facecolors=shades, edgecolors=edges, lw=0.3, zorder=3))


def skin(ring: np.ndarray, color: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return quads between successive rings (n, sides, 3), each with the mean colour of its two rings."""
    after = np.roll(ring, -1, axis=1)
    quads = np.stack([ring[:-1], ring[1:], after[1:], after[:-1]], axis=2).reshape(-1, 4, 3)
    colors = np.repeat(0.5 * (color[:-1] + color[1:]), ring.shape[1], axis=0)
    return quads, colors


def plate(centre: np.ndarray, axis: np.ndarray, radius: float, thickness: float) -> np.ndarray:
    """Return a flat closed cylinder as rings."""
    normal = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    normal /= np.linalg.norm(normal)
    angle = np.linspace(0.0, 2.0 * np.pi, 32, endpoint=False)
    around = np.cos(angle)[:, None] * normal + np.sin(angle)[:, None] * np.cross(axis, normal)
    profile = [(-0.5, 0.0), (-0.5, 0.5), (-0.5, 1.0), (0.5, 1.0), (0.5, 0.5), (0.5, 0.0)]
    return np.stack([centre + h * thickness * axis + r * radius * around for h, r in profile])
