"""A validation as text for the terminal and as a self-contained HTML file."""

from __future__ import annotations

import html
from collections.abc import Sequence

from soft_dynamics.robot import Robot

from .figures import errors_figure, forces_figure, free_run_figure, pressures_figure
from .free_run import ForceError, Prediction, Statistics, Validation

CSS = """
:root { --ink: #1d2530; --soft: #64707f; --line: #e3e7ec; --back: #f6f7f9; --good: #0b7a53; --bad: #b3261e; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 18px; margin: 0 0 4px; }
p { margin: 0 0 12px; color: var(--soft); } code { font-size: 13px; }
section { background: #fff; border: 1px solid var(--line); border-radius: 10px; padding: 20px 24px; margin-top: 20px; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(190px, 1fr)); gap: 14px; margin-top: 20px; }
.card { background: #fff; border: 1px solid var(--line); border-radius: 10px; padding: 14px 18px; }
.card b { display: block; font-size: 24px; font-weight: 650; letter-spacing: -0.01em; }
.card span { color: var(--soft); font-size: 13px; }
.tables { display: grid; grid-template-columns: repeat(auto-fit, minmax(440px, 1fr)); gap: 28px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: 14px; }
th { text-align: right; font-weight: 600; color: var(--soft); border-bottom: 2px solid var(--line); padding: 4px 8px; }
td { text-align: right; border-bottom: 1px solid var(--line); padding: 4px 8px; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
tr.total td { font-weight: 650; border-bottom: 0; }
figure { margin: 12px 0 0; } svg { width: 100%; height: auto; }
.verdict { display: inline-block; border-radius: 6px; padding: 2px 12px; color: #fff; font-weight: 650; }
.pass { background: var(--good); } .fail { background: var(--bad); } .warn { color: var(--bad); }
"""


def text_report(robot: Robot, validation: Validation) -> str:
    """Tables for the terminal."""
    recording = validation.recording
    lines = [
        f'{robot.name}: {recording.duration:.1f} s from {recording.source}, {1.0 / recording.dt:g} Hz',
        '',
        *_text_table('free run', validation.free.table),
        '',
        *_text_table(f'{validation.horizon:g} s ahead', validation.ahead.table),
    ]
    if validation.forces:
        lines += ['', *_text_forces(validation.forces)]
    stops = [p.stopped for p in (validation.free, validation.ahead) if p.stopped]
    return '\n'.join([*lines, '', *stops, f'simulated {validation.real_time_factor:.3g} x real time'])


def html_report(robot: Robot, validation: Validation, bag: str, verdict: tuple[bool, str] | None) -> str:
    """Return the whole report as one page; verdict is (passed, why), or None without thresholds."""
    recording = validation.recording
    badge = ''
    if verdict is not None:
        word, kind = ('passed', 'pass') if verdict[0] else ('failed', 'fail')
        badge = f'<p><span class="verdict {kind}">{word}</span> &nbsp;{html.escape(verdict[1])}</p>'
    intro = (
        f'{recording.duration:.1f} s of <code>{html.escape(bag)}</code>, measured by '
        f'{html.escape(recording.source)}, on a grid of {1.0 / recording.dt:g} Hz. The model runs on the '
        'measured pressures from the measured start.'
    )
    title = f'{robot.name}: model against recording'
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<style>{CSS}</style></head><body><main><h1>{html.escape(title)}</h1><p>{intro}</p>{badge}'
        f'{_cards(validation)}{"".join(_sections(robot, validation))}</main></body></html>\n'
    )


def _sections(robot: Robot, validation: Validation) -> list[str]:
    sections = [
        _section(
            'Free run',
            'From the first sample to the last, uncorrected. Below, errors as in tables I and II of Jensen et al.',
            _stopped(validation.free) + free_run_figure(robot, validation),
        ),
        '<section><div class="tables">'
        + _html_table('Free run', validation.free.table)
        + _html_table(f'{validation.horizon:g} s ahead of each measured state', validation.ahead.table)
        + '</div>'
        + _stopped(validation.ahead)
        + errors_figure(robot, validation)
        + '</section>',
    ]
    if validation.forces:
        figure = forces_figure(validation) if validation.wrench_B is not None else ''
        what = 'Inverse dynamics of the measured motion against '
        what += 'the base sensor and the pressures' if validation.wrench_B is not None else 'the pressures'
        sections.append(
            _section(
                'Forces', f'{what}, as in table II of Mehl et al.', _html_forces(validation.forces) + figure
            )
        )
    if validation.recording.pressure.shape[1]:
        sections.append(_section('Pressures', 'Inputs of the model.', pressures_figure(robot, validation)))
    return sections


# ---- text ------------------------------------------------------------------------------------------------------------


def _text_table(title: str, rows: Sequence[Statistics]) -> list[str]:
    width = max(len(title), *(len(row.name) for row in rows))
    head = f'{title:<{width}}  {"mean":>9} {"median":>9} {"max":>9} {"RMSE":>9}'
    return [head, '-' * len(head)] + [
        f'{row.name:<{width}}  {row.mean:9.3g} {row.median:9.3g} {row.max:9.3g} {row.rmse:9.3g}  {row.unit}'
        for row in rows
    ]


def _text_forces(rows: Sequence[ForceError]) -> list[str]:
    width = max(len('forces (MSE)'), *(len(row.name) for row in rows))
    head = f'{"forces (MSE)":<{width}}  {"all":>9} {"best":>9} {"worst":>9} {"of max":>9}'
    return [head, '-' * len(head)] + [
        f'{row.name:<{width}}  {row.mse:9.3g} {row.best:9.3g} {row.worst:9.3g} {_share(row.relative):>9}'
        f'  ({row.unit})^2'
        for row in rows
    ]


# ---- HTML ------------------------------------------------------------------------------------------------------------


def _section(title: str, what: str, content: str) -> str:
    return f'<section><h2>{html.escape(title)}</h2><p>{html.escape(what)}</p>{content}</section>'


def _cards(validation: Validation) -> str:
    cards = []
    for title, prediction in (
        ('free run', validation.free),
        (f'{validation.horizon:g} s ahead', validation.ahead),
    ):
        for row in prediction.table:
            if row.name == 'total':
                cards.append((_amount(row.median, row.unit), f'median error, {title}'))
    cards.append((f'{validation.real_time_factor:.3g} x', 'real time'))
    forces = [row for row in validation.forces if row.name.startswith('f_')]
    if forces:
        worst = max(row.relative for row in forces)
        cards.append((f'{100.0 * worst:.1f} %', 'of the largest, worst base force (RMSE)'))
    return (
        '<div class="cards">'
        + ''.join(
            f'<div class="card"><b>{value}</b><span>{html.escape(what)}</span></div>' for value, what in cards
        )
        + '</div>'
    )


def _amount(value: float, unit: str) -> str:
    return f'{value:.3g} rad' if unit == 'rad' else f'{1e3 * value:.3g} mm'


def _html_table(title: str, rows: Sequence[Statistics]) -> str:
    body = ''.join(
        f'<tr{" class=total" if row.name == "total" else ""}><td>{html.escape(row.name)} [{row.unit}]</td>'
        f'<td>{row.mean:.3g}</td><td>{row.median:.3g}</td><td>{row.max:.3g}</td><td>{row.rmse:.3g}</td></tr>'
        for row in rows
    )
    head = ''.join(f'<th>{name}</th>' for name in (html.escape(title), 'mean', 'median', 'max', 'RMSE'))
    return f'<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _html_forces(rows: Sequence[ForceError]) -> str:
    body = ''.join(
        f'<tr><td>{html.escape(row.name)} [({row.unit})²]</td><td>{row.mse:.3g}</td><td>{row.best:.3g}</td>'
        f'<td>{row.worst:.3g}</td><td>{_share(row.relative)}</td></tr>'
        for row in rows
    )
    names = ('mean squared error', 'all', 'best tenth', 'worst tenth', 'RMSE of largest')
    head = ''.join(f'<th>{name}</th>' for name in names)
    return f'<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _share(part: float) -> str:
    return f'{100.0 * part:.1f} %' if part < float('inf') else 'none acts'


def _stopped(prediction: Prediction) -> str:
    return f'<p class="warn">{html.escape(prediction.stopped)}</p>' if prediction.stopped else ''
