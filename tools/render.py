"""Draw a robot without RViz: its smooth body as a shaded tube, plates, frames and ground.

python -m tools.render honeycomb_arm --out honeycomb_arm.png
python -m tools.render honeycomb_arm --animate --out swing.gif       let go of the pose, without pressure
python -m tools.render my_arm.yaml --pose 0.4 0 0.3 0 -0.6 0         the coordinates, in the robot's order
python -m tools.render --readme docs/figures/readme.png              the shipped robots in one row
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl

mpl.use('Agg')
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgb

import soft_dynamics as sd
from soft_dynamics.description import Link
from soft_dynamics.tube import frame_poses, rings, segment_pressures, tube

POSES = {  # coordinates that show what the robot can do
    'bending_actuator': [-0.22, -0.24, -0.26, -0.28, -0.30],
    'fabric_arm': [0.0, 0.55, 0.0, -0.12, 0.05, 0.0, 0.5, 0.0, -0.15, 0.05, 0.0, 0.4, 0.0, -0.1, 0.0],
    'floating_actuator': [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.045, 0.004, 0.03],
    'honeycomb_arm': [0.25, 0.30, 0.60, 0.25, 0.85, 0.10, 1.00, 0.20],
    'pneumatic_arm': [-0.25, -0.55, 0.25, 0.95, 0.30, 1.10],
}
VIEWS = {
    'bending_actuator': (-112.0, 52.0),
    'fabric_arm': (-150.0, 14.0),
}  # one lies on a table, one leaves a wall
VIEW = (-62.0, 18.0)  # azimuth, elevation [deg]
SHADES = plt.get_cmap('viridis')
PLATE, RIGID, GROUND, SHADOW, LINE = '#5b626d', '#c3c8cf', '#f5f6f8', '#dde0e5', '#e3e6ea'
LIGHT = np.array([-0.45, -0.65, 1.0]) / np.linalg.norm([0.45, 0.65, 1.0])
FRAME_COLORS = ('#D55E00', '#009E73', '#0072B2')  # x, y, z
FULL_CURVATURE = (
    1.2  # [rad] a body bent by this much over its whole length has the brightest colour, if none has more
)


class Camera(NamedTuple):
    """An orthographic view: right, up and towards the eye, in the world of ROS."""

    axes: np.ndarray  # (3, 3)

    @classmethod
    def at(cls, azimuth: float, elevation: float) -> Camera:
        a, e = np.radians([azimuth, elevation])
        eye = np.array([np.cos(a) * np.cos(e), np.sin(a) * np.cos(e), np.sin(e)])
        right = np.array([-np.sin(a), np.cos(a), 0.0])
        return cls(np.stack([right, np.cross(eye, right), eye]))

    def see(self, points: np.ndarray) -> np.ndarray:
        """(right, up, nearness) of points (..., 3)."""
        return points @ self.axes.T


class Scene:
    """Polygons and lines of one picture, sorted by nearness when drawn."""

    def __init__(self, camera: Camera) -> None:
        self.camera = camera
        self.quads: list[np.ndarray] = []
        self.colors: list[np.ndarray] = []

    def add(self, quads: np.ndarray, colors: np.ndarray) -> None:
        """Faces (m, 4, 3) with colours (m, 3), lit from the upper left."""
        normal = np.cross(quads[:, 2] - quads[:, 0], quads[:, 3] - quads[:, 1])
        normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
        eye = self.camera.axes[2]
        normal *= np.where(normal @ eye < 0.0, -1.0, 1.0)[:, None]
        half = (LIGHT + eye) / np.linalg.norm(LIGHT + eye)
        lit = 0.55 + 0.50 * np.clip(normal @ LIGHT, 0.0, 1.0)
        shine = 0.35 * np.clip(normal @ half, 0.0, 1.0) ** 24
        self.quads.append(quads)
        self.colors.append(np.clip(colors * lit[:, None] + shine[:, None], 0.0, 1.0))

    def draw(self, axes: Axes) -> None:
        quads, colors = np.concatenate(self.quads), np.concatenate(self.colors)
        seen = self.camera.see(quads)
        order = np.argsort(seen[..., 2].mean(axis=1))
        faces, shades = seen[order, :, :2], colors[order]
        axes.add_collection(PolyCollection(faces, facecolors=shades, edgecolors=shades, lw=0.3, zorder=3))


def skin(ring: np.ndarray, color: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quads between successive rings (n, sides, 3), with the mean colour of both."""
    after = np.roll(ring, -1, axis=1)
    quads = np.stack([ring[:-1], ring[1:], after[1:], after[:-1]], axis=2).reshape(-1, 4, 3)
    colors = np.repeat(0.5 * (color[:-1] + color[1:]), ring.shape[1], axis=0)
    return quads, colors


def plate(centre: np.ndarray, axis: np.ndarray, radius: float, thickness: float) -> np.ndarray:
    """A flat cylinder with both ends closed, as rings."""
    normal = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    normal /= np.linalg.norm(normal)
    angle = np.linspace(0.0, 2.0 * np.pi, 32, endpoint=False)
    around = np.cos(angle)[:, None] * normal + np.sin(angle)[:, None] * np.cross(axis, normal)
    profile = [(-0.5, 0.0), (-0.5, 0.5), (-0.5, 1.0), (0.5, 1.0), (0.5, 0.5), (0.5, 0.0)]
    return np.stack([centre + h * thickness * axis + r * radius * around for h, r in profile])


def body_colors(robot: sd.Robot, body: Any, color_by: str, pressure: np.ndarray, full: float) -> np.ndarray:
    """Colours (n, 3) by curvature, as a share of `full` [1/m], or by the mean pressure in each segment."""
    if color_by == 'pressure':
        return SHADES(segment_pressures(robot.description, pressure)[body.segment])[:, :3]
    colors = SHADES(0.15 + 0.75 * np.clip(body.curvature / full, 0.0, 1.0))[:, :3]
    rigid = [isinstance(segment, Link) for segment in robot.description.segments]
    colors[np.array(rigid)[body.segment]] = to_rgb(RIGID)
    return colors


def full_curvature(robot: sd.Robot, poses: np.ndarray) -> float:
    """The curvature [1/m] that gets the brightest colour: the largest in the poses, a gentle bend at least."""
    largest = max(tube(robot, q).curvature.max() for q in poses)
    return max(largest, FULL_CURVATURE / robot.length)


class Stage(NamedTuple):
    """What stays while the robot moves: the floor, and the curvature [1/m] that gets the brightest colour."""

    middle: np.ndarray  # (3,) [m]
    span: float  # [m]
    full: float

    @classmethod
    def of(cls, robot: sd.Robot, poses: np.ndarray) -> Stage:
        """The floor is under the base of an upright arm, under everything where the arm lies or hangs."""
        bodies = [tube(robot, q) for q in poses]
        points = np.concatenate([rings(body) for body in bodies]).reshape(-1, 3)
        low, high = points.min(axis=0), points.max(axis=0)
        rise = bodies[0].tangents[0, 2]
        z = bodies[0].points[0, 2] if rise > 0.5 else low[2] - (0.12 * robot.length if rise < -0.5 else 0.0)
        span = 0.55 * max(high[:2] - low[:2]) + 0.9 * bodies[0].radius.max()
        full = max(FULL_CURVATURE / robot.length, *(body.curvature.max() for body in bodies))
        return cls(np.array([*0.5 * (low + high)[:2], z]), float(span), float(full))


def draw(axes: Axes, robot: sd.Robot, q: np.ndarray, options: argparse.Namespace, stage: Stage) -> None:
    """One robot in one pose."""
    camera = Camera.at(*(options.view or VIEWS.get(robot.name, VIEW)))
    body, frames = tube(robot, q, 24), frame_poses(robot, q)
    skin_rings = rings(body, 28)
    scene = Scene(camera)
    pressure = options.pressure if options.pressure is not None else np.zeros(len(robot.chamber_names))
    scene.add(*skin(skin_rings, body_colors(robot, body, options.color_by, pressure, stage.full)))
    thickness, grey = 0.035 * robot.length, np.array(to_rgb(PLATE))
    first = np.flatnonzero(np.diff(body.segment, prepend=-1))
    ends = np.append(first[1:] - 1, len(body.points) - 1)
    for k, scale, thick in [(0, 1.25, 1.6), *((e, 1.06, 0.5) for e in ends)]:
        centre = body.points[k] - 0.5 * thick * thickness * body.tangents[k] * (
            k == 0
        )  # the base lies behind
        ring = plate(centre, body.tangents[k], scale * body.radius[k], thick * thickness)
        scene.add(*skin(ring, np.tile(grey, (len(ring), 1))))
    draw_ground(axes, camera, stage, skin_rings)
    scene.draw(axes)
    if options.frames:
        draw_frames(axes, camera, frames, 0.16 * robot.length)


def draw_ground(axes: Axes, camera: Camera, stage: Stage, skin_rings: np.ndarray) -> None:
    """A round floor with a grid, and the shadow of the body under a light from above."""
    middle, span, _ = stage
    angle = np.linspace(0.0, 2.0 * np.pi, 90)
    rim = middle + span * np.stack([np.cos(angle), np.sin(angle), 0.0 * angle], axis=1)
    axes.add_collection(
        PolyCollection([camera.see(rim)[:, :2]], facecolors=GROUND, edgecolors=LINE, lw=0.8, zorder=0)
    )
    lines = []
    for x in np.linspace(-0.9, 0.9, 10)[1:-1] * span:
        half = np.sqrt(span**2 - x**2)
        lines += [
            middle + np.array([[x, -half, 0.0], [x, half, 0.0]]),
            middle + np.array([[-half, x, 0.0], [half, x, 0.0]]),
        ]
    axes.add_collection(
        LineCollection([camera.see(line)[:, :2] for line in lines], colors=LINE, lw=0.6, zorder=1)
    )
    shadow, _ = skin(skin_rings, np.zeros((len(skin_rings), 3)))
    shadow[..., 2] = middle[2]
    axes.add_collection(
        PolyCollection(camera.see(shadow)[..., :2], facecolors=SHADOW, edgecolors=SHADOW, lw=0.4, zorder=2)
    )


def draw_frames(axes: Axes, camera: Camera, frames: np.ndarray, size: float) -> None:
    for X_RF in frames:
        for axis, color in zip(X_RF[:3, :3].T, FRAME_COLORS, strict=True):
            (x0, y0, _), (x1, y1, _) = camera.see(np.stack([X_RF[:3, 3], X_RF[:3, 3] + size * axis]))
            axes.plot([x0, x1], [y0, y1], color=color, lw=1.8, zorder=4, solid_capstyle='round')


def finish(axes: Axes) -> None:
    """A square view of all that was drawn."""
    axes.autoscale_view()
    (x0, x1), (y0, y1) = axes.get_xlim(), axes.get_ylim()
    half = 0.5 * max(x1 - x0, y1 - y0)
    x, y = 0.5 * (x0 + x1), 0.5 * (y0 + y1)
    axes.set(xlim=(x - half, x + half), ylim=(y - half, y + half), aspect='equal')
    axes.axis('off')


def picture(robot: sd.Robot, q: np.ndarray, options: argparse.Namespace) -> None:
    figure, axes = plt.subplots(figsize=(5.0, 5.0))
    draw(axes, robot, q, options, Stage.of(robot, q[None]))
    finish(axes)
    save(figure, options.out)


def animation(robot: sd.Robot, q: np.ndarray, options: argparse.Namespace) -> None:
    """The motion that follows when the robot is let go of in pose q."""
    t = np.arange(0.0, options.duration, 1.0 / options.fps)
    still, none = np.zeros(robot.nq), np.zeros((len(t), len(robot.chamber_names)))
    motion = robot.simulate(q, still, none, t).q
    few = motion[:: max(1, len(t) // 12)]
    stage = Stage.of(robot, few)
    figure, axes = plt.subplots(figsize=(3.6, 3.6), dpi=90)
    for pose in few:
        draw(axes, robot, pose, options, stage)
    finish(axes)
    limits = {'xlim': axes.get_xlim(), 'ylim': axes.get_ylim()}

    def frame(k: int) -> None:
        axes.clear()
        draw(axes, robot, motion[k], options, stage)
        finish(axes)
        axes.set(**limits)

    FuncAnimation(figure, frame, frames=len(t)).save(options.out, PillowWriter(fps=options.fps))
    plt.close(figure)


def readme(options: argparse.Namespace) -> None:
    """The shipped robots in one row."""
    names = ['honeycomb_arm', 'pneumatic_arm', 'floating_actuator', 'fabric_arm', 'bending_actuator']
    figure, panels = plt.subplots(1, 5, figsize=(11.0, 2.7))
    for axes, name in zip(panels, names, strict=True):
        robot = sd.load(name)
        q = np.array(POSES[name])
        draw(axes, robot, q, options, Stage.of(robot, q[None]))
        finish(axes)
        axes.set_title(name, loc='center', y=-0.12)
    options.out = options.readme
    save(figure, options.out)


def save(figure: Any, out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=130, facecolor='white')
    plt.close(figure)


def pose_of(robot: sd.Robot, given: list[float] | None) -> np.ndarray:
    """The coordinates to draw: those given, the robot's show pose, or a gentle bend."""
    if given is not None:
        if len(given) != robot.nq:
            raise ValueError(
                f'--pose: expected {robot.nq} numbers ({", ".join(robot.coordinate_names)}), got {len(given)}'
            )
        return np.array(given)
    return np.array(POSES[robot.name]) if robot.name in POSES else robot.rest + 0.1


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='python -m tools.render', description=(__doc__ or '').splitlines()[0]
    )
    parser.add_argument('robot', nargs='?', help='shipped robot or the path of a robot file')
    parser.add_argument(
        '--out', type=Path, help='PNG, or GIF with --animate; default: <robot>.png or .gif here'
    )
    parser.add_argument('--pose', type=float, nargs='+', metavar='Q', help='coordinates [rad or m]')
    parser.add_argument('--pressure', type=float, nargs='+', metavar='P', help='chamber pressures [Pa]')
    parser.add_argument('--color-by', choices=('curvature', 'pressure'), default='curvature')
    parser.add_argument('--view', type=float, nargs=2, metavar=('AZIMUTH', 'ELEVATION'), help='[deg]')
    parser.add_argument('--frames', action='store_true', help='draw the frames of the segments')
    parser.add_argument('--animate', action='store_true', help='let the robot go and show its motion')
    parser.add_argument('--duration', type=float, default=3.0, help='of the animation [s]')
    parser.add_argument('--fps', type=float, default=15.0, help='pictures per second of the animation')
    parser.add_argument('--readme', type=Path, metavar='PNG', help='the shipped robots in one row')
    options = parser.parse_args()
    if (options.robot is None) == (options.readme is None):
        parser.error('name a robot, or --readme PNG')
    return options


def main() -> int:
    options = arguments()
    plt.style.use(Path(__file__).resolve().parent.parent / 'docs' / 'figures' / 'style.mplstyle')
    try:
        if options.readme:
            readme(options)
        else:
            robot = sd.load(options.robot)
            options.out = options.out or Path(f'{robot.name}.{"gif" if options.animate else "png"}')
            (animation if options.animate else picture)(robot, pose_of(robot, options.pose), options)
    except (ValueError, OSError, sd.SoftRobotError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f'{options.out}: {options.out.stat().st_size / 1e3:.0f} kB')
    return 0


if __name__ == '__main__':
    sys.exit(main())
