"""What the machine does to a process that only wakes up: the peer of every latency, measured in the same run.

A process for each core, of a priority above all others, wants to wake every few milliseconds and notes when it was
late. So late is nothing of ours: the computer below a virtual machine was elsewhere, or an interrupt took long.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np

from soft_dynamics.array import Array

PERIOD = 4e-3  # [s] more often it would be felt itself
BEATS = 100  # between two looks whether to end
STALL = 5e-4  # [s] a wake-up this late says that the machine stood still
PRIORITY = 95
_NS = 1_000_000_000


class Metronomes:
    """Beat on every core until `stop`; `lateness` [s] of all beats, `stalls` (n, 2) [ns] from when to when."""

    def __init__(self) -> None:
        cores = sorted(os.sched_getaffinity(0))
        command = [sys.executable, '-m', 'benchmarks.metronome']
        self._processes = [
            subprocess.Popen([*command, str(core)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for core in cores
        ]
        self.lateness: Array = np.zeros(0)
        self.stalls = np.zeros((0, 2), np.int64)

    def stop(self) -> None:
        """End them and take what they found."""
        beats = [np.frombuffer(each.communicate()[0], np.int64).reshape(-1, 2) for each in self._processes]
        due, woke = np.concatenate(beats).T
        self.lateness = (woke - due) / _NS
        late = self.lateness > STALL
        self.stalls = np.stack([due[late], woke[late]], 1)

    def during(self, start_ns: Array, end_ns: Array) -> Array:
        """Whether the machine stood still at some time within each of the intervals."""
        due, woke = self.stalls.T
        return np.array([np.any((due < b) & (woke > a)) for a, b in zip(start_ns, end_ns, strict=True)], bool)


def beat(core: int) -> None:
    """Write due and woken times [ns] to stdout when stdin is closed."""
    os.sched_setaffinity(0, {core})
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    os.set_blocking(sys.stdin.fileno(), False)
    beats, due, period = [], time.time_ns(), round(PERIOD * _NS)
    while len(beats) % BEATS or sys.stdin.buffer.raw.read(1) is None:  # type: ignore[attr-defined]
        due += period
        time.sleep(max(due - time.time_ns(), 0) / _NS)
        woke = time.time_ns()
        beats.append((due, woke))
        due = max(due, woke - period)
    sys.stdout.buffer.write(np.array(beats, np.int64).tobytes())


if __name__ == '__main__':
    beat(int(sys.argv[1]))
