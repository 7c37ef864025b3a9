"""Growth of the cost per state with the number of segments."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from benchmarks.calls import subject
from benchmarks.chains import arc_robot, puj_robot
from benchmarks.measure import Settings, take_turns
from benchmarks.table import Row, Target, quantity
from soft_dynamics.robot import Robot

SIZES = 4, 8, 16, 32, 64
BETWEEN = 4, 16, 32
STATES = 100


def _growth(settings: Settings, name: str, kind: str, robot: Callable[[int], Robot]) -> list[Row]:
    arms = [subject(robot(size), STATES) for size in SIZES]
    rows = []
    for algorithm in ('inverse', 'forward'):
        samples = take_turns([arm.loop(algorithm) for arm in arms], settings.repetitions)
        by_size = dict(zip(SIZES, samples, strict=True))
        between = ', '.join(f'{size}: {quantity(median(by_size[size]), "s")}' for size in BETWEEN)
        what = f'{algorithm}, 64 {kind}, compiled loop [{between}]'
        rows.append(Row.against(name, what, by_size[64], by_size[8], f'8 {kind}', Target(9.0)))
    return rows


def universal(settings: Settings) -> list[Row]:
    return _growth(settings, 'growth.universal', 'universal segments', puj_robot)


def arcs(settings: Settings) -> list[Row]:
    return _growth(settings, 'growth.arcs', 'arcs and links', arc_robot)
