"""Timing on a shared machine: process-CPU time, interleaved candidates, medians and quartiles."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from timeit import Timer
from typing import Any, NamedTuple

import numpy as np

from soft_dynamics.array import Array

SAMPLE = 5e-3  # [s] shortest sample, far above the resolution of the clock


class Case(NamedTuple):
    """A call to be timed, with its number of units of work."""

    call: Callable[..., Any]
    args: Sequence[Any] = ()
    units: int = 1


class Settings(NamedTuple):
    """Length of the measurement, and where to report progress."""

    quick: bool
    say: Callable[[str], None]

    @property
    def repetitions(self) -> int:
        return 7 if self.quick else 31


def load() -> float:
    """Return the load of the last minute; above the number of cores, wall times mean little."""
    return os.getloadavg()[0]


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds (user and system) of a process and of its running children."""
    fields = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')
    return own + sum(map(cpu_seconds, children(pid)))


def children(pid: int) -> list[int]:
    """Return the running child processes of a process."""
    lists = Path(f'/proc/{pid}/task').glob('*/children')
    return [int(child) for each in lists for child in each.read_text().split()]


def take_turns(
    cases: Sequence[Case], repetitions: int, clock: Callable[[], float] = time.process_time
) -> Array:
    """Return seconds per unit (cases, repetitions); each repetition times each case once, in turn."""
    timers = [_timer(case, clock) for case in cases]
    counts = [_count(timer) for timer in timers]
    samples = np.empty((len(cases), repetitions))
    for j in range(repetitions):
        for k, (timer, count, case) in enumerate(zip(timers, counts, cases, strict=True)):
            samples[k, j] = timer.timeit(count) / (count * case.units)
    return samples


def _timer(case: Case, clock: Callable[[], float]) -> Timer:
    names = [f'argument{k}' for k in range(len(case.args))]
    scope = {'call': case.call, **dict(zip(names, case.args, strict=True))}
    return Timer(f'call({", ".join(names)})', timer=clock, globals=scope)


def _count(timer: Timer) -> int:
    """Return the number of calls per sample; the first call may compile and does not count."""
    timer.timeit(1)
    count = 1
    while timer.timeit(count) < SAMPLE:
        count *= 2
    return count
