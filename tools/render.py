"""Draw a robot without RViz: its smooth body as a shaded tube, plates, frames and ground.

python -m tools.render honeycomb_arm --out honeycomb_arm.png
python -m tools.render honeycomb_arm --animate --out swing.gif       release from a pose, without pressure
python -m tools.render my_arm.yaml --pose 0.4 0 0.3 0 -0.6 0         coordinates in the robot's order
python -m tools.render honeycomb_arm --bag run1 --at 3               a recording at 3 s; --animate: the whole recording
python -m tools.render --readme docs/figures/readme.png              the shipped robots in one row
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
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
from soft_dynamics.atomic_files import aside
from soft_dynamics.geometry.tube import Tube, frame_poses, rings, segment_pressures, tube
from soft_estimation.commands.run_command import run_command
from tools.drawing import Camera, Scene, plate, skin
from tools.recorded_scene import Moment, RecordedScene

POSES = {  # show poses
    'bending_actuator': [-0.22, -0.24, -0.26, -0.28, -0.30],
    'fabric_arm': [0.0, 0.55, 0.0, -0.12, 0.05, 0.0, 0.5, 0.0, -0.15, 0.05, 0.0, 0.4, 0.0, -0.1, 0.0],
    'floating_actuator': [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.045, 0.004, 0.03],
    'honeycomb_arm': [0.25, 0.30, 0.60, 0.25, 0.85, 0.10, 1.00, 0.20],
    'pneumatic_arm': [-0.25, -0.55, 0.25, 0.95, 0.30, 1.10],
}
VIEWS = {
    'bending_actuator': (-112.0, 52.0),
    'fabric_arm': (-150.0, 14.0),
}  # one lies on a table, one starts at a wall
VIEW = (-62.0, 18.0)  # azimuth, elevation [deg]
SHADES = plt.get_cmap('viridis')
PLATE, RIGID, GROUND, SHADOW, LINE = '#5b626d', '#c3c8cf', '#f5f6f8', '#dde0e5', '#e3e6ea'
FRAME_COLORS = ('#D55E00', '#009E73', '#0072B2')  # x, y, z
GHOST, PATH, FORCE = (
    '#D65E00',
    '#0073B3',
    '#CC78A6',
)  # predicted body, reference, wrench, as in shape_publisher
FORCE_SCALE = 0.02  # [m/N] as in shape_publisher
DURATION = 3.0  # [s] duration of an animation without a bag
FULL_CURVATURE = 1.2  # [rad] total bend that gets the brightest colour, unless a body bends more


def body_colors(robot: sd.Robot, body: Any, color_by: str, pressure: np.ndarray, full: float) -> np.ndarray:
    """Return colours (n, 3) by curvature relative to `full` [1/m], or by the mean pressure in each segment."""
    if color_by == 'pressure':
        return SHADES(segment_pressures(robot.description, pressure)[body.segment])[:, :3]
    colors = SHADES(0.15 + 0.75 * np.clip(body.curvature / full, 0.0, 1.0))[:, :3]
    rigid = [not segment.moves for segment in robot.description.segments]
    colors[np.array(rigid)[body.segment]] = to_rgb(RIGID)
    return colors


class Stage(NamedTuple):
    """Constant parts of a scene: the floor, and the curvature [1/m] that gets the brightest colour."""

    middle: np.ndarray  # (3,) [m]
    span: float  # [m]
    full: float

    @classmethod
    def of(cls, robot: sd.Robot, bodies: list[Tube]) -> Stage:
        """Return the stage: the floor is under the base of an upright arm, and below a lying or hanging arm."""
        points = np.concatenate([rings(body) for body in bodies]).reshape(-1, 3)
        low, high = points.min(axis=0), points.max(axis=0)
        rise = bodies[0].tangents[0, 2]
        z = bodies[0].points[0, 2] if rise > 0.5 else low[2] - (0.12 * robot.length if rise < -0.5 else 0.0)
        span = 0.55 * max(high[:2] - low[:2]) + 0.9 * bodies[0].radius.max()
        full = max(FULL_CURVATURE / robot.length, *(body.curvature.max() for body in bodies))
        return cls(np.array([*0.5 * (low + high)[:2], z]), float(span), float(full))


def bodies_of(robot: sd.Robot, moment: Moment, offset: np.ndarray, samples: int = 12) -> list[Tube]:
    """Draw the measured body and the predicted body, if any, shifted by `offset` [m]."""
    bodies = [tube(robot, moment.q, samples)]
    if moment.predicted is not None:
        ghost = tube(robot, moment.predicted, samples)
        bodies.append(ghost._replace(points=ghost.points + offset))
    return bodies


def draw(axes: Axes, robot: sd.Robot, moment: Moment, options: argparse.Namespace, stage: Stage) -> None:
    """Draw a robot at one time."""
    camera = Camera.at(*(options.view or VIEWS.get(robot.name, VIEW)))
    body, *ghosts = bodies_of(robot, moment, np.array(options.predicted_offset), 24)
    skins = [rings(each, 28) for each in (body, *ghosts)]
    scene = Scene(camera)
    scene.add(*skin(skins[0], body_colors(robot, body, options.color_by, moment.pressure, stage.full)))
    for ghost in skins[1:]:
        scene.add(*skin(ghost, np.tile(to_rgb(GHOST), (len(ghost), 1))), alpha=0.4)
    add_plates(scene, body, 0.035 * robot.length)
    draw_ground(axes, camera, stage, skins)
    scene.draw(axes)
    if options.frames:
        draw_frames(axes, camera, frame_poses(robot, moment.q), 0.16 * robot.length)
    if moment.path is not None:
        axes.plot(*camera.see(moment.path)[:, :2].T, color=PATH, lw=1.8, zorder=5)
    if moment.force is not None:
        ends = body.points[0] + np.outer([0.0, FORCE_SCALE], moment.force)
        start, end = camera.see(ends)[:, :2]
        axes.annotate('', end, start, arrowprops={'arrowstyle': '-|>', 'color': FORCE, 'lw': 2.5}, zorder=6)
        axes.update_datalim([start, end])


def add_plates(scene: Scene, body: Tube, thickness: float) -> None:
    """Draw a plate behind the base, and one at the end of each segment."""
    first = np.flatnonzero(np.diff(body.segment, prepend=-1))
    ends = np.append(first[1:] - 1, len(body.points) - 1)
    for k, scale, thick in [(0, 1.25, 1.6), *((e, 1.06, 0.5) for e in ends)]:
        behind = 0.5 * thick * thickness * (k == 0)
        centre = body.points[k] - behind * body.tangents[k]
        ring = plate(centre, body.tangents[k], scale * body.radius[k], thick * thickness)
        scene.add(*skin(ring, np.tile(to_rgb(PLATE), (len(ring), 1))))


def draw_ground(axes: Axes, camera: Camera, stage: Stage, skins: list[np.ndarray]) -> None:
    """Draw a round floor with a grid, and the shadows of the bodies under a light from above."""
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
    shadow = np.concatenate([skin(rings_of, np.zeros((len(rings_of), 3)))[0] for rings_of in skins])
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
    """Show everything in a square view."""
    axes.autoscale_view()
    (x0, x1), (y0, y1) = axes.get_xlim(), axes.get_ylim()
    half = 0.5 * max(x1 - x0, y1 - y0)
    x, y = 0.5 * (x0 + x1), 0.5 * (y0 + y1)
    axes.set(xlim=(x - half, x + half), ylim=(y - half, y + half), aspect='equal')
    axes.axis('off')


def moments(robot: sd.Robot, options: argparse.Namespace) -> list[Moment]:
    """Yield the pictures: of the recording, of the released robot, or of the pose."""
    if options.bag:
        scene = RecordedScene(options.bag, robot)
        end = scene.recording.duration
        if not options.animate:
            return [scene.at(end if options.at is None else options.at)]
        start = options.at or 0.0
        stop = end if options.duration is None else min(end, start + options.duration)
        return [scene.at(t) for t in np.arange(start, stop, 1.0 / options.fps)] or [scene.at(start)]
    q, pressure = pose_of(robot, options.pose), pressure_of(robot, options.pressure)
    if not options.animate:
        return [Moment(q, pressure)]
    t = np.arange(0.0, options.duration or DURATION, 1.0 / options.fps)
    run = robot.simulate(q, np.zeros(robot.nq), np.zeros((len(t), len(pressure))), t)
    return [Moment(q, pressure) for q in run.q]


def stage_of(robot: sd.Robot, shown: list[Moment], options: argparse.Namespace) -> Stage:
    offset = np.array(options.predicted_offset)
    return Stage.of(robot, [body for moment in shown for body in bodies_of(robot, moment, offset)])


def picture(robot: sd.Robot, shown: list[Moment], options: argparse.Namespace) -> None:
    figure, axes = plt.subplots(figsize=(5.0, 5.0))
    draw(axes, robot, shown[0], options, stage_of(robot, shown, options))
    finish(axes)
    save(figure, options.out)


def animation(robot: sd.Robot, shown: list[Moment], options: argparse.Namespace) -> None:
    few = shown[:: max(1, len(shown) // 12)]
    stage = stage_of(robot, few, options)
    figure, axes = plt.subplots(figsize=(3.6, 3.6), dpi=90)
    for moment in few:
        draw(axes, robot, moment, options, stage)
    finish(axes)
    limits = {'xlim': axes.get_xlim(), 'ylim': axes.get_ylim()}

    def frame(k: int) -> None:
        axes.clear()
        draw(axes, robot, shown[k], options, stage)
        finish(axes)
        axes.set(**limits)

    film = FuncAnimation(figure, frame, frames=len(shown))
    write(options.out, lambda path: film.save(path, PillowWriter(fps=options.fps)))
    plt.close(figure)


def readme(options: argparse.Namespace) -> None:
    """Draw the shipped robots in one row."""
    names = ['honeycomb_arm', 'pneumatic_arm', 'floating_actuator', 'fabric_arm', 'bending_actuator']
    figure, panels = plt.subplots(1, 5, figsize=(11.0, 2.7))
    for axes, name in zip(panels, names, strict=True):
        robot = sd.load(name)
        shown = [Moment(np.array(POSES[name]), np.zeros(len(robot.chamber_names)))]
        draw(axes, robot, shown[0], options, stage_of(robot, shown, options))
        finish(axes)
        axes.set_title(name, loc='center', y=-0.12)
    options.out = options.readme
    save(figure, options.out)


def write(out: Path, how: Callable[[Path], object]) -> None:
    """Write the file completely or not at all, also when interrupted."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with aside(out) as new:
        how(new)
        new.replace(out)


def save(figure: Any, out: Path) -> None:
    write(out, lambda path: figure.savefig(path, dpi=130, facecolor='white'))
    plt.close(figure)


def pose_of(robot: sd.Robot, given: list[float] | None) -> np.ndarray:
    """Return the coordinates to draw: the given ones, the show pose of the robot, or a gentle bend."""
    if given is not None:
        if len(given) != robot.nq:
            raise ValueError(
                f'--pose: must have {robot.nq} numbers ({", ".join(robot.coordinate_names)}), got {len(given)}'
            )
        return np.array(given)
    return np.array(POSES[robot.name]) if robot.name in POSES else robot.rest + 0.1


def pressure_of(robot: sd.Robot, given: list[float] | None) -> np.ndarray:
    """Return the chamber pressures, zero unless given."""
    names = robot.chamber_names
    if given is not None and len(given) != len(names):
        raise ValueError(f'--pressure: must have {len(names)} numbers ({", ".join(names)}), got {len(given)}')
    return np.zeros(len(names)) if given is None else np.array(given)


def positive(text: str) -> float:
    if not 0.0 < float(text) < float('inf'):
        raise argparse.ArgumentTypeError(f'must be > 0, got {text}')
    return float(text)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog='python -m tools.render',
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument('robot', nargs='?', help='shipped robot or path of a robot file')
    made.add_argument(
        '--out',
        type=Path,
        help='PNG, or GIF with --animate; default: <robot>.png or .gif in the current folder',
    )
    made.add_argument('--pose', type=float, nargs='+', metavar='Q', help='coordinates [rad or m]')
    made.add_argument('--pressure', type=float, nargs='+', metavar='P', help='chamber pressures [Pa]')
    made.add_argument('--color-by', choices=('curvature', 'pressure'), default='curvature')
    made.add_argument('--view', type=float, nargs=2, metavar=('AZIMUTH', 'ELEVATION'), help='[deg]')
    made.add_argument('--frames', action='store_true', help='draw the frames of the segments')
    made.add_argument('--animate', action='store_true', help='release the robot and show its motion')
    made.add_argument(
        '--duration', type=positive, help=f'length of the animation [s]; default {DURATION:g}, or the bag'
    )
    made.add_argument('--fps', type=positive, default=15.0, help='frames per second of the animation')
    made.add_argument(
        '--bag',
        type=Path,
        help='recording: measured body, free run of the model, reference, base force',
    )
    made.add_argument(
        '--at', type=float, help='time in the bag [s]; default: the end, or the start of an animation'
    )
    made.add_argument(
        '--predicted-offset',
        type=float,
        nargs=3,
        default=(0.0, 0.0, 0.0),
        metavar=('X', 'Y', 'Z'),
        help='shift of the predicted body from the measured one [m]',
    )
    made.add_argument('--readme', type=Path, metavar='PNG', help='draw the shipped robots in one row')
    return made


def command(options: argparse.Namespace) -> int:
    if (options.robot is None) == (options.readme is None):
        raise ValueError('name a robot, or --readme PNG')
    if options.bag and (options.pose or options.pressure):
        raise ValueError('--bag excludes --pose and --pressure')
    plt.style.use(Path(__file__).resolve().parent.parent / 'docs' / 'figures' / 'style.mplstyle')
    if options.readme:
        readme(options)
    else:
        robot = sd.load(options.robot)
        options.out = options.out or Path(f'{robot.name}.{"gif" if options.animate else "png"}')
        (animation if options.animate else picture)(robot, moments(robot, options), options)
    print(f'{options.out}: {options.out.stat().st_size / 1e3:.0f} kB')
    return 0


def main(args: list[str] | None = None) -> int:
    return run_command('tools.render', parser(), command, args)


if __name__ == '__main__':
    sys.exit(main())
