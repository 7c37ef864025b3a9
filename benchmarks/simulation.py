"""The simulation of the paper: ten seconds of the pneumatic arm with new random pressures every two seconds.

[Jensen, sec. IV] reports 1.2 to 1.3 times real time for its model of three joints.
"""

from __future__ import annotations

import numpy as np

from benchmarks.measure import Case, Settings, take_turns
from benchmarks.table import Figure, Row, Target
from soft_dynamics.array import Array
from soft_dynamics.robot import load

PAPER = 1.25  # times real time
SAMPLE = 5e-3  # [s] pressures and motion at 200 Hz
HOLD = 2.0  # [s]
TIGHT = {'rtol': 1e-11, 'atol': 1e-12}


def pressures(t: Array, chambers: int, highest: float) -> Array:
    """Return random pressures [Pa] (times, chambers) that change within one sample every two seconds."""
    levels = np.random.default_rng(1).uniform(0.0, highest, (int(t[-1] / HOLD) + 1, chambers))
    return levels[(t / HOLD + 1e-9).astype(int)]


def simulation(settings: Settings) -> list[Row]:
    arm, duration = load('pneumatic_arm'), 2.0 if settings.quick else 10.0
    t = SAMPLE * np.arange(round(duration / SAMPLE) + 1, dtype=np.float64)
    inputs = pressures(t, len(arm.chamber_names), arm.description.actuation.pressure_max)
    rest = np.zeros(arm.nq)
    found = arm.simulate(rest, rest, inputs, t)
    seconds = take_turns([Case(arm.simulate, (rest, rest, inputs, t))], settings.repetitions)[0]
    settings.say(f'reference by Radau, {duration:g} s of motion')
    exact = arm.simulate(rest, rest, inputs, t, 'Radau', **TIGHT, progress=_Percent(settings))
    what = f'{duration:g} s of pneumatic_arm, default method'
    factor = Figure.of(duration / seconds, 'x real time')
    ratio = Figure(factor.value / PAPER, 'x', factor.spread)
    limit = Target(duration / 200.0, 's')
    error = Figure(float(abs(found.q - exact.q).max()), 'rad')
    return [
        Row('simulate', f'{what}, CPU time', Figure.of(seconds, 's'), target=limit),
        Row('simulate', f'{what}, speed', factor, Figure(PAPER, 'x real time'), 'the paper', ratio),
        Row('simulate', f'{what}, largest error against Radau', error, target=Target(1e-4, 'rad')),
    ]


class _Percent:
    """A progress callback that reports each quarter."""

    def __init__(self, settings: Settings) -> None:
        self.say, self.quarter = settings.say, 0

    def __call__(self, part: float) -> None:
        if int(4.0 * part) > self.quarter:
            self.quarter = int(4.0 * part)
            self.say(f'reference by Radau, {25 * self.quarter} %')
