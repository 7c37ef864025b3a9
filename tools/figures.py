"""Make the figures of docs/theory from the models and the examples.

    python -m tools.figures [PAGE ...]        all figures, or those of some pages: index chain jensen mehl ...

Each function below draws the figure of one page, with data from examples/ where possible.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use('Agg')
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import soft_dynamics as sd
from examples import (
    bending_actuator_step,
    compare_placements,
    fabric_arm_falls,
    honeycomb_free_swing,
    mehl_base_wrench,
    simulate_pneumatic_arm,
)
from soft_dynamics.segments.universal import from_constant_curvature

FOLDER = Path(__file__).resolve().parent.parent / 'docs' / 'figures'
BLUE, RED, GREEN, YELLOW = '#0072B2', '#D55E00', '#009E73', '#E69F00'  # as in style.mplstyle
GREY = '#777777'
SHADES = plt.get_cmap('viridis')

# ---- the robots, side view ---------------------------------------------------------------------------------------


def _plain(axes: Axes, title: str) -> None:
    axes.set_title(title, loc='center')
    axes.set_aspect('equal')
    axes.axis('off')


def _square(axes: Axes) -> None:
    """Set square limits that contain everything, so that panels side by side have one scale."""
    box = axes.dataLim
    half = 0.54 * max(box.width, box.height)
    middle = 0.5 * (box.x0 + box.x1), 0.5 * (box.y0 + box.y1)
    axes.set(xlim=(middle[0] - half, middle[0] + half), ylim=(middle[1] - half, middle[1] + half))


def _ground(axes: Axes, width: float) -> None:
    axes.plot([-width, width], [0.0, 0.0], color='k', lw=2.5, zorder=0)


def _draw_arcs(axes: Axes, robot: sd.Robot, q: Any) -> None:
    """Draw arcs and links in the plane x-z."""
    start = 0.0
    for segment in robot.description.segments:
        stretch = np.linspace(start, start + segment.length, 30)
        p = robot.centerline(q, np.minimum(stretch, robot.length))
        arc = segment.type == 'arc'
        axes.plot(p[:, 0], p[:, 2], color=BLUE if arc else GREY, lw=7 if arc else 4, solid_capstyle='butt')
        start += segment.length
    _ground(axes, 0.25 * robot.length)


def _draw_joints(axes: Axes, points: np.ndarray, hinges: np.ndarray, width: float) -> None:
    axes.plot(*points.T, color=GREY, lw=4)
    axes.plot(*hinges.T, 'o', color=RED, ms=6)
    _ground(axes, width)


def _draw_discs(axes: Axes, robot: sd.Robot, q: np.ndarray) -> None:
    """Draw discs edge on, threads, and springs at the far rim, in the plane z-y."""
    X = robot.forward_kinematics(q)
    o, far = X[:, :3, 3], X[:, :3, 3] + 2.0 * X[:, :3, 1]
    axes.plot(far[:, 2], far[:, 1], ':', color=YELLOW, lw=1.2, clip_on=False)
    axes.plot(o[:, 2], o[:, 1], color='k', lw=1.2)
    for a, b in zip(o, far, strict=True):
        axes.plot([a[2], b[2]], [a[1], b[1]], color=GREY, lw=3.5, clip_on=False)
    axes.plot(o[1:, 2], o[1:, 1], 'o', color=GREEN, ms=4)


def index() -> Figure:
    """Five papers, four primitives."""
    figure, panels = plt.subplots(1, 5, figsize=(8.6, 2.5))
    arm = sd.load('pneumatic_arm')
    _draw_arcs(panels[0], arm, [0.0, 0.9, 0.0, -0.7, 0.0, 0.9])
    _plain(panels[0], 'Jensen')
    actuator = sd.load('floating_actuator')
    _draw_arcs(panels[1], actuator, [*np.zeros(6), 0.045, 0.0, 0.02])
    _plain(panels[1], 'Mehl')
    fabric = sd.load('fabric_arm')
    pose = np.zeros(fabric.nq)
    pose[[1, 3, 6, 8, 11, 13]] = 0.7, 0.3, 0.5, -0.2, 0.3, 0.4
    _draw_discs(panels[2], fabric, pose)
    _plain(panels[2], 'Schultz')
    comb = sd.load('honeycomb_arm')
    q = np.zeros(comb.nq)
    q[::2] = 0.5, 0.5, -0.3, -0.6
    X = comb.forward_kinematics(q)[:, :3, 3]
    axis = comb.forward_kinematics(q)[:-1, :3, 2]
    half = 0.5 * np.array([s.length for s in comb.description.segments])
    joints = X[:-1] + half[:, None] * axis
    points = np.insert(X, np.arange(1, len(X)), joints, axis=0)
    _draw_joints(panels[3], points[:, [0, 2]] * [1, -1], joints[:, [0, 2]] * [1, -1], 0.12)
    _plain(panels[3], 'Wang')
    bender = sd.load('bending_actuator')
    q = np.full(bender.nq, -0.22)
    ends = bender.forward_kinematics(q)[:, :2, 3]
    _draw_joints(panels[4], ends, ends[:-1], 0.03)
    curve = bender.centerline(q, np.linspace(0.0, bender.length, 50))
    panels[4].plot(curve[:, 0], curve[:, 1], '--', color='k', lw=0.8)
    _plain(panels[4], 'Godage')
    for axes in panels:
        _square(axes)
    for color, marker, name in (
        (GREY, '-', 'rigid body'),
        (RED, 'o', 'one-axis joint'),
        (GREEN, 'o', 'swing and ball'),
        (BLUE, '-', 'arc'),
    ):
        panels[0].plot([], [], marker, color=color, lw=5, ms=7, label=name)
    figure.legend(*panels[0].get_legend_handles_labels(), loc='outside lower center', ncols=4)
    return figure


# ---- the recursions and the models -------------------------------------------------------------------------------


def _error(robot: sd.Robot, t: np.ndarray, exact: np.ndarray, method: str, step: float) -> float:
    q = np.zeros(robot.nq)
    try:
        run = robot.simulate(q, q, _smooth_pressures, t, method, step=step, tolerance=1e-14)
    except sd.NotConverged:
        return np.nan
    return float(np.abs(run.q - exact).max())


def _smooth_pressures(t: float) -> np.ndarray:
    return 75e3 * (1.0 + np.sin(0.7 * t * np.arange(1, 13)))


def chain() -> Figure:
    """Error of the two compiled methods over the step size, on a stiff arm."""
    robot = sd.load('pneumatic_arm')
    t = np.arange(0.0, 2.001, 0.04)
    still = np.zeros(robot.nq)
    exact = robot.simulate(still, still, _smooth_pressures, t, 'rk4', step=1e-4).q
    figure, axes = plt.subplots(figsize=(4.6, 3.0))
    for method, label, steps, color in (
        ('implicit', 'implicit (SDIRK4)', 0.04 / 2.0 ** np.arange(6), BLUE),
        ('rk4', 'RK4', np.array([0.005, 0.004, 0.00333, 0.0025, 0.002, 0.001, 0.0005]), RED),
    ):
        errors = np.array([_error(robot, t, exact, method, step) for step in steps])
        good = errors < 0.1
        axes.loglog(1e3 * steps[good], errors[good], 'o-', color=color, ms=4, label=label)
    limit = 2.785 / np.abs(np.linalg.eigvals(robot.linearize(still, still, still)[0])).max()
    axes.axvline(1e3 * limit, color=RED, ls=':', lw=1.0)
    axes.text(1e3 * limit * 1.1, 3e-10, 'RK4 unstable', color=RED, fontsize=8)
    axes.plot([5.0, 40.0], [1e-9, 1e-9 * 8.0**4], color=GREY, lw=0.8)
    axes.text(14.0, 1.5e-8, 'slope 4', color=GREY, fontsize=8)
    axes.set(
        xlabel='step [ms]', ylabel='largest error in 2 s [rad]', title='pneumatic_arm under smooth pressures'
    )
    axes.legend()
    return figure


def jensen() -> Figure:
    """The arm under random pressure steps."""
    robot = sd.load('pneumatic_arm')
    run = simulate_pneumatic_arm.motion(robot, 10.0, 5e-3)
    figure, (top, *rows) = plt.subplots(4, 1, figsize=(6.6, 5.4), sharex=True)
    for k in range(4):
        top.plot(run.t, 1e-3 * run.inputs[:, k], lw=1.0, label=f'$p_{k}$')
    top.set(title='pressures in joint 1 [kPa]', ylim=(0.0, 160.0))
    top.legend(ncols=4, loc='lower right', bbox_to_anchor=(1.0, 0.95))
    for k, axes in enumerate(rows):
        axes.plot(run.t, run.q[:, 2 * k], color=RED, label='$u$')
        axes.plot(run.t, run.q[:, 2 * k + 1], color=BLUE, label='$v$')
        axes.set(title=f'joint {k + 1} [rad]')
    rows[0].legend(ncols=2, loc='lower right', bbox_to_anchor=(1.0, 0.95))
    rows[-1].set_xlabel('time [s]')
    return figure


def mehl() -> Figure:
    """Motion after a pressure step, and the reading of the force/torque sensor."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 2.9))
    robot = sd.load('floating_actuator')
    run, qdd = mehl_base_wrench.step_response(robot, 0.6)
    W = robot.base_wrench(run.q, run.qd, qdd)
    for k, name in enumerate((r'$\Delta_x$', r'$\Delta_y$', r'$\delta L$')):
        left.plot(run.t, 1e3 * run.q[:, 6 + k], label=name)
    left.set(title='coordinates [mm]', xlabel='time [s]')
    left.legend(ncols=3, loc='upper right')
    for k, name in ((3, '$f_x$'), (4, '$f_y$'), (5, '$f_z$')):
        right.plot(run.t, W[:, k], label=name)
    weight = robot.description.segments[0].mass * 9.81
    right.axhline(weight, color=GREY, lw=0.8, ls='--')
    right.text(0.6, weight + 0.1, 'weight', color=GREY, fontsize=8, ha='right')
    right.set(title='force on the robot at its base [N]', xlabel='time [s]')
    right.legend(ncols=3, loc='upper right')
    return figure


def schultz() -> Figure:
    """Fall and curl, as a filmstrip and as angles."""
    robot = sd.load('fabric_arm')
    t = np.arange(0.0, 12.001, 0.02)
    film = (0.0, 0.8, 1.6, 2.4, 3.2, 12.0)
    figure = plt.figure(figsize=(8.6, 6.0))
    grid = figure.add_gridspec(3, len(film), height_ratios=[1.0, 1.0, 1.05])
    angles = figure.add_subplot(grid[2, :])
    for row, force in enumerate((12.0, 12.0 * np.pi)):
        run, _ = fabric_arm_falls.fall(force, t)
        for column, now in enumerate(film):
            axes = figure.add_subplot(grid[row, column])
            _draw_discs(axes, robot, run.q[np.searchsorted(t, now - 1e-9)])
            _plain(axes, f'{now:g} s' if row == 0 else '')
            axes.set(xlim=(-3.6, 3.6), ylim=(-5.1, 3.1))
            if column == 0:
                axes.text(-3.4, -4.6, f'F = {force:.3g} N', fontsize=9)
        if row:
            continue
        for k, color in zip(range(3), (BLUE, RED, GREEN), strict=True):
            angles.plot(run.t, run.q[:, 5 * k + 1], color=color, label=rf'$\beta$ of disc {k + 2}')
            angles.plot(run.t, run.q[:, 5 * k + 3], '--', color=color, label=rf'$\psi$ of disc {k + 2}')
    for singular in (0.0, 0.5 * np.pi):
        angles.axhline(singular, color='k', lw=0.8)
    angles.text(0.05, 0.5 * np.pi + 0.06, r'no inertia at $\psi = \pi/2$', fontsize=8)
    angles.text(11.95, 0.07, r'no inertia at $\beta = 0$', fontsize=8, ha='right')
    angles.set(xlabel='time [s]', ylabel='angle for F = 12 N [rad]', xlim=(0.0, 12.0), ylim=(-1.0, 2.4))
    angles.legend(ncols=6, loc='upper center')
    return figure


def wang() -> Figure:
    """Free swing, and the twist between a bent segment and its universal joint."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.2, 3.0))
    for load, color in ((0.0, BLUE), (0.5, RED)):
        run, tip_W = honeycomb_free_swing.swing(load, 6.0)
        left.plot(
            run.t, tip_W[:, 1], color=color, label=f'{1e3 * load:.0f} g at the tip' if load else 'no load'
        )
    left.set(title='free swing: tip to the side [m]', xlabel='time [s]')
    left.legend(loc='upper right')
    psi = np.linspace(0.0, 0.999 * np.pi, 300)
    for phi, color in zip((15, 30, 45, 60, 75), SHADES(np.linspace(0.0, 0.85, 5)), strict=True):
        twist = [np.degrees(from_constant_curvature(np.radians(phi), bend, 1.0).twist) for bend in psi]
        right.plot(np.degrees(psi), twist, color=color, label=rf'$\phi$ = {phi}°')
    right.axvline(90.0, color=GREY, lw=0.8, ls='--')
    right.set(title='twist of the arc against the universal joint [deg]', xlabel=r'bend $\psi$ [deg]')
    right.set(xticks=range(0, 181, 45), yticks=range(-180, 1, 45))
    right.legend(loc='lower left')
    return figure


def godage() -> Figure:
    """Step response with both interpretations of the inertia, and the shape."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.2, 3.0), gridspec_kw={'width_ratios': [1.7, 1.0]})
    for (name, overrides), color in zip(bending_actuator_step.READINGS.items(), (BLUE, RED), strict=True):
        run, ends = bending_actuator_step.step_response(overrides, 4.0)
        left.plot(run.t, -1e3 * ends[:, -1, 0], color=color, lw=1.2, label=name)
    left.axvspan(0.12, 2.88, color='k', alpha=0.05, lw=0)
    left.text(2.86, 0.5, '119 kPa', ha='right', color=GREY, fontsize=8)
    left.set(title='tip to the side, -X [mm]', xlabel='time [s]')
    left.legend(loc='upper right')
    robot = sd.load('bending_actuator')
    run, ends = bending_actuator_step.step_response({}, 0.4)
    moments = np.arange(0.12, 0.2051, 0.014)
    for now, color in zip(moments, SHADES(np.linspace(0.0, 0.85, moments.size)), strict=True):
        k = np.searchsorted(run.t, now)
        curve = 1e3 * robot.centerline(run.q[k], np.linspace(0.0, robot.length, 60))
        right.plot(curve[:, 0], curve[:, 1], color=color)
        right.plot(*1e3 * ends[k].T, 'o', color=color, ms=3)
    right.set(title='first swing [mm]', xlabel='X', ylabel='Y', aspect='equal', xlim=(-95.0, 45.0))
    return figure


def placements() -> Figure:
    """Lumped and point masses compared with distributed mass."""
    figure, (first, second, third) = plt.subplots(1, 3, figsize=(9.0, 2.9))
    colors = dict(zip(compare_placements.PLACEMENTS, (RED, GREEN, BLUE), strict=True))
    bend = np.linspace(0.0, np.pi, 60)
    names = ('pneumatic_arm', 'floating_actuator')
    for k, (placement, color) in enumerate(colors.items()):
        joint = compare_placements.robot_with('bare joint', placement)
        segment = joint.description.segments[0]
        M = joint.mass_matrix(np.stack([bend, 0.0 * bend], 1))[:, 0, 0] / (segment.mass * segment.length**2)
        first.plot(np.degrees(bend), M, color=color, label=placement)
        f = np.concatenate(
            [
                np.unique(
                    compare_placements.frequencies(compare_placements.robot_with(n, placement))[1].round(2)
                )
                for n in names
            ]
        )
        second.bar(np.arange(f.size) + 0.27 * (k - 1), f, 0.25, color=color)
        robot = compare_placements.robot_with('floating_actuator', placement)
        run = compare_placements.released(robot, 'floating_actuator', 0.6)
        third.plot(run.t, 1e3 * compare_placements.tip(robot, run)[:, 0], color=color, lw=1.2)
    first.set(
        title=r'bare joint: $M_{uu} / m h^2$', xlabel='bend [deg]', ylim=(0.0, None), xticks=range(0, 181, 60)
    )
    first.legend(loc='center right', bbox_to_anchor=(1.0, 0.6))
    second.set(
        title='natural frequencies [Hz]', xticks=range(5), xticklabels=['1', '2', '3', 'bend', 'stretch']
    )
    second.set_xlabel('pneumatic_arm      floating_actuator')
    second.grid(axis='x')
    third.set(title='floating_actuator let go: tip x [mm]', xlabel='time [s]')
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    make.__name__: make for make in (index, chain, jensen, mehl, schultz, wang, godage, placements)
}


def main() -> None:
    parser = argparse.ArgumentParser(description='Make the figures of docs/theory.')
    parser.add_argument('pages', nargs='*', metavar='PAGE', help=f'one of {", ".join(FIGURES)}; default: all')
    pages = parser.parse_args().pages or list(FIGURES)
    unknown = sorted(set(pages) - set(FIGURES))
    if unknown:
        parser.error(f'no figure for {", ".join(unknown)}; there are {", ".join(FIGURES)}')
    with plt.style.context(FOLDER / 'style.mplstyle'):
        for page in pages:
            path = FOLDER / f'{page}.png'
            figure = FIGURES[page]()
            figure.savefig(path, metadata={'Software': None})
            plt.close(figure)
            print(f'{path.name}: {path.stat().st_size / 1e3:.0f} kB')


if __name__ == '__main__':
    main()
