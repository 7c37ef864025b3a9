"""Figures of a validation as SVG, small enough to embed in a page."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from soft_dynamics.array import Array
from soft_dynamics.robot import Robot

from .free_run import WRENCH, Validation

POINTS = 1200  # of a line; more are not visible
MEASURED, MODEL = '#9aa3ae', '#0072B2'
COLORS = ('#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9')  # [Okabe and Ito]
STYLE: Any = {
    'font.family': 'DejaVu Sans',
    'font.size': 8,
    'axes.titlesize': 8.5,
    'axes.titlelocation': 'left',
    'axes.edgecolor': '#9aa3ae',
    'axes.linewidth': 0.6,
    'axes.spines.top': False,
    'axes.spines.right': False,
    'axes.grid': True,
    'grid.color': '#eceff2',
    'xtick.color': '#64707f',
    'ytick.color': '#64707f',
    'legend.frameon': False,
    'svg.hashsalt': 'validate',
}


def free_run_figure(robot: Robot, validation: Validation) -> str:
    """Draw each coordinate: measured and of the free run."""
    recording, free = validation.recording, validation.free
    names = [robot.coordinate_names[k] for k in validation.columns]

    def draw(axes: Any, k: int) -> None:
        column = validation.columns[k]
        _line(axes, recording.t, recording.q[:, column], MEASURED, 'measured', 2.2)
        _line(axes, free.t, free.q[:, column], MODEL, 'model', 1.0)
        axes.set_title(f'{names[k]} [{robot.coordinate_units[column]}]')

    return _grid(draw, len(names), 'time [s]', legend=True)


def errors_figure(robot: Robot, validation: Validation) -> str:
    """Draw the fraction of samples with an error below a value, for both kinds of prediction."""
    names = [robot.coordinate_names[k] for k in validation.columns]

    def draw(axes: Any, k: int) -> None:
        prediction, title = (
            (validation.free, 'free run'),
            (validation.ahead, f'{validation.horizon:g} s ahead'),
        )[k]
        for j, name in enumerate(names):
            size = np.sort(np.abs(prediction.error[:, j]))
            share = 100.0 * (np.arange(size.size) + 1.0) / max(size.size, 1)
            kept = np.unique(np.linspace(0, size.size - 1, min(size.size, 400)).round().astype(int))
            style = ('-', '--', ':')[j // len(COLORS) % 3]
            axes.plot(size[kept], share[kept], color=COLORS[j % len(COLORS)], ls=style, lw=1.2, label=name)
        axes.set_title(f'{title}: samples [%] with a smaller error')
        axes.set_xlim(left=0.0)
        axes.set_ylim(0.0, 100.0)
        axes.set_xlabel(
            f'absolute error [{" or ".join(sorted({robot.coordinate_units[k] for k in validation.columns}))}]'
        )

    return _grid(draw, 2, None, legend=True)


def forces_figure(validation: Validation) -> str:
    """Draw the wrench at the base, measured and by inverse dynamics."""
    recording = validation.recording
    order = (3, 4, 5, 0, 1, 2)

    def draw(axes: Any, k: int) -> None:
        if recording.wrench_B is not None and validation.wrench_B is not None:
            _line(axes, recording.t, recording.wrench_B[:, order[k]], MEASURED, 'measured', 2.2)
            _line(axes, recording.t, validation.wrench_B[:, order[k]], MODEL, 'model', 1.0)
        axes.set_title(f'{WRENCH[order[k]]} [{"N" if k < 3 else "N m"}]')

    return _grid(draw, 6, 'time [s]', legend=True, columns=3)


def pressures_figure(robot: Robot, validation: Validation) -> str:
    """Draw the pressures of the chambers of each segment."""
    recording = validation.recording
    groups: dict[str, list[int]] = {}
    for k, chamber in enumerate(robot.description.actuation.chambers):
        groups.setdefault(chamber.segment, []).append(k)

    def draw(axes: Any, k: int) -> None:
        segment = list(groups)[k]
        for j, column in enumerate(groups[segment]):
            name = robot.chamber_names[column].removeprefix(f'{segment}_')
            color = COLORS[j % len(COLORS)]
            _line(axes, recording.t, 1e-3 * recording.pressure[:, column], color, name, 1.0)
        axes.set_title(f'{segment} [kPa]')
        axes.legend(ncols=4, fontsize=7, loc='lower right', bbox_to_anchor=(1.0, 0.98), borderaxespad=0.0)

    return _grid(draw, len(groups), 'time [s]')


def _line(axes: Any, t: Array, y: Array, color: str, label: str, width: float) -> None:
    kept = envelope(y)
    axes.plot(t[kept], y[kept], color=color, lw=width, label=label, solid_joinstyle='round')


def envelope(y: Array) -> Any:
    """Return indices of about POINTS samples at most that keep every peak: lowest and highest of each stretch."""
    if y.size <= POINTS:
        return np.arange(y.size)
    parts = np.array_split(np.arange(y.size), POINTS // 2)
    ends = [[part[np.argmin(y[part])], part[np.argmax(y[part])]] for part in parts]
    return np.unique(np.concatenate([[0], np.ravel(ends), [y.size - 1]]))


def _grid(draw: Any, count: int, below: str | None, legend: bool = False, columns: int = 2) -> str:
    """Draw small axes in rows with one legend, as an HTML figure."""
    import matplotlib as mpl  # the tables need no matplotlib
    from matplotlib.figure import Figure

    columns = min(columns, count)
    rows = -(-count // columns)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10.0, 1.7 * rows + (1.3 if below is None else 0.6)), layout='constrained')
        axes = figure.subplots(rows, columns, squeeze=False, sharex=below is not None).ravel()
        for k in range(count):
            draw(axes[k], k)
        for spare in axes[count:]:
            spare.set_visible(False)
        if below is not None:
            for ax in axes[max(0, count - columns) : count]:
                ax.set_xlabel(below)
                ax.xaxis.set_tick_params(labelbottom=True)
        if legend:
            handles, labels = axes[0].get_legend_handles_labels()
            figure.legend(handles, labels, loc='outside upper right', ncols=min(len(labels), 6))
        text = io.StringIO()
        figure.savefig(text, format='svg', metadata={'Date': None})
    svg = text.getvalue()
    return f'<figure>{svg[svg.index("<svg") :]}</figure>'
