"""Timing on a machine that others use too: process-CPU time, candidates taking turns, medians and quartiles."""

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
    """A call to be timed, and how many units of work it does."""

    call: Callable[..., Any]
    args: Sequence[Any] = ()
    units: int = 1


class Settings(NamedTuple):
    """How long to measure, and whom to tell about it."""

    quick: bool
    say: Callable[[str], None]

    @property
    def repetitions(self) -> int:
        return 7 if self.quick else 31


def load() -> float:
    """Return how many processes wanted to run in the last minute: above the number of cores, wall times mean little."""
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
    """Return seconds per unit (cases, repetitions): each repetition times every case once, one after the other."""
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
    """Return how many calls make a sample; the first call, which may have to compile, does not count."""
    timer.timeit(1)
    count = 1
    while timer.timeit(count) < SAMPLE:
        count *= 2
    return count
